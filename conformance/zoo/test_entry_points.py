"""The table of entry points: every target is in it, each one that it names exists, and failures go to the right library."""

from __future__ import annotations

import entry_points
import pytest
import records
from entry_points import EntryPoint
from records import RESULTS, read_json

from gridbuf_conformance import named_consumers, producers

ZOO = records.load()
POINTS = entry_points.load()
JUDGED = {
    (side, target, e.library) for e in ZOO.environments.values() for side, target in e.targets
}


def _named(point: EntryPoint) -> str:
    return f"{point.library} {point.name} ({point.side})"


def test_every_target_of_the_zoo_drives_an_entry_point_of_its_library():
    listed = {(p.side, target, p.library) for p in POINTS for target in p.targets}
    assert listed == JUDGED


def test_every_library_of_the_suite_without_a_device_is_in_the_table():
    built_in = {
        (side, name)
        for side, registry in (("producer", producers), ("consumer", named_consumers))
        for name, entry in registry.BUILT_IN.items()
        if not entry.needs_gpu and entry.needs != "gridbuf" and name != "xarray"
    }
    assert built_in <= {(side, target) for side, target, _ in JUDGED}


@pytest.mark.parametrize("point", POINTS, ids=_named)
def test_an_entry_point_has_a_target_or_a_reason(point: EntryPoint):
    assert bool(point.targets) != bool(point.reason)
    assert point.link.startswith("https://")
    assert not point.reason or point.reason.endswith(".")
    assert not point.through or point.targets


def test_no_entry_point_is_listed_twice():
    named = [_named(point) for point in POINTS]
    assert len(named) == len(set(named))


def test_the_lists_that_were_compared_are_there():
    libraries = {point.library for point in POINTS}
    assert set(entry_points.compared()) <= libraries
    assert len(entry_points.compared()) == len(set(entry_points.compared())) >= 15


def test_who_reads_for_a_library_is_judged_too():
    libraries = {environment.library for environment in ZOO.environments.values()}
    assert {point.through for point in POINTS if point.through} <= libraries


def test_a_failure_elsewhere_is_one_of_the_library_that_reads():
    readers = {(p.side, target): p.through for p in POINTS for target in p.targets}
    broken = {
        (result["library"], target["side"], rule)
        for result in map(read_json, RESULTS.glob("*-*.json"))
        for target in result["targets"]
        for rule in target.get("failures", {})
    }
    failures = entry_points.elsewhere()
    assert ("consumer", "jax.numpy.asarray", "XA-15") in failures
    assert ("consumer", "zoo/consumers.py:opencv_copied", "AI-34") not in failures
    assert all((readers[side, target], side, rule) in broken for side, target, rule in failures)
