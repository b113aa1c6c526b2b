"""The kill matrix as a document: mutants with what they break, and rules with their mutants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gridbuf_conformance.rules import catalogue

from . import Mutant, consumer_zoo, zoo

UNKILLED: dict[str, str] = {
    "PB-27": "memoryview of CPython decides it, not the exporter",
}
"""MUST rules in scope that no mutant breaks, each with the reason."""

_BY_INTERPRETER = "CPython itself calls the buffer methods of a class, not the consumer"
UNKILLED_BY_CONSUMERS: dict[str, str] = {
    **dict.fromkeys(("PB-28", "PB-29", "PB-30"), _BY_INTERPRETER),
    **dict.fromkeys(
        ("CAI-08", "CAI-10", "CAI-13", "CAI-20", "CAI-26"),
        "exports through the CUDA array interface need a CUDA device; "
        "the machine of these runs has none",
    ),
}
"""The same for rules that consumers are judged by."""

_HEAD = """# Kill matrix

Every row is a deliberately wrong producer, or (at the end) a deliberately wrong consumer. A run of
the suite on it fails exactly the rules in the second column (`failed`), and gives advisories for
the rules in the third column. A consumer is fragile on the rules in the fourth column. The
reference producer and the reference consumer have the same parts and break no rule.
`tests/test_kill_matrix.py` and `tests/test_consumer_kills.py` test each row.
`python -m gridbuf_conformance_mutants` prints this page.

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
    binding = [rule for rule in judged if rule.level_of("consumer") == "MUST"]
    return [rule.id for rule in binding if rule.id not in broken]


def render() -> str:
    """The page, in Markdown."""
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
                "| mutant | breaks | advises | defect |",
                "|---|---|---|---|",
            )
        advises = _ids(mutant.advises)
        if mutant.weakens:
            advises = f"{_ids(mutant.weakens)} (fragile, profile `threads`)"
        yield f"| {_name(mutant)} | {_ids(mutant.breaks)} | {advises} | {_fault(mutant)} |"


def _by_consumer() -> Iterable[str]:
    module = ""
    for mutant in consumer_zoo():
        if mutant.__module__ != module:
            module = mutant.__module__
            title = module.rpartition(".")[2].replace("consume_", "").replace("_", " ").capitalize()
            yield from ("", f"## Consumers: {title}", "")
            yield from (
                "| consumer | breaks | advises | fragile | defect |",
                "|---|---|---|---|---|",
            )
        ids = f"{_ids(mutant.breaks)} | {_ids(mutant.advises)} | {_ids(mutant.weakens)}"
        yield f"| {mutant.__name__} | {ids} | {_fault(mutant)} |"


def _of_consumers() -> Iterable[str]:
    yield from ("## Consumers by rule", "", "| rule | level | consumers |", "|---|---|---|")
    for rule in catalogue.select(side="consumer"):
        killers = [
            m.__name__ for m in consumer_zoo() if rule.id in m.breaks | m.advises | m.weakens
        ]
        if killers:
            yield f"| {rule.id} | {rule.level_of('consumer')} | {', '.join(killers)} |"
    yield from ("", "## Required rules that no consumer breaks", "")
    for id_ in rules_without_consumer():
        yield f"- {id_}: {UNKILLED_BY_CONSUMERS.get(id_, 'no reason given')}"


def _by_rule() -> Iterable[str]:
    yield from ("## By rule", "", "| rule | level | mutants |", "|---|---|---|")
    for rule in catalogue.select():
        killers = [
            mutant.__name__
            for mutant in zoo(every_python=True)
            if rule.id in mutant.breaks | mutant.advises | mutant.weakens
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
