"""The suite is judged by its mutants: each must break exactly the rules it names, and right producers none.

Every mutant runs as a whole producer through worker, measurement and judge, on the fixed plans of the zoo.
The runs are shared by all tests of this file, one process for each core.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from gridbuf_conformance import catalogue
from gridbuf_conformance.engine import PROFILES, Profile, check_plans, check_producer
from gridbuf_conformance.report import Report
from gridbuf_conformance_mutants import Mutant, exchange_table, target, zoo
from gridbuf_conformance_mutants.kills import KILLS_FILE, UNKILLED, render, rules_without_mutant
from gridbuf_conformance.plan import Plan
from gridbuf_conformance_mutants.plans import PLANS, on_device

DRAWN = Profile(
    "drawn", general=12, boundary=10, rank=2, huge=2, shrink_per_rule=0, shrink_in_all=0
)
TIME_LIMIT_S = 3.0
REFERENCE = "gridbuf_conformance_mutants.reference:Reference"
DEVICE_REFERENCE = "gridbuf_conformance_mutants.device:DeviceReference"
MIRROR_REFERENCE = "gridbuf_conformance_mutants.mirrors:MirrorReference"
PACKED_REFERENCE = "gridbuf_conformance_mutants.packed:PackedReference"
RIGHT_PRODUCERS = (
    REFERENCE,
    DEVICE_REFERENCE,
    MIRROR_REFERENCE,
    PACKED_REFERENCE,
    "array",
    "bytes",
    "bytearray",
    "memoryview",
)
ON_DEVICE = tuple(plan for kind in ("gpu", "pinned", "managed") for plan in on_device(kind))
MUTANTS = [pytest.param(mutant, id=mutant.__qualname__) for mutant in zoo()]


def _run(name: str, plans: tuple[Plan, ...] | None) -> dict[str, Any]:
    """The report of one run, None for drawn plans; in a process of the pool, which starts the worker's process."""
    if plans is not None:
        return check_plans(name, plans, time_limit_s=TIME_LIMIT_S).data
    PROFILES[DRAWN.name] = DRAWN
    return check_producer(name, profile=DRAWN.name, time_limit_s=TIME_LIMIT_S).data


@pytest.fixture(scope="module")
def report_of() -> Iterator[Callable[[str], Report]]:
    """Reports by target; all runs start at once and are awaited one by one."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawned) as pool:
        runs = {name: pool.submit(_run, name, None) for name in RIGHT_PRODUCERS}
        runs[FIXED_DEVICE_RUN] = pool.submit(_run, DEVICE_REFERENCE, ON_DEVICE)
        asked = {target(m): None if m.drawn else m.plans for m in zoo()}
        runs |= {name: pool.submit(_run, name, plans) for name, plans in asked.items()}
        yield lambda name: Report(runs[name].result())
        pool.shutdown(cancel_futures=True)


FIXED_DEVICE_RUN = "the device reference on the fixed plans"


def _with_outcome(report: Report, outcome: str) -> set[str]:
    return {id_ for id_, found in report.outcomes.items() if found == outcome}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_breaks_exactly_what_it_names(
    mutant: type[Mutant], report_of: Callable[[str], Report]
) -> None:
    report = report_of(target(mutant))
    assert set(report.failed) == mutant.breaks, f"{mutant.__doc__}\n{report.to_json()}"
    assert _with_outcome(report, "ADVISORY") == mutant.advises, mutant.__doc__
    assert _with_outcome(report, "ERROR") == set()


@pytest.mark.parametrize("name", RIGHT_PRODUCERS)
def test_right_producer_breaks_nothing(name: str, report_of: Callable[[str], Report]) -> None:
    report = report_of(name)
    assert report.failed == (), report.to_json()
    assert report.exit_code == 0
    assert _with_outcome(report, "ERROR") == set()


def test_reference_is_advised_nothing_and_passes_most_rules(
    report_of: Callable[[str], Report],
) -> None:
    report = report_of(REFERENCE)
    assert _with_outcome(report, "ADVISORY") == set()
    assert _with_outcome(report, "BLOCKED") == set()
    assert len(_with_outcome(report, "PASS")) > 100, "rules that nothing applies to prove nothing"


def test_device_reference_passes_the_device_rules(report_of: Callable[[str], Report]) -> None:
    report = report_of(FIXED_DEVICE_RUN)
    assert report.failed == (), report.to_json()
    assert _with_outcome(report, "ADVISORY") == set()
    passed = _with_outcome(report, "PASS")
    assert {
        f"CAI-{n:02}" for n in (*range(1, 13), 14, 16, 17, 18, 22, 23, 25, 26, 29, 30)
    } <= passed
    assert {"DL-18", "DP-16", "DP-18", "DP-24", "XA-10", "XA-17", "GT-09", "GT-24"} <= passed
    if exchange_table.AVAILABLE:
        assert {f"DX-{n:02}" for n in (*range(1, 11), 12)} | {"XA-16"} <= passed


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("dying:SegfaultInTheGetter", "CRASH"),
        ("dying:HangInTheGetter", "TIMEOUT"),
        ("dying:OSErrorInTheGetter", "FAIL"),
        ("dying:CrashesOnTheTenthPlan", "UNSTABLE"),
        ("dying:ExitInProduce", "CRASH"),
    ],
)
def test_a_dying_producer_is_reported_as_such_and_the_run_goes_on(
    name: str, outcome: str, report_of: Callable[[str], Report]
) -> None:
    report = report_of(f"gridbuf_conformance_mutants.{name}")
    (broken,) = report.failed
    assert report.outcomes[broken] == outcome
    assert report.data["plans"]["observation"] > len(PLANS) / 2
    assert len(_with_outcome(report, "PASS")) > 60
    assert report.exit_code == 1


def test_every_mutant_names_rules_in_scope() -> None:
    in_scope = {rule.id: rule.level for rule in catalogue.select()}
    for mutant in zoo(every_python=True):
        assert mutant.breaks | mutant.advises <= in_scope.keys(), mutant.__name__
        assert all(in_scope[id_] == "MUST" for id_ in mutant.breaks), mutant.__name__
        assert mutant.__doc__.strip(), mutant.__name__


def test_every_required_rule_has_a_mutant_or_a_reason() -> None:
    assert set(rules_without_mutant()) == UNKILLED.keys()
    assert all(reason.strip() for reason in UNKILLED.values())


def test_published_table_is_current() -> None:
    current = KILLS_FILE.read_text(encoding="utf-8")
    assert current == render(), "run: python -m gridbuf_conformance_mutants"
