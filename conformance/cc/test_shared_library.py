"""C++ libraries under the suite: the rules that each of test_producers.cc breaks, the report."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from gridbuf_conformance.api import check_producer
from gridbuf_conformance.cli import main
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.producers.shared_library import RULES

HERE = pathlib.Path(__file__).parent
LIBRARY = str(HERE / "test_producers.so")
EXAMPLE = HERE.parents[1] / "examples/cc_suite_user"

PLANS = [
    *(Plan(shape=shape) for shape in ((1,), (2,), (), (0,), (2, 3), (5, 7, 3))),
    *(Plan(shape=(3,), dtype=name) for name in ("float32", "bool", "longdouble", "bfloat16")),
    Plan(shape=(3,), dtype="int16", byteorder="swapped"),
    Plan(shape=(2, 3), readonly=True),
    Plan(shape=(3, 4), views=(("reverse", 0), ("transpose", (1, 0)))),
    Plan(shape=(3, 4), views=(("slice", 1, 1, 4, 2), ("newaxis", 0), ("broadcast", 0, 3))),
]
NARROW = [
    Plan(shape=shape, dtype=name)
    for shape in ((5,), (2, 3))
    for name in ("float64", "int4", "float6_e2m3fn", "float4_e2m1fn")
]

RIGHT = {"right": PLANS, "right_narrow": NARROW, "right_legacy": PLANS, "right_shared": PLANS}
BREAKS: dict[str, set[str]] = {
    "second_major": {"DL-02"},
    "no_shape": {"DL-07"},
    "byte_strides": {"DL-09"},
    "unknown_device": {"DL-17"},
    "reversed": {"XA-08"},
    "high_bits_first": {"DL-25"},
    "five_bits_for_six": {"DL-26"},
    "deleter_frees_nothing": {"DL-19"},
    "deleter_is_data": {"DL-19"},
    "copied_flag": {"DL-05"},
    "throwing": {"GT-20"},
    "nothing": {"GT-20"},
}


def outcomes(name: str, plans: list[Plan]) -> dict[str, str]:
    return check_plans(f"{LIBRARY}:{name}", plans, rules=RULES, isolate=False).outcomes


def having(found: dict[str, str], outcome: str) -> set[str]:
    return {rule for rule, one in found.items() if one == outcome}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_library_breaks_nothing(name: str) -> None:
    found = outcomes(name, RIGHT[name])
    assert found.pop("DL-11") == "UNTESTED"  # no export can break it
    assert set(found.values()) <= {"PASS", "UNSUPPORTED"}
    assert {"DL-01", "DL-15", "DL-17", "GT-20"} <= having(found, "PASS")


def test_what_is_judged() -> None:
    """DL-05 needs several exports of an array, DL-25 and DL-26 elements of less than a byte."""
    moved, shared = outcomes("right", PLANS), outcomes("right_shared", PLANS)
    assert {"DL-08", "DL-09", "DL-10", "DL-14", "DL-19", "DL-20", "DL-21", "XA-08"} <= having(
        moved, "PASS"
    )
    assert moved["DL-05"] == "UNSUPPORTED"
    assert shared["DL-05"] == "PASS"
    narrow = having(outcomes("right_narrow", NARROW), "PASS")
    assert {"DL-25", "DL-26"} <= narrow


def test_both_forms_are_judged() -> None:
    """A library that makes legacy tensors only has no version to judge."""
    legacy = outcomes("right_legacy", PLANS)
    assert legacy["DL-02"] == "UNSUPPORTED"
    assert legacy["XA-08"] == "PASS"


@pytest.mark.parametrize("name", BREAKS)
def test_a_wrong_library_breaks_exactly_these_rules(name: str) -> None:
    if name == "deleter_frees_nothing" and "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("NOT tested with a sanitizer: its allocator cannot be counted")
    plans = PLANS if name == "copied_flag" else NARROW
    assert having(outcomes(name, plans), "FAIL") == BREAKS[name]


def test_an_advisory_is_not_a_failure() -> None:
    found = outcomes("stray_flag", NARROW)
    assert having(found, "ADVISORY") == {"DL-03"}
    assert having(found, "FAIL") == set()


def test_a_promise_that_is_never_kept_fails() -> None:
    report = check_producer(f"{LIBRARY}:broken_promise", "smoke", isolate=False)
    assert list(report.failed) == ["GT-20"]
    assert "declared capability (layouts)" in str(report)


def test_a_crash_is_a_verdict() -> None:
    """The library runs in a separate process, which ends; the run does not."""
    plans = [Plan(), Plan(shape=(2, 3)), Plan(shape=(1, 2, 3))]
    report = check_plans(f"{LIBRARY}:crashing", plans, rules=RULES)
    assert having(report.outcomes, "CRASH") == {"GT-20"}
    assert report.outcomes["XA-08"] == "PASS"
    assert "SIGABRT" in str(report)


def test_the_report_has_what_a_maintainer_needs(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "junit.xml"
    arguments = ["check", f"{LIBRARY}:byte_strides", "--profile", "smoke", "--report", str(path)]
    assert main(arguments) == 1
    cases = {case.get("name", "")[:5]: case for case in ElementTree.parse(path).iter("testcase")}
    # The other rules would judge the Python methods, which are the suite's.
    assert {rule.partition("-")[0] for rule in cases} == {"DL", "GT", "XA"}
    (failed,) = (case for case in cases.values() if case.find("failure") is not None)
    text = "".join(failed.itertext())
    assert "DL-09" in failed.get("name", "")
    for part in (
        "strides count elements, not bytes",
        "reach the elements only when taken as bytes",
        '"shape":[2]',
        "gridbuf-conformance replay",
        "test_producers.so:byte_strides DL-09",
    ):
        assert part in text


def test_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    assert main(["check", f"{LIBRARY}:declining", "--profile", "smoke"]) == 5
    assert main(["check", LIBRARY]) == 4
    assert "name one of its suites" in capsys.readouterr().err
    text = tmp_path / "text.so"
    text.write_text("not a library")
    assert main(["check", str(text)]) == 4
    libc = shutil.copy("/proc/self/exe", tmp_path / "program.so")
    assert main(["check", str(libc)]) == 4


def test_the_cmake_project(tmp_path: pathlib.Path) -> None:
    """The example is built and judged without Bazel."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop(
        "LD_PRELOAD", None
    )  # in a sanitizer build: the compiler must not get its runtime
    python = f"-DPython3_EXECUTABLE={sys.executable}"
    for command in (
        ["cmake", "-S", str(EXAMPLE), "-B", str(tmp_path), python],
        ["cmake", "--build", str(tmp_path)],
        ["ctest", "--test-dir", str(tmp_path), "--verbose"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "row conforms" in done.stdout
