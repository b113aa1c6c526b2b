"""The same object gets the same verdict, however busy the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gridbuf_conformance.engine.consumer_run import check_exports
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.exports import interfaces
from gridbuf_conformance.exports.drawing import listed
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plan.profiles import PROFILES
from gridbuf_conformance.render.report import Report

_RIGHT_PRODUCERS = ("bytearray", "array", "gridbuf_conformance_mutants.reference:Reference")
_RIGHT_CONSUMERS = {
    "memoryview": "buffer",
    "gridbuf_conformance_mutants.host_consumer:array_interface": "array-interface",
    "gridbuf_conformance_mutants.importer:reference": "dlpack",
    "gridbuf_conformance_mutants.consume_dlpack:holds_the_capsule": "dlpack",
}
_PLANS = (Plan(), Plan(shape=(2, 3), dtype="uint8", fill=1))


def _is_known_to_race(name: str) -> bool:
    """Without a GIL, CPython 3.14.7 counts the exports of `array.array` wrongly (gh-154524)."""
    return name == "array" and not getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.fixture
def load() -> Iterator[None]:
    """A busy process for each processor, and one more."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(1 + (os.cpu_count() or 1))
    ]
    yield
    for process in busy:
        process.kill()
        process.wait()


def _report(name: str) -> Report:
    """On a few plans, or on one export of each variant that the profiles ask."""
    if name in _RIGHT_PRODUCERS:
        return check_plans(name, _PLANS, isolate=False, threads=not _is_known_to_race(name))
    exports = listed(interfaces()[_RIGHT_CONSUMERS[name]], threads=False)
    one_each = {export.variant.name: export for export in exports}
    return check_exports(name, one_each.values(), isolate=False)


def _get_one_verdict(runs: int) -> None:
    for name in (*_RIGHT_PRODUCERS, *_RIGHT_CONSUMERS):
        first, *others = (_report(name) for _ in range(runs))
        assert first.failed == (), str(first)
        assert name in _RIGHT_CONSUMERS or "FRAGILE" not in first.outcomes.values(), str(first)
        assert all(other.outcomes == first.outcomes for other in others), name


def test_two_runs_under_load_get_one_verdict(load: None) -> None:
    _get_one_verdict(2)


@pytest.mark.thorough
def test_twenty_runs_under_load_get_one_verdict(load: None) -> None:
    _get_one_verdict(20)


def test_only_the_profile_for_it_lets_threads_race() -> None:
    assert [name for name, profile in PROFILES.items() if profile.threads] == ["threads"]
    dlpack = interfaces()["dlpack"]
    racing = {export.variant.name for export in listed(dlpack) if export.variant.threads}
    assert racing == {"shared-capsule", "threads"}
    assert not any(export.variant.threads for export in listed(dlpack, threads=False))


def test_a_consumer_that_races_is_fragile_and_only_where_it_is_asked() -> None:
    racing = "gridbuf_conformance_mutants.consume_dlpack:RenamesAfterAPause"
    dlpack = interfaces()["dlpack"]
    for threads, outcome in ((False, "PASS"), (True, "FRAGILE")):
        exports = listed(dlpack, {"DP-05"}, threads=threads)
        report = check_exports(racing, exports, rules="DP-05", isolate=False)
        assert (report.outcomes["DP-05"], report.failed) == (outcome, ())
