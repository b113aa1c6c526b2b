"""The suite is tested with its mutants: each must break exactly the rules it names, and right
producers none.

Every mutant is a whole producer, measured and judged on the fixed plans of the zoo. The ordinary
run asks each mutant only the rules that it names. The thorough run asks every mutant all rules:
nothing else may fail.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from forked import ForkDied, in_fork

from gridbuf_conformance.engine.producer_run import check_plans, check_producer
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plan.profiles import PROFILES, Profile
from gridbuf_conformance.render.report import Report
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance_mutants import Mutant, consumer_zoo, exchange_table, kills, target, zoo
from gridbuf_conformance_mutants.kills import (
    UNKILLED,
    UNKILLED_BY_CONSUMERS,
    rules_without_mutant,
)
from gridbuf_conformance_mutants.plans import PLANS, on_device

DRAWN = Profile(
    "drawn", general=12, boundary=10, rank=2, huge=2, shrink_per_rule=0, shrink_in_all=0
)
TIME_LIMIT_S = 3.0
REFERENCE = "gridbuf_conformance_mutants.reference:Reference"
DEVICE_REFERENCE = "gridbuf_conformance_mutants.device:DeviceReference"
RIGHT_PRODUCERS = (
    REFERENCE,
    DEVICE_REFERENCE,
    "gridbuf_conformance_mutants.mirrors:MirrorReference",
    "gridbuf_conformance_mutants.packed:PackedReference",
    "gridbuf_conformance_mutants.reference:MemorylessReference",
    "gridbuf_conformance_mutants.streams:StreamReference",
)
ON_DEVICE = tuple(plan for kind in ("gpu", "pinned", "managed") for plan in on_device(kind))
_RULE_ID = re.compile(r"[A-Z]+-\d+")
MUTANTS = [pytest.param(mutant, id=mutant.__qualname__) for mutant in zoo()]


@cache
def _isolated(name: str, plans: tuple[Plan, ...] | None = None) -> Report:
    """The report of a run as users run it: all rules, a worker's process; None for drawn plans."""
    return Report(_run(name, plans, True))


def _run(name: str, plans: tuple[Plan, ...] | None, isolate: bool) -> dict[str, Any]:
    if plans is not None:
        return check_plans(name, plans, isolate=isolate, time_limit_s=TIME_LIMIT_S).data
    PROFILES[DRAWN.name] = DRAWN
    return check_producer(name, profile=DRAWN.name, isolate=isolate, time_limit_s=TIME_LIMIT_S).data


def _dies(mutant: type[Mutant]) -> bool:
    return mutant.__module__.endswith(".dying")


def _report_of(mutant: type[Mutant]) -> Report:
    """A fork of this process is enough for a mutant that lives; what dies or hangs has a worker."""
    plans = None if mutant.drawn else mutant.plans
    if not _dies(mutant):
        with contextlib.suppress(ForkDied):
            return Report(in_fork(_run, target(mutant), plans, False))
    return _isolated(target(mutant), plans)


def _first_broken(mutant: type[Mutant]) -> tuple[set[str], set[str]]:
    """Broken and advisory rules of those that a mutant names, on as few plans as possible."""
    rules = ",".join(mutant.breaks | mutant.advises)
    failed: set[str] = set()
    advised: set[str] = set()
    for plan in mutant.plans:
        report = check_plans(target(mutant), [plan], rules=rules, isolate=False)
        failed |= set(report.failed)
        advised |= _with_outcome(report, "ADVISORY") - failed
        if (failed, advised) == (mutant.breaks, mutant.advises):
            break
    return failed, advised


def _broken_and_advised(mutant: type[Mutant]) -> tuple[set[str], set[str]]:
    if not (mutant.drawn or _dies(mutant)):
        with contextlib.suppress(ForkDied):
            return in_fork(_first_broken, mutant)
    report = _report_of(mutant)
    return set(report.failed), _with_outcome(report, "ADVISORY")


def _with_outcome(report: Report, outcome: str) -> set[str]:
    return {id_ for id_, found in report.outcomes.items() if found == outcome}


