"""A report names the cause: what follows from it is blocked, and comes later."""

from __future__ import annotations

from typing import Any

import pytest

import gridbuf_conformance as gc
from gridbuf_conformance.engine.consumer_run import check_exports
from gridbuf_conformance.engine.tally import Tally
from gridbuf_conformance.exports import interfaces
from gridbuf_conformance.exports.drawing import listed
from gridbuf_conformance.outcomes import Outcome, Verdict
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.render.summary import findings, remedy, rule_text
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance_mutants.consume_dlpack import ReversesTheLastAxis
from gridbuf_conformance_mutants.dlpack import StridesInBytes


def test_byte_strides_are_dl_09_and_not_the_offset_of_a_view() -> None:
    report = gc.check_producer(StridesInBytes(), "smoke", isolate=False)
    assert report.failed == ("DL-09",)
    assert "Divide byte strides by itemsize." in str(report)
    assert "byte_offset to 0" not in str(report)


def test_a_consumer_that_reverses_every_array_does_not_fail_the_rule_of_strides() -> None:
    exports = listed(interfaces()["dlpack"], threads=False)
    report = check_exports(ReversesTheLastAxis, exports, isolate=False)
    assert report.failed == ("DP-30",)


@pytest.mark.parametrize("shape", [(2, 3), (4,)])
def test_values_have_their_index(shape: tuple[int, ...]) -> None:
    export = listed(interfaces()["dlpack"])[0].replaced(shape=shape, dtype="int16", fill=1)
    report = check_exports(ReversesTheLastAxis, [export], isolate=False, rules="DP-30")
    (rule,) = report.data["rules"]
    (failure,) = rule["failures"]
    first, last = (
        int.from_bytes(export.element_bytes(index), "little")
        for index in ((0,) * len(shape), (*(0,) * (len(shape) - 1), shape[-1] - 1))
    )
    assert failure["expected"] == f"{first} at element {[0] * len(shape)}"
    assert failure["actual"] == str(last)


def _rule(id_: str, outcome: str = "FAIL", drawing: Any = None) -> dict[str, Any]:
    failure = {"outcome": outcome, "drawing": drawing, "plan": None}
    return {"id": id_, "level": "MUST", "outcome": outcome, "plans": 1, "failures": [failure]}


def test_a_cause_comes_before_a_drawing() -> None:
    rules = [_rule("AI-01"), _rule("DL-10", drawing={"kind": "layout"}), _rule("DL-09")]
    target = {"name": "x", "version": "", "side": "producer", "python": "", "platform": ""}
    report = {"target": target, "rules": rules, "profile": "smoke"}
    found = findings([report], ("failed",))
    ids = [finding.rule_id for finding in found]
    assert ids.index("DL-09") < ids.index("DL-10")


@pytest.mark.parametrize("outcome", ["CRASH", "TIMEOUT", "UNSTABLE"])
def test_a_death_has_no_remedy_of_a_rule(outcome: str) -> None:
    text = rule_text(catalogue.load(), "DL-09")
    assert remedy(_rule("DL-09"), text) == text.fix != ""
    assert remedy(_rule("DL-09", outcome), text) == ""


def test_up_to_three_different_failures_are_kept() -> None:
    tally = Tally(catalogue.load()["DL-09"])
    told = ("strides [8]", "strides [16, 8]", "no strides", "a pointer", "another type")
    for number, actual in enumerate(told):
        verdict = Verdict(Outcome.FAIL, "strides in elements", actual)
        tally.record(Plan(shape=(number + 2,)), verdict)
    shown = [verdict.actual for _, verdict in tally.smallest_failures()]
    assert shown == ["strides [8]", "no strides", "a pointer"]


def test_a_report_says_on_how_many_plans_and_what_it_rests_on() -> None:
    report = gc.check_producer(StridesInBytes(), "smoke", isolate=False, rules="dl-09")
    (rule,) = report.data["rules"]
    text = str(report)
    assert f"on {rule['failing']} of {rule['plans']} plans" in text
    assert 0 < rule["failing"] < rule["plans"]
    source = catalogue.load()["DL-09"].source
    assert source.says[:40] in text and source.url in text
    assert "not judged" in str(gc.check(bytearray(8), rules="PB,CAI"))


def test_the_last_line_on_a_live_object_says_what_was_not_looked_at() -> None:
    last = " ".join(str(gc.check(bytearray(8))).splitlines()[-2:])
    assert last.startswith("Not looked at") and "values, views" in last and "produce(plan)" in last
