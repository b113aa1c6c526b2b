"""Cases that the judge must not fail, contradictions of the published texts, and blocked rules."""

from __future__ import annotations

from typing import Any

import pytest
from observations import PLANS, fresh_observation, judge, place, remove

from gridbuf_conformance.info.values import describe
from gridbuf_conformance.outcomes import Outcome, Verdict
from gridbuf_conformance.rules import catalogue

VALUE_ERROR = {"type": "ValueError", "mro": ["ValueError", "Exception"], "text": ""}
RUNTIME_ERROR = {"type": "RuntimeError", "mro": ["RuntimeError", "Exception"], "text": ""}
ASSERTION = {"type": "AssertionError", "mro": ["AssertionError", "Exception"], "text": ""}
TYPE_ERROR = {"type": "TypeError", "mro": ["TypeError", "Exception"], "text": ""}


def verdict_of(rule: str, name: str, *changes: tuple[str, Any]) -> Verdict:
    observation = fresh_observation(name)
    for path, value in changes:
        place(observation, path, value)
    return judge(observation, PLANS[name], [rule])[rule]


@pytest.mark.parametrize(
    ("rule", "name", "changes"),
    [
        ("PB-01", "matrix", [("root.pb.FORMAT", {"error": VALUE_ERROR, "obj_is_null": True})]),
        ("PB-02", "matrix", [("root.pb.SIMPLE.view.ndim", 1)]),
        ("PB-02", "matrix", [("root.pb.SIMPLE.view.ndim", 0)]),
        ("DL-08", "matrix", [("root.main.version", [1, 1]), ("root.main.strides", None)]),
        ("DL-08", "matrix", [("root.dlpack.legacy.strides", None)]),
        ("DL-13", "scalar", [("root.main.shape", [99]), ("root.main.strides", [99])]),
        ("DL-15", "matrix", [("root.main.dtype", [5, 32, 1])]),
        ("DL-19", "matrix", [("root.main.deleter", "NULL")]),
        ("DP-12", "matrix", [("root.dlpack.max_version=(0,8).name", "dltensor")]),
        ("DP-15", "matrix", [("root.dlpack.stream=1", {"error": RUNTIME_ERROR})]),
        ("DP-15", "matrix", [("root.dlpack.stream=-1.error", lambda _: VALUE_ERROR)]),
        ("DP-15", "matrix", [("root.dlpack.stream=1", {"error": ASSERTION})]),
        ("PB-05", "matrix", [("root.pb.SIMPLE.view.itemsize", 1)]),
        ("PB-05", "matrix", [("root.pb.WRITABLE.view.itemsize", 1)]),
        ("DP-21", "matrix", [("root.dlpack.copy=False", {"error": VALUE_ERROR})]),
        ("DP-23", "matrix", [("root.dlpack.dl_device=(8,0)", {"error": VALUE_ERROR})]),
        ("AI-13", "complex", [("root.ai.fields.descr", describe([("r", "<f8"), ("i", "<f8")]))]),
        ("AI-21", "matrix", [("root.ai.fields.strides", describe(None))]),
        ("AI-14", "matrix", [("root.ai.fields.data.items.1", describe(1))]),
        ("AS-05", "matrix", [("root.struct.flags", 0x200)]),
        ("XA-03", "empty", [("root.ai.fields.strides", describe((7, 7)))]),
    ],
)
def test_legal_variety_passes(rule: str, name: str, changes: list[tuple[str, Any]]) -> None:
    observation = fresh_observation(name)
    for path, value in changes:
        if path.endswith(".error"):  # a call that the reference answers with a capsule
            place(observation, path.rpartition(".")[0], {"error": value(None)})
        else:
            place(observation, path, value)
    verdict = judge(observation, PLANS[name], [rule])[rule]
    assert verdict.outcome is Outcome.PASS, verdict


@pytest.mark.parametrize(
    ("rule", "name", "changes"),
    [
        ("AI-07", "booleans", [("root.ai.fields.typestr", describe("|f1"))]),
        ("DL-17", "matrix", [("root.main.device", [1, 3])]),
        ("DP-20", "matrix", [("root.dlpack.copy=True", {"error": RUNTIME_ERROR})]),
        ("DP-25", "record", [("root.main", {"error": TYPE_ERROR})]),
        ("DX-07", "matrix", [("root.exchange.bare.references.1", lambda count: count + 8)]),
        ("XA-18", "matrix", [("root.probes.__array_interface__", {"error": TYPE_ERROR})]),
    ],
)
def test_what_a_text_only_recommends_is_an_advisory(
    rule: str, name: str, changes: list[tuple[str, Any]]
) -> None:
    verdict = verdict_of(rule, name, *changes)
    assert verdict.outcome is Outcome.ADVISORY, verdict


