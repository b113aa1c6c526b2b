"""The JUnit XML rendering: golden files, and the structure that build servers rely on."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from rendering import CASES, CATALOGUE, assert_golden, load_case

from gridbuf_conformance.render import junit


def tree_of(name: str) -> ElementTree.Element:
    reports, _ = load_case(name)
    return ElementTree.fromstring(junit.render(reports, catalogue=CATALOGUE).encode("utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    reports, _ = load_case(name)
    assert_golden(f"{name}.xml", junit.render(reports, catalogue=CATALOGUE))


@pytest.mark.parametrize("name", CASES)
def test_counts_match_the_cases(name):
    root = tree_of(name)
    for element in [root, *root.iter("testsuite")]:
        cases = list(element.iter("testcase"))
        assert int(element.get("tests")) == len(cases)
        for attribute, tag in (
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            assert int(element.get(attribute)) == sum(case.find(tag) is not None for case in cases)


@pytest.mark.parametrize("name", CASES)
def test_only_elements_and_attributes_of_the_format(name):
    """The vocabulary of the schema that Jenkins publishes for JUnit files."""
    allowed = {
        "testsuites": {"name", "tests", "failures", "errors", "skipped"},
        "testsuite": {"name", "tests", "failures", "errors", "skipped"},
        "properties": set(),
        "property": {"name", "value"},
        "testcase": {"classname", "name"},
        "failure": {"type", "message"},
        "error": {"type", "message"},
        "skipped": {"message"},
        "system-out": set(),
    }
    for element in tree_of(name).iter():
        assert set(element.attrib) <= allowed[element.tag]
    for case in tree_of(name).iter("testcase"):
        assert len(case) <= 1


def test_one_case_a_rule_with_the_right_result():
    reports, _ = load_case("crash")
    cases = {case.get("name").split()[0]: case for case in tree_of("crash").iter("testcase")}
    assert list(cases) == [rule["id"] for rule in reports[0]["rules"]]
    assert cases["XA-18"].find("failure").get("type") == "CRASH"
    assert cases["PB-01"].find("failure").get("type") == "TIMEOUT"
    assert "BLOCKED: XA-18 crashed" in cases["AI-01"].find("skipped").get("message")
    assert cases["DL-03"].find("error") is not None


def test_an_advisory_does_not_turn_a_build_red():
    cases = {case.get("name").split()[0]: case for case in tree_of("failures").iter("testcase")}
    assert cases["DL-12"].find("failure") is None
    assert "data is not NULL" in cases["DL-12"].find("system-out").text


def test_hostile_text_survives_the_round_trip():
    case = next(one for one in tree_of("hostile").iter("testcase") if "PB-03" in one.get("name"))
    failure = case.find("failure")
    assert r"\x1b[2J" in failure.text
    assert "<script>alert(1)</script> ]]> \\ud800" in failure.text
    assert "日本語" in failure.text


def test_no_reports_are_no_suites():
    assert junit.render([], catalogue=CATALOGUE) == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<testsuites name="gridbuf-conformance" tests="0" failures="0" errors="0" skipped="0" />\n'
    )
