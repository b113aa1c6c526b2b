"""The consumers' half of the kill matrix: each wrong consumer breaks exactly the rules it names, and right
ones none. Each runs through worker, measurement and judge on the fixed offers of the zoo.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from gridbuf_conformance import catalogue, consuming
from gridbuf_conformance.report import Report
from gridbuf_conformance_mutants import consumer_zoo, target
from gridbuf_conformance_mutants.consumer import offers_for
from gridbuf_conformance_mutants.kills import UNKILLED_BY_CONSUMERS, rules_without_consumer

TIME_LIMIT_S = 3.0
REFERENCE = "gridbuf_conformance_mutants.importer:reference"
OTHER_REFERENCES = {
    "gridbuf_conformance_mutants.host_consumer:array_interface": ("array-interface",),
    "gridbuf_conformance_mutants.host_consumer:array_struct": ("array-struct",),
    "gridbuf_conformance_mutants.host_consumer:buffer": ("buffer",),
    "gridbuf_conformance_mutants.host_consumer:data_interface": ("data-interface",),
    "gridbuf_conformance_mutants.consume_exchange:strict": ("exchange",),
}
"""Right consumers of the other interfaces, each with what it takes."""
MUTANTS = [pytest.param(mutant, id=mutant.__name__) for mutant in consumer_zoo()]


def _run(name: str, interfaces: tuple[str, ...]) -> dict[str, Any]:
    return consuming.check_offers(name, offers_for(interfaces), time_limit_s=TIME_LIMIT_S).data


@pytest.fixture(scope="module")
def report_of() -> Iterator[Callable[[str], Report]]:
    """Reports by target; all runs start at once and are awaited one by one."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawned) as pool:
        runs = {REFERENCE: pool.submit(_run, REFERENCE, ("dlpack", "dlpack-legacy"))}
        runs |= {name: pool.submit(_run, name, takes) for name, takes in OTHER_REFERENCES.items()}
        for mutant in consumer_zoo():
            runs[target(mutant)] = pool.submit(_run, target(mutant), mutant.interfaces)
        yield lambda name: Report(runs[name].result())
        pool.shutdown(cancel_futures=True)


def _with_outcome(report: Report, outcome: str) -> set[str]:
    return {id_ for id_, found in report.outcomes.items() if found == outcome}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_consumer_breaks_exactly_what_it_names(
    mutant: Any, report_of: Callable[[str], Report]
) -> None:
    report = report_of(target(mutant))
    assert set(report.failed) == mutant.breaks, f"{mutant.__doc__}\n{report.to_json()}"
    assert _with_outcome(report, "ADVISORY") == mutant.advises, mutant.__doc__
    assert _with_outcome(report, "ERROR") == set()


def test_the_strict_consumer_breaks_nothing_and_is_judged_by_most_rules(
    report_of: Callable[[str], Report],
) -> None:
    report = report_of(REFERENCE)
    assert report.failed == (), report.to_json()
    for outcome in ("ADVISORY", "BLOCKED", "ERROR"):
        assert _with_outcome(report, outcome) == set(), outcome
    about_dlpack = {r for r in catalogue.select("DL-*,DP-*", "consumer")}
    assert len(_with_outcome(report, "PASS")) >= len(about_dlpack) - 2, "DP-19 and DP-21 are moot"


@pytest.mark.parametrize("name", OTHER_REFERENCES)
def test_right_consumers_of_host_memory_break_nothing(
    name: str, report_of: Callable[[str], Report]
) -> None:
    report = report_of(name)
    assert report.failed == (), report.to_json()
    for outcome in ("ADVISORY", "BLOCKED", "ERROR"):
        assert _with_outcome(report, outcome) == set(), outcome
    assert _with_outcome(report, "PASS")


def test_every_wrong_consumer_names_rules_that_consumers_are_judged_by() -> None:
    levels = {rule.id: rule.level for rule in catalogue.select(side="consumer")}
    for mutant in consumer_zoo():
        assert mutant.breaks | mutant.advises <= levels.keys(), mutant.__name__
        assert all(levels[id_] == "MUST" for id_ in mutant.breaks), mutant.__name__
        assert mutant.__doc__.strip(), mutant.__name__


def test_every_required_rule_has_a_wrong_consumer_or_a_reason() -> None:
    assert set(rules_without_consumer()) == UNKILLED_BY_CONSUMERS.keys()
    assert all(reason.strip() for reason in UNKILLED_BY_CONSUMERS.values())