@pytest.mark.parametrize(
    ("rule", "change", "right", "wrong"),
    [
        (
            "XA-04",
            ("root.ai.fields.typestr", describe("<i8")),
            "float of 8 bytes",
            "int of 8 bytes",
        ),
        ("XA-06", ("root.ai.fields.data.items.1", describe(True)), "writable", "read-only"),
    ],
)
def test_the_plan_says_which_of_two_interfaces_is_right(
    rule: str, change: tuple[str, Any], right: str, wrong: str
) -> None:
    observation = fresh_observation("matrix")
    for path, value in (("root.struct", None), change):
        place(observation, path, value)
    asked = judge(observation, PLANS["matrix"], [rule])[rule]
    assert asked.expected.endswith(f"{right}, as the plan asks and PB says"), asked
    assert asked.actual.endswith(f"{wrong} (AI)"), asked
    alone = judge(observation, None, [rule])[rule]
    assert alone.expected == "the same in all interfaces"
    assert f"{wrong} (AI), " in alone.actual and f"{right} (PB)" in alone.actual, alone


def _granted(request: str) -> dict[str, Any]:
    """An observation of Fortran-contiguous memory that grants a request without strides."""
    observation = fresh_observation("fortran")
    requests = observation["root"]["pb"]
    bare = {"strides": None} if request == "ND" else {"strides": None, "shape": None}
    requests[request] = {"view": {**requests["STRIDES"]["view"], **bare}}
    return observation


@pytest.mark.parametrize(("request_", "outcome"), [("SIMPLE", "ADVISORY"), ("ND", "FAIL")])
def test_plain_bytes_of_fortran_memory_are_only_advised(request_: str, outcome: str) -> None:
    verdict = judge(_granted(request_), PLANS["fortran"], ["PB-11"])["PB-11"]
    assert verdict.outcome == outcome, verdict


def test_types_without_a_typestr_need_not_agree() -> None:
    bfloat = [("root.main.dtype", [4, 16, 1]), ("root.ai.fields.typestr", describe("<u2"))]
    sizes = [("root.ai.fields.strides", describe(None)), ("root.pb", {}), ("root.struct", None)]
    observation = fresh_observation("matrix")
    for path, value in bfloat + sizes:
        place(observation, path, value)
    assert judge(observation, None, ["XA-04"])["XA-04"].outcome is Outcome.PASS
    place(observation, "root.main.dtype", [2, 16, 1])
    assert judge(observation, None, ["XA-04"])["XA-04"].outcome is Outcome.FAIL


@pytest.mark.parametrize("rule", ["GT-16", "GT-22", "GT-25"])
def test_a_halo_without_a_domain_names_no_aligned_element(rule: str) -> None:
    observation = fresh_observation("aligned")
    plan = PLANS["aligned"].replaced(halo=((2, 1), (0, 0)))
    verdict = judge(observation, plan, [rule])[rule]
    assert verdict.outcome is Outcome.UNSUPPORTED, verdict
    assert "leaves no domain" in verdict.note
    named = judge(observation, plan.replaced(aligned_index=(0, 0)), [rule])[rule]
    assert named.outcome is Outcome.PASS, named


def test_requests_without_shape_are_noted() -> None:
    assert "not judged" in verdict_of("PB-02", "matrix", ("root.pb.SIMPLE.view.ndim", 0)).note


@pytest.mark.parametrize("rule", ["XA-02", "XA-03"])
def test_dlpack_may_have_another_form(rule: str) -> None:
    form = [("root.main.ndim", 3), ("root.main.shape", [3, 4, 1]), ("root.main.strides", [1, 3, 1])]
    if rule == "XA-03":
        form = [("root.main.strides", [1, 3])]
    verdict = verdict_of(rule, "matrix", *form)
    assert verdict.outcome is Outcome.ADVISORY, verdict


def test_two_read_only_results_may_share() -> None:
    observation = fresh_observation("readonly")
    observation["second"].update({name: observation["root"][name] for name in ("ai", "pb", "main")})
    assert judge(observation, PLANS["readonly"], ["GT-21"])["GT-21"].outcome is Outcome.UNSUPPORTED


def test_interleaved_results_do_not_share() -> None:
    observation = fresh_observation("int64")
    for info, shift in ((observation["root"], 0), (observation["second"], 8)):
        info["pb"] = {}
        info.pop("main", None)
        place(info, "ai.fields.strides", describe((16,)))
        place(info, "ai.fields.data.items.0.value", 2**40 + shift)
    observation["root"].pop("struct")
    assert judge(observation, PLANS["int64"], ["GT-21"])["GT-21"].outcome is Outcome.PASS
    place(observation["second"], "ai.fields.data.items.0.value", 2**40 + 16)
    assert judge(observation, PLANS["int64"], ["GT-21"])["GT-21"].outcome is Outcome.FAIL


