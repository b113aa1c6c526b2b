"""Which arrays the rules of GT4Py and of storages judge: those that say so, and those for which
they are asked.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import run

import gridbuf_conformance as gc
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance_mutants import allocation, mirrors
from gridbuf_conformance_mutants.reference import Reference

PLAN = Plan(shape=(3, 4), fill=3)
DEFECTS = [
    (allocation.AlwaysRowMajor, "GT-17", PLAN.replaced(layout=(1, 0))),
    (allocation.StridesVary, "GT-23", PLAN),
    (mirrors.MirrorIsStale, "XA-17", PLAN.replaced(device="gpu")),
]


def ordinary(producer: type[Reference], **declared: Any) -> Reference:
    """The producer, which declares no feature of storages, or only these."""
    nothing = {"layouts": None, "alignment_bytes": None, "dims": None, "halo": None, "declares": ()}
    made = producer()
    made.capabilities = replace(producer.capabilities, **{**nothing, **declared})
    return made


def judged(producer: Reference, plan: Plan, **options: Any) -> gc.Report:
    return check_plans(producer, [plan], isolate=False, **options)


@pytest.mark.parametrize(("producer", "rule", "plan"), DEFECTS)
def test_an_ordinary_producer_is_judged_by_them_only_if_they_are_asked(
    producer: type[Reference], rule: str, plan: Plan
) -> None:
    report = judged(ordinary(producer), plan)
    assert report.failed == () and report.exit_code == 0, report.to_json()
    (entry,) = (one for one in report.data["rules"] if one["id"] == rule)
    assert entry["outcome"] == "UNSUPPORTED" and "--storage" in entry["note"]
    assert report.outcomes["GT-20"] == "PASS", "it holds for all"
    assert judged(ordinary(producer), plan, storage=True).failed == (rule,)


@pytest.mark.parametrize(("producer", "rule", "plan"), DEFECTS)
@pytest.mark.parametrize("declared", [{"layouts": "any"}, {"declares": {"halo"}}])
def test_a_producer_that_declares_a_feature_is_judged_by_them(
    producer: type[Reference], rule: str, plan: Plan, declared: dict[str, Any]
) -> None:
    assert judged(ordinary(producer, **declared), plan).failed == (rule,)


def test_an_array_with_an_attribute_of_gt4py_is_judged_by_them() -> None:
    live = Reference().produce(PLAN)
    assert gc.check(live).failed == ()
    live.__gt_dims__ = ("I", "-1")
    assert gc.check(live).failed == ("GT-18",)


def test_a_live_object_is_judged_by_them_if_they_are_asked() -> None:
    array = mirrors.MirrorIsStale().produce(PLAN.replaced(device="gpu"))
    table = mirrors.MirrorReference().device_table()
    assert gc.check(array, device_table=table).failed == ()
    assert gc.check(array, device_table=table, storage=True).failed == ("XA-17",)


def test_all_but_one_of_the_rules_without_a_published_text_are_for_storages() -> None:
    others = [rule for rule in catalogue.load().values() if not rule.is_published]
    assert [rule.id for rule in others if not rule.is_for_storages] == ["GT-20"]
    assert {rule.group for rule in others} == {"GT", "XA"}


PRODUCER = """
SHARED = bytearray(64)

class Producer:
    name = "shared"
    def produce(self, plan):
        SHARED[:plan.nbytes] = plan.content()
        return memoryview(SHARED)[:plan.nbytes]
"""
DECLARED = """
    from gridbuf_conformance import Capabilities
    capabilities = Capabilities(dtypes=("uint8",), min_ndim=1, max_ndim=1, max_nbytes=64,
                                readonly=(False,), byteorders=("native",))
"""


def test_the_command_takes_the_option_and_its_replay_command_repeats_it(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(PRODUCER + DECLARED)
    command = ("check", "shared.py:Producer", "--profile", "smoke", "--rules", "GT-*")
    assert run(*command, cwd=tmp_path).returncode == 0
    asked = run(*command, "--storage", cwd=tmp_path)
    assert asked.returncode == 1 and "GT-21" in asked.stdout
    (line,) = (line for line in asked.stdout.splitlines() if "replay --storage" in line)
    replayed = run(*shlex.split(line)[2:], cwd=tmp_path)
    assert replayed.returncode == 1 and "GT-21" in replayed.stdout, line
