"""A library that is wrong, under the C++ suite, as its maintainer runs it: which tests fail, and what they say."""

import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = pathlib.Path(__file__).parent / "wrong_suite"

# In a sanitizer build the program has its own runtime, and must not get this interpreter's as well.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Exit code, printed text, and {suite: {test: record}} of GoogleTest's JSON."""
    path = tmp_path_factory.mktemp("gtest") / "result.json"
    done = subprocess.run(
        [PROGRAM, f"--gtest_output=json:{path}"],
        capture_output=True,
        text=True,
        timeout=120,
        env=ENVIRONMENT,
    )
    suites = json.loads(path.read_text())["testsuites"]
    tests = {s["name"].split("/")[0]: {t["name"]: t for t in s["testsuite"]} for s in suites}
    return done, tests


def test_exactly_the_broken_rule_fails(ran):
    done, tests = ran
    failed = {
        (suite, name)
        for suite, cases in tests.items()
        for name in cases
        if "failures" in cases[name]
    }
    assert failed == {("byte_strides", "DL_09"), ("declining", "SomethingIsMade")}
    assert done.returncode == 1


def test_the_failure_names_rule_plan_and_replay(ran):
    text = ran[1]["byte_strides"]["DL_09"]["failures"][0]["failure"]
    for part in (
        "DL-09  MUST  FAIL",
        "strides count elements, not bytes",
        'shape_2  {"shape":[2],"dtype":"float64"',
        "GRIDBUF_CONFORMANCE_PLAN='shape_2'",
    ):
        assert part in text


def test_advisories_pass_and_are_recorded(ran):
    case = ran[1]["byte_strides"]["DL_03"]
    assert "failures" not in case
    assert case["outcome"] == "ADVISORY"
    assert "DL-03  SHOULD  ADVISORY" in ran[0].stdout


def test_what_was_not_judged_is_skipped_with_its_reason(ran):
    assert ran[1]["byte_strides"]["GT_17"]["result"] == "SKIPPED"
    assert ran[1]["declining"]["DL_01"]["result"] == "SKIPPED"
    assert "UNSUPPORTED: not today" in ran[0].stdout


def test_one_plan_can_be_run_alone():
    done = subprocess.run(
        [PROGRAM, "--gtest_filter=byte_strides*DL_09"],
        env={"GRIDBUF_CONFORMANCE_PLAN": "shape_1", "GRIDBUF_CONFORMANCE_TRACE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout  # one element: no stride matters
    assert done.stderr.count("plan shape_1") == 1
