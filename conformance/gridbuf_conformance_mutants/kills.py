"""The kill matrix as a document: every mutant with what it breaks, and every rule with its mutants."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gridbuf_conformance import catalogue

from . import Mutant, consumer_zoo, zoo

__all__ = [
    "KILLS_FILE",
    "UNKILLED",
    "UNKILLED_BY_CONSUMERS",
    "render",
    "rules_without_consumer",
    "rules_without_mutant",
]

KILLS_FILE = Path(__file__).parent.parent / "KILLS.md"

UNKILLED: dict[str, str] = {
    "PB-27": "CPython's own memoryview decides it; no exporter has a say",
}
"""MUST rules in scope that no mutant breaks, each with the reason."""

_BY_INTERPRETER = "CPython itself calls a class's buffer methods; no consumer has a say"
UNKILLED_BY_CONSUMERS: dict[str, str] = {
    "AI-26": "the form is a producer's; the use of mask is only advised, see DropsTheMask",
    **dict.fromkeys(("PB-28", "PB-29", "PB-30"), _BY_INTERPRETER),
    **dict.fromkeys(
        ("CAI-08", "CAI-10", "CAI-13", "CAI-15", "CAI-20", "CAI-23", "CAI-26"),
        "exports through the CUDA array interface need a CUDA device, which this machine did not have",
    ),
}
"""The same for rules that consumers are judged by."""

_HEAD = """# Kill matrix

Every row is a deliberately wrong producer, or (at the end) a deliberately wrong consumer. The suite, run on it,
breaks exactly the rules in the second column (`failed`) and gives the ones in the third as advice; the reference
producer and the reference consumer, made of the same parts, break none. `tests/test_kill_matrix.py` and
`tests/test_consumer_kills.py` prove each row. Written by `python -m gridbuf_conformance_mutants`.

"""


def rules_without_mutant() -> list[str]:
    """MUST rules in scope that no mutant of any Python version breaks."""
    broken = {id_ for mutant in zoo(every_python=True) for id_ in mutant.breaks}
    return [
        rule.id for rule in catalogue.select() if rule.level == "MUST" and rule.id not in broken
    ]


def rules_without_consumer() -> list[str]:
    """MUST rules with a consumer check that no wrong consumer breaks."""
    broken = {id_ for mutant in consumer_zoo() for id_ in mutant.breaks}
    judged = catalogue.select(side="consumer")
    return [rule.id for rule in judged if rule.level == "MUST" and rule.id not in broken]


def render() -> str:
    """The text of KILLS.md."""
    producers = (*_by_mutant(), "", *_by_rule(), "", *_unkilled())
    return _HEAD + "\n".join((*producers, *_by_consumer(), "", *_of_consumers())) + "\n"


def _by_mutant() -> Iterable[str]:
    module = ""
    for mutant in zoo(every_python=True):
        if mutant.__module__ != module:
            module = mutant.__module__
            title = module.rpartition(".")[2].replace("_", " ").capitalize()
            yield from (
                "",
                f"## {title}",
                "",
                "| mutant | breaks | advises | fault |",
                "|---|---|---|---|",
            )
        yield f"| {_name(mutant)} | {_ids(mutant.breaks)} | {_ids(mutant.advises)} | {_fault(mutant)} |"


def _by_consumer() -> Iterable[str]:
    module = ""
    for mutant in consumer_zoo():
        if mutant.__module__ != module:
            module = mutant.__module__
            title = module.rpartition(".")[2].replace("consume_", "").replace("_", " ").capitalize()
            yield from ("", f"## Consumers: {title}", "")
            yield from ("| consumer | breaks | advises | fault |", "|---|---|---|---|")
        ids = f"{_ids(mutant.breaks)} | {_ids(mutant.advises)}"
        yield f"| {mutant.__name__} | {ids} | {_fault(mutant)} |"


def _of_consumers() -> Iterable[str]:
    yield from ("## Consumers by rule", "", "| rule | level | consumers |", "|---|---|---|")
    for rule in catalogue.select(side="consumer"):
        killers = [m.__name__ for m in consumer_zoo() if rule.id in m.breaks | m.advises]
        if killers:
            yield f"| {rule.id} | {rule.level} | {', '.join(killers)} |"
    yield from ("", "## Required rules that no consumer breaks", "")
    for id_ in rules_without_consumer():
        yield f"- {id_}: {UNKILLED_BY_CONSUMERS.get(id_, 'no reason given')}"


def _by_rule() -> Iterable[str]:
    yield from ("## By rule", "", "| rule | level | mutants |", "|---|---|---|")
    for rule in catalogue.select():
        killers = [
            mutant.__name__
            for mutant in zoo(every_python=True)
            if rule.id in mutant.breaks | mutant.advises
        ]
        if killers:
            yield f"| {rule.id} | {rule.level} | {', '.join(killers)} |"


def _unkilled() -> Iterable[str]:
    yield from ("## Required rules that no mutant breaks", "")
    for id_ in rules_without_mutant():
        yield f"- {id_}: {UNKILLED.get(id_, 'no reason given')}"


def _name(mutant: type[Mutant]) -> str:
    since = mutant.since_python
    return mutant.__name__ + (f" (Python {since[0]}.{since[1]}+)" if since > (3, 10) else "")


def _fault(mutant: Any) -> str:
    return " ".join((mutant.__doc__ or "").split()).replace("|", "\\|")


def _ids(ids: Iterable[str]) -> str:
    return ", ".join(sorted(ids)) or "–"
