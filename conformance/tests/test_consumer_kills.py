"""The consumers' half of the kill matrix: each wrong consumer breaks exactly the rules it names,
and right ones none. Each is measured and judged on the fixed exports of the zoo. The ordinary run
judges each wrong consumer by the rules that it names, on the exports that are about them. The
thorough run judges by all rules.
"""

from __future__ import annotations

from typing import Any

import pytest
from forked import ForkDied, in_fork

from gridbuf_conformance.engine import consumer_run
from gridbuf_conformance.render.report import Report
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance_mutants import consumer_zoo, target
from gridbuf_conformance_mutants.consumer import exports_for
from gridbuf_conformance_mutants.kills import UNKILLED_BY_CONSUMERS, rules_without_consumer

TIME_LIMIT_S = 3.0
REFERENCE = "gridbuf_conformance_mutants.importer:reference"
OTHER_REFERENCES = {
    "gridbuf_conformance_mutants.host_consumer:array_interface": ("array-interface",),
    "gridbuf_conformance_mutants.host_consumer:array_struct": ("array-struct",),
    "gridbuf_conformance_mutants.host_consumer:buffer": ("buffer",),
    "gridbuf_conformance_mutants.host_consumer:data_interface": ("data-interface",),
    "gridbuf_conformance_mutants.host_consumer:proxy": ("array-interface",),
    "gridbuf_conformance_mutants.host_consumer:delegate": ("buffer",),
    "gridbuf_conformance_mutants.consume_exchange:strict": ("exchange",),
    "gridbuf_conformance_mutants.consume_dlpack:holds_the_capsule": ("dlpack", "dlpack-legacy"),
    "gridbuf_conformance_mutants.consume_streams:strict": ("cuda-stream",),
    "gridbuf_conformance_mutants.own_values:strict": ("dlpack", "dlpack-legacy"),
    "gridbuf_conformance_mutants.own_values:told": ("dlpack", "dlpack-legacy"),
    "gridbuf_conformance_mutants.own_values:told_of_buffers": ("buffer",),
}
"""Right consumers of the other interfaces, each with what it takes."""
MUTANTS = [pytest.param(mutant, id=mutant.__name__) for mutant in consumer_zoo()]


def _run(
    name: str, interfaces: tuple[str, ...], rules: frozenset[str] | None, isolate: bool
) -> dict[str, Any]:
    exports = exports_for(interfaces)
    if rules is not None:
        exports = [export for export in exports if rules.intersection(export.variant.rules)]
    selected = None if rules is None else ",".join(sorted(rules))
    return consumer_run.check_exports(
        name, exports, rules=selected, isolate=isolate, time_limit_s=TIME_LIMIT_S
    ).data


def _report_of(mutant: Any, rules: frozenset[str] | None = None) -> Report:
    """A fork of this process is enough for a consumer that lives; what dies has a worker."""
    try:
        return Report(in_fork(_run, target(mutant), mutant.interfaces, rules, False))
    except ForkDied:
        return Report(_run(target(mutant), mutant.interfaces, rules, True))


def _with_outcome(report: Report, outcome: str) -> set[str]:
    return {id_ for id_, found in report.outcomes.items() if found == outcome}


# Each waits for a time limit at every export: the thorough test below judges them by all rules.
_SLOW = {
    "DeletesOnAThreadAndKeepsTheGil",
    "HangsOnEmptyTensors",
    "NeverDeletes",
    "NeverReleases",
    "NeverReleasesTheExporter",
    "NeverReleasesTheObject",
}


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.id not in _SLOW])
def test_wrong_consumer_breaks_each_rule_it_names(mutant: Any) -> None:
    report = _report_of(mutant, mutant.breaks | mutant.advises | mutant.weakens)
    assert set(report.failed) == mutant.breaks, f"{mutant.__doc__}\n{report.to_json()}"
    assert _with_outcome(report, "ADVISORY") == mutant.advises, mutant.__doc__
    assert _with_outcome(report, "FRAGILE") == mutant.weakens, mutant.__doc__


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_consumer_breaks_exactly_what_it_names(mutant: Any) -> None:
    report = _report_of(mutant)
    assert set(report.failed) == mutant.breaks, f"{mutant.__doc__}\n{report.to_json()}"
    assert _with_outcome(report, "ADVISORY") == mutant.advises, mutant.__doc__
    assert _with_outcome(report, "FRAGILE") == mutant.weakens, mutant.__doc__
    assert _with_outcome(report, "ERROR") == set()


def test_the_strict_consumer_breaks_nothing_and_is_judged_by_most_rules() -> None:
    report = Report(_run(REFERENCE, ("dlpack", "dlpack-legacy"), None, True))
    assert report.failed == (), report.to_json()
    for outcome in ("FRAGILE", "ADVISORY", "BLOCKED", "ERROR"):
        assert _with_outcome(report, outcome) == set(), outcome
    about_dlpack = {r for r in catalogue.select("DL-*,DP-*", "consumer")}
    assert len(_with_outcome(report, "PASS")) >= len(about_dlpack) - 3, "DP-19 to DP-21 are moot"


@pytest.mark.parametrize("name", OTHER_REFERENCES)
def test_right_consumers_of_host_memory_break_nothing(name: str) -> None:
    report = Report(_run(name, OTHER_REFERENCES[name], None, True))
    assert report.failed == (), report.to_json()
    for outcome in ("FRAGILE", "ADVISORY", "BLOCKED", "ERROR"):
        assert _with_outcome(report, outcome) == set(), outcome
    assert _with_outcome(report, "PASS")


def test_every_wrong_consumer_names_rules_that_consumers_are_judged_by() -> None:
    rules = catalogue.select(side="consumer")
    levels = {rule.id: rule.level_of("consumer") for rule in rules}
    for mutant in consumer_zoo():
        named = mutant.breaks | mutant.advises | mutant.weakens
        assert named <= levels.keys(), mutant.__name__
        assert all(levels[id_] == "MUST" for id_ in mutant.breaks), mutant.__name__
        assert mutant.__doc__.strip(), mutant.__name__


def test_every_required_rule_has_a_wrong_consumer_or_a_reason() -> None:
    assert set(rules_without_consumer()) == UNKILLED_BY_CONSUMERS.keys()
    assert all(reason.strip() for reason in UNKILLED_BY_CONSUMERS.values())
