"""The four golden inputs cover what a report can hold: a renderer is never compared on less."""

from __future__ import annotations

from rendering import CASES, load_case

from gridbuf_conformance.outcomes import Outcome
from gridbuf_conformance.render.summary import GROUPS, side_of

REPORTS = [report for name in CASES for report in load_case(name)[0]]
RULES = [rule for report in REPORTS for rule in report["rules"]]
FAILURES = [failure for rule in RULES for failure in rule["failures"]]
ABSENT = [library for name in CASES for library in load_case(name)[1]]


def test_every_outcome_is_rendered_alone_and_in_a_survey():
    alone = [load_case(name)[0][0] for name in CASES if name != "survey"]
    survey, _ = load_case("survey")
    for reports in (alone, survey):
        assert {rule["outcome"] for one in reports for rule in one["rules"]} == {*map(str, Outcome)}
        assert {side_of(report) for report in reports} == {"producer", "consumer"}


def test_every_rule_group_is_judged():
    passed = {rule["id"].partition("-")[0] for rule in RULES if rule["outcome"] == "PASS"}
    assert passed >= set(GROUPS) - {"CAI", "CS"}
    assert any(rule["id"].startswith("CAI") and rule["outcome"] == "FAIL" for rule in RULES)


def test_every_key_is_given_and_left_out():
    for key in ("plan", "note", "drawing", "replay"):
        assert {bool(failure[key]) for failure in FAILURES} >= {True}, key
    assert {bool(failure["drawing"]) for failure in FAILURES} == {True, False}
    assert {bool(report["notes"]) for report in REPORTS} == {True, False}
    assert {len(rule["failures"]) for rule in RULES} == {0, 1, 2}
    assert {library.failed for library in ABSENT} == {True, False}
    assert {bool(library.remedy) for library in ABSENT} == {True, False}


def test_runs_without_a_verdict_are_there():
    assert any(not report["rules"] for report in REPORTS), "nothing was selected"
    assert any(set(report["plans"]) == {"unsupported"} for report in REPORTS), "all was declined"