def test_moved_tensor_that_stays_mapped_does_not_fail() -> None:
    moved = {"refused": None, "mapped": True, "same_address": False}
    observation = fresh_observation("int64")
    observation["life"]["resizes"] = {"resize_": {"DL": moved}}
    assert judge(observation, PLANS["int64"], ["DL-29"])["DL-29"].outcome is Outcome.PASS


@pytest.mark.parametrize("rule", ["AI-22", "AI-28", "DL-14", "GT-24", "XA-10", "XA-11", "AS-07"])
def test_without_a_map_nothing_is_claimed(rule: str) -> None:
    observation = fresh_observation("matrix")
    observation["map_known"] = False
    for info in (observation["root"], observation["second"]):
        info["mapping"] = {}
    assert judge(observation, PLANS["matrix"], [rule])[rule].outcome is Outcome.UNTESTED


@pytest.mark.parametrize("rule", ["GT-16", "GT-17", "GT-20", "GT-21", "GT-23", "GT-24"])
def test_rules_of_a_plan_need_one(rule: str) -> None:
    observation = fresh_observation("aligned")
    verdict = judge(observation, None, [rule])[rule]
    assert verdict.outcome is Outcome.UNSUPPORTED
    assert "producer" in verdict.note


def test_precondition_blocks_and_is_named() -> None:
    observation = fresh_observation("matrix")
    remove(observation, "root.ai.fields.shape")
    verdicts = judge(observation, PLANS["matrix"], ["AI-02", "AI-03", "AI-22", "AI-33"])
    assert verdicts["AI-02"].outcome is Outcome.FAIL
    for rule in ("AI-03", "AI-22", "AI-33"):
        assert verdicts[rule].outcome is Outcome.BLOCKED
        assert verdicts[rule].note == "AI-02 failed"


def test_preconditions_are_judged_though_not_selected() -> None:
    verdict = verdict_of("AI-22", "matrix", ("root.ai.fields.shape", describe([3, 4])))
    assert verdict.note == "AI-03 failed"


@pytest.mark.parametrize("short", [8, 88])
def test_elements_outside_the_own_buffer_have_no_content_to_judge(short: int) -> None:
    """What is read behind the buffer is other memory: AI-17's failure, and not also XA-08's."""
    observation = fresh_observation("matrix")
    place(observation, "root.ai.fields.data", describe(None))
    place(observation, "root.pb.SIMPLE.view.len", short)
    place(observation, "root.walk.AI", lambda content: content[:-2] + "ff")
    verdicts = judge(observation, PLANS["matrix"], ["AI-17", "XA-08"])
    assert verdicts["AI-17"].outcome is Outcome.FAIL
    assert (verdicts["XA-08"].outcome, verdicts["XA-08"].note) == (Outcome.BLOCKED, "AI-17 failed")


def test_recommendation_that_is_not_met_blocks_nothing() -> None:
    assert catalogue.load()["PB-18"].level == "SHOULD"
    observation = fresh_observation("matrix")
    place(observation, "root.mapping.PB.read", False)
    verdicts = judge(observation, PLANS["matrix"], ["PB-18", "XA-08"])
    assert verdicts["PB-18"].outcome is Outcome.ADVISORY
    assert verdicts["XA-08"].outcome is Outcome.PASS


def test_getter_that_raises_on_the_probe_blocks_its_interface() -> None:
    observation = fresh_observation("matrix")
    place(observation, "root.probes.__array_interface__", {"error": TYPE_ERROR})
    remove(observation, "root.ai")
    verdicts = judge(observation, PLANS["matrix"], ["XA-18", "AI-01", "XA-11"])
    assert "AI-28" in catalogue.load()["XA-11"].preconditions, "rules of others are judged"
    assert verdicts["XA-11"].outcome is Outcome.PASS
    assert verdicts["XA-18"].outcome is Outcome.ADVISORY
    assert (verdicts["AI-01"].outcome, verdicts["AI-01"].note) == (Outcome.BLOCKED, "XA-18 failed")


@pytest.mark.parametrize(
    ("rule", "missing"),
    [("AI-22", "ai"), ("AS-05", "struct"), ("DL-14", "main"), ("DP-15", "main"), ("PB-03", "pb")],
)
def test_missing_interface_is_unsupported(rule: str, missing: str) -> None:
    observation = fresh_observation("matrix")
    observation["root"].pop(missing)
    if missing == "pb":
        observation["root"]["pb"] = {}
    assert judge(observation, PLANS["matrix"], [rule])[rule].outcome is Outcome.UNSUPPORTED


def test_rule_that_nothing_can_decide_says_so() -> None:
    verdict = judge(fresh_observation("matrix"), PLANS["matrix"], ["DL-11"])["DL-11"]
    assert verdict.outcome is Outcome.UNTESTED
    assert verdict.note


def test_verdict_on_the_view_says_so() -> None:
    moved = ("view.pb.FULL_RO.view.buf", lambda address: address - 40)
    assert "view operations" in verdict_of("PB-19", "reversed", moved).note