# Those that wait for a time limit are in the thorough test below only.
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if not str(one.id).startswith("Hang")])
def test_mutant_breaks_each_rule_it_names(mutant: type[Mutant]) -> None:
    assert _broken_and_advised(mutant) == (mutant.breaks, mutant.advises), mutant.__doc__


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_breaks_exactly_what_it_names(mutant: type[Mutant]) -> None:
    report = _report_of(mutant)
    assert set(report.failed) == mutant.breaks, f"{mutant.__doc__}\n{report.to_json()}"
    assert _with_outcome(report, "ADVISORY") == mutant.advises, mutant.__doc__
    assert _with_outcome(report, "ERROR") == set()


@pytest.mark.parametrize("mutant", [mutant for mutant in zoo() if mutant.weakens])
def test_mutant_is_fragile_where_threads_race(mutant: type[Mutant]) -> None:
    report = check_plans(target(mutant), mutant.plans, threads=True, time_limit_s=TIME_LIMIT_S)
    assert report.failed == ()
    assert _with_outcome(report, "FRAGILE") == mutant.weakens, report
    assert "replay --threads" in report.to_json()


@pytest.mark.parametrize("name", RIGHT_PRODUCERS)
def test_right_producer_breaks_nothing(name: str) -> None:
    report = _isolated(name)
    assert report.failed == (), report.to_json()
    assert report.exit_code == 0
    assert _with_outcome(report, "ERROR") == set()


def test_reference_is_advised_nothing_and_passes_most_rules() -> None:
    report = _isolated(REFERENCE)
    assert _with_outcome(report, "ADVISORY") == set()
    assert _with_outcome(report, "BLOCKED") == set()
    assert len(_with_outcome(report, "PASS")) > 100, "rules that nothing applies to prove nothing"


def test_device_reference_passes_the_device_rules() -> None:
    report = _isolated(DEVICE_REFERENCE, ON_DEVICE)
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
        ("dying:CrashesOnTheTenthPlan", "UNSTABLE"),
        ("dying:ExitInProduce", "CRASH"),
    ],
)
def test_a_dying_producer_is_reported_as_such_and_the_run_goes_on(name: str, outcome: str) -> None:
    report = _isolated(f"gridbuf_conformance_mutants.{name}", PLANS)
    (broken,) = report.failed
    assert report.outcomes[broken] == outcome
    assert report.data["plans"]["observation"] > len(PLANS) / 2
    assert len(_with_outcome(report, "PASS")) > 60
    assert report.exit_code == 1


def test_every_mutant_names_rules_in_scope() -> None:
    in_scope = {rule.id: rule.level for rule in catalogue.select()}
    for mutant in zoo(every_python=True):
        assert mutant.breaks | mutant.advises <= in_scope.keys(), mutant.__name__
        fails = _dies(mutant) or all(in_scope[id_] == "MUST" for id_ in mutant.breaks)
        assert fails, f"{mutant.__name__}: only a death fails a rule that is not a MUST"
        assert mutant.__doc__.strip(), mutant.__name__


def test_every_required_rule_has_a_mutant_or_a_reason() -> None:
    assert set(rules_without_mutant()) == UNKILLED.keys()
    assert all(reason.strip() for reason in UNKILLED.values())


def test_the_printed_table_has_each_mutant_with_its_rules_and_each_rule_with_its_mutants() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", kills.__package__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    ).stdout.decode("utf-8")
    producers, consumers = printed.split("\n## Consumers", 1)
    for page, mutants in ((producers, zoo(every_python=True)), (consumers, consumer_zoo())):
        rows = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in page.splitlines()
            if line.startswith("| ")
        ]
        by_rule = {row[0]: row[2].split(", ") for row in rows if row[0] in catalogue.load()}
        for mutant in mutants:
            name, defect = mutant.__name__, " ".join(mutant.__doc__.split())
            found = [
                [{*_RULE_ID.findall(cell)} for cell in row[1:-1]]
                for row in rows
                if row[0].split(" (")[0] == name and row[-1].replace("\\|", "|") == defect
            ]
            advised = mutant.advises | mutant.weakens
            assert (mutant.breaks, advised) in [(row[0], set().union(*row[1:])) for row in found]
            assert all(name in by_rule[id_] for id_ in mutant.breaks | advised)
    for reasons, page in ((UNKILLED, producers), (UNKILLED_BY_CONSUMERS, consumers)):
        assert all(f"\n- {id_}: {reason}\n" in page + "\n" for id_, reason in reasons.items())
