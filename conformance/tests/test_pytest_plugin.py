"""The pytest plugin, as a project uses it: pytest over producers that are right and wrong, in its
own folder.

What is checked is what a user sees: ids, outcomes, texts, JUnit. Most tests run pytest in this
process and ask few plans, for the plugin turns reports into tests and does not make them; the
producers still run in workers. What depends on the process (pytest-xdist, imported modules) starts
one as a user does, with the real profile.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gridbuf_conformance
from gridbuf_conformance.plan import profiles

pytest_plugins = ["pytester"]

PACKAGE_FOLDER = str(Path(gridbuf_conformance.__file__).parents[1])
RULES = "AI-01,AI-02,PB-01,PB-02,XA-08"

# Bytes that say wrong things of themselves. Each import of the module, one a run of the suite, is a
# line of a file.
PRODUCERS = """
import os
import gridbuf_conformance as gc

with open(os.path.join(os.path.dirname(__file__), "runs.txt"), "a") as runs:
    runs.write("run\\n")

BYTES = gc.Capabilities(dtypes=("uint8",), min_ndim=1, max_ndim=1, max_extent=64,
                        layouts="C", byteorders=("native",), readonly=(False,))

class Right:
    name = "right"
    capabilities = BYTES
    def produce(self, plan):
        return bytearray(plan.content())

class Wrong(Right):
    name = "wrong"
    def produce(self, plan):
        class Array(bytearray):
            __array_interface__ = "not a dict"
        return Array(plan.content())

class Advised(Right):
    name = "advised"
    def produce(self, plan):
        class Array(bytearray):
            @property
            def __array_interface__(self):
                return {"version": 3, "typestr": "|u1", "shape": (len(self),)}
        return Array(plan.content())

class Declining(Right):
    name = "declining"
    def produce(self, plan):
        return gc.Unsupported("nothing can be made today")

class Raising(Right):
    name = "raising"
    def produce(self, plan):
        if plan["shape"][0] > 5:
            raise RuntimeError("more than five")
        return bytearray(plan.content())

class Dying(Right):
    name = "dying"
    def produce(self, plan):
        os.abort()
"""

SHARED = """
import gridbuf_conformance as gc

SHARED = bytearray(64)

class Producer:
    capabilities = gc.Capabilities(dtypes=("uint8",), min_ndim=1, max_ndim=1, max_nbytes=64,
                                   byteorders=("native",), readonly=(False,))
    def produce(self, plan):
        return memoryview(SHARED)[:plan.nbytes]
"""


def configure(pytester: pytest.Pytester, **values: object) -> None:
    """Writes the table of the suite."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    pytester.makepyprojecttoml("\n".join(["[tool.gridbuf-conformance]", *lines]))


FEW = profiles.Profile("smoke", 6, 6, 1, 0, shrink_per_rule=5, shrink_in_all=10)


@pytest.fixture(scope="module", autouse=True)
def whole_suite_imported():
    """pytester forgets the modules that were imported while it ran; the suite's modules must stay
    the same ones.
    """
    for module in pkgutil.walk_packages(gridbuf_conformance.__path__, "gridbuf_conformance."):
        if not re.search(r"__main__|\.plugins\.libraries\.", module.name):
            importlib.import_module(module.name)


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with producers; calling it runs pytest there and returns its result."""
    (pytester.path / "producers.py").write_text(PRODUCERS)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([PACKAGE_FOLDER, os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    for name in ("smoke", "default"):
        monkeypatch.setitem(profiles.PROFILES, name, replace(FEW, name=name))

    def run(*arguments: str, rules: str = RULES, alone: bool = False) -> pytest.RunResult:
        selection = [f"--gridbuf-rules={rules}"] if rules else []
        selection += ["--gridbuf-profile=smoke"] if alone else []
        plugin = ("-p", "gridbuf_conformance.pytest_plugin", "-p", "no:cacheprovider")
        start = pytester.runpytest_subprocess if alone else pytester.runpytest_inprocess
        return start(*plugin, *selection, *arguments)

    return run


def runs(pytester: pytest.Pytester) -> int:
    return len((pytester.path / "runs.txt").read_text().splitlines())


# What the outcomes become
# ----------------------------------------------------------------------------------


def test_items_are_the_rules_and_the_run_is_one(project, pytester):
    done = project("--gridbuf-producer", "producers.py:Right", "-v", alone=True)
    done.stdout.fnmatch_lines(["gridbuf::producers.py:Right::PB-01 PASSED*"])
    assert done.ret == pytest.ExitCode.OK
    done.assert_outcomes(passed=3, skipped=2)
    assert runs(pytester) == 1


def test_a_broken_must_fails_with_the_failure_and_its_replay(project):
    done = project("--gridbuf-producer", "producers.py:Wrong")
    done.assert_outcomes(passed=2, failed=1, skipped=2)
    done.stdout.fnmatch_lines(
        [
            "*producers.py:Wrong AI-01*",
            "FAIL: 'not a dict'; expected a dict",
            "*requirement*`__array_interface__` is a dict.",
            "*replay*gridbuf-conformance replay producers.py:Wrong AI-01 *",
            "wrong does not conform: 1 of 3 rules failed (AI-01).",
            "FAILED gridbuf::producers.py:Wrong::AI-01 - Failed: FAIL: 'not a dict'*",
        ]
    )


def test_the_rules_of_storages_judge_an_ordinary_producer_if_they_are_asked(project, pytester):
    (pytester.path / "shared.py").write_text(SHARED)
    unasked = project("--gridbuf-producer=shared.py:Producer", "-rs", rules="GT-21")
    unasked.assert_outcomes(skipped=1)
    unasked.stdout.fnmatch_lines(["SKIPPED * UNSUPPORTED: for arrays with GT4Py's attributes*"])
    asked = project("--gridbuf-producer=shared.py:Producer", "--gridbuf-storage", rules="GT-21")
    asked.assert_outcomes(failed=1)
    configure(pytester, producers=["shared.py:Producer"], storage=True)
    project(rules="GT-21").assert_outcomes(failed=1)


def test_the_editions_of_documents_leave_out_newer_rules(project):
    right = "--gridbuf-producer=producers.py:Right"
    project(right, rules="XA-18").assert_outcomes(passed=1)
    older = project(right, "--gridbuf-spec=python-3.1", "-rs", rules="XA-18")
    older.assert_outcomes(skipped=1)
    older.stdout.fnmatch_lines(["SKIPPED * UNSUPPORTED: its text is of python-3.2, newer*"])
    unknown = project(right, "--gridbuf-spec=dlpack-7", rules="XA-18")
    assert unknown.ret == pytest.ExitCode.USAGE_ERROR
    unknown.stderr.fnmatch_lines(["*no rule cites an edition 'dlpack-7'; * dlpack-0.2, 0.3*"])


def test_what_was_not_judged_is_skipped_with_the_reason(project):
    done = project("--gridbuf-producer", "producers.py:Wrong", "-rs")
    done.stdout.fnmatch_lines(["SKIPPED * BLOCKED: AI-01 failed"])


def test_an_advisory_passes_even_where_warnings_are_errors(project):
    done = project(
        "--gridbuf-producer=producers.py:Advised", "-W", "error", "-rP", rules="AI-19", alone=True
    )
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        [
            "*producers.py:Advised AI-19*",
            "*Captured advisory call*",
            "*AI-19*SHOULD*ADVISORY*",
            "advised conforms: *Advisories: AI-19.",
        ]
    )


def test_a_death_is_a_failure_of_the_rule_that_it_counts_against(project):
    done = project("--gridbuf-producer", "producers.py:Dying", rules="PB-01,GT-20")
    done.assert_outcomes(failed=1, skipped=1)
    done.stdout.fnmatch_lines(["CRASH: *SIGABRT*", "FAILED gridbuf::producers.py:Dying::GT-20*"])


def test_a_failure_that_no_selected_test_carries_is_an_error(project):
    """`check --rules PB-01` exits with 1 here, for GT-20 kept plans from being judged."""
    done = project("--gridbuf-producer", "producers.py:Raising", rules="PB-01")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["GT-20 failed as well, though not selected:", "*more than five*"])


def test_a_producer_that_declines_everything_is_an_error(project):
    done = project("--gridbuf-producer", "producers.py:Declining", rules="PB-01,PB-02")
    done.assert_outcomes(skipped=2, errors=1)
    done.stdout.fnmatch_lines(["*declined every plan: nothing was judged*"])


def test_a_target_that_cannot_be_loaded_is_one_error(project):
    done = project("--gridbuf-producer", "producers.py:Missing")
    done.assert_outcomes(errors=1, skipped=4)
    done.stdout.fnmatch_lines(["*cannot judge the producer*has no 'Missing'*"])


def test_rules_that_do_not_exist_are_a_usage_error(project):
    done = project("--gridbuf-producer", "array", rules="PV-01")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*no rule matches 'PV-01'*"])


# Known failures, consumers
# ---------------------------------------------------------------------------------

KNOWN = """
[[known]]
rule = "{rule}"
producer = "producers.py:Wrong"
plan = '{{"dtype":"uint8"}}'
reason = "our dict is a text, see issue 12"
"""


def test_a_known_failure_is_xfailed_with_its_reason(project, pytester):
    (pytester.path / "known.toml").write_text(KNOWN.format(rule="AI-01"))
    configure(pytester, known=["known.toml"])
    done = project("--gridbuf-producer", "producers.py:Wrong", "-rx")
    done.assert_outcomes(passed=2, xfailed=1, skipped=2)
    done.stdout.fnmatch_lines(["XFAIL gridbuf::producers.py:Wrong::AI-01 - *see issue 12*"])
    again = project("--gridbuf-producer", "producers.py:Wrong", "--runxfail")
    again.assert_outcomes(passed=2, failed=1, skipped=2)


def test_a_known_failure_that_is_gone_fails(project, pytester):
    (pytester.path / "known.toml").write_text(KNOWN.format(rule="PB-01"))
    done = project("--gridbuf-producer=producers.py:Wrong", "--gridbuf-known=known.toml", "-rf")
    done.stdout.fnmatch_lines(["FAILED gridbuf::producers.py:Wrong::PB-01 - Failed: XPASS*"])


def test_a_bad_file_of_known_failures_is_one_error(project, pytester):
    (pytester.path / "known.toml").write_text(KNOWN.format(rule="PB-999"))
    done = project("--gridbuf-producer=producers.py:Wrong", "--gridbuf-known=known.toml")
    done.assert_outcomes(errors=1, skipped=4)
    done.stdout.fnmatch_lines(["*cannot judge the producer: known.toml*PB-999*"])


def test_consumers_are_judged_by_their_rules(project, pytester):
    (pytester.path / "consumers.py").write_text(
        "def right(exporter): return memoryview(exporter)\n"
        "def wrong(exporter): return memoryview(bytes(memoryview(exporter).nbytes))\n"
    )
    named = [f"--gridbuf-consumer=consumers.py:{name}" for name in ("right", "wrong")]
    done = project(*named, "-v", rules="PB-*,XA-*")
    done.stdout.fnmatch_lines(
        [
            "gridbuf-consumer::consumers.py:right::PB-* PASSED*",
            "gridbuf-consumer::consumers.py:wrong::* FAILED*",
            "*gridbuf-conformance replay --consumer consumers.py:wrong *",
        ]
    )
    assert not [line for line in done.outlines if "py:right" in line and "FAILED" in line]


# Choosing, and the rest of pytest
# --------------------------------------------------------------------------


def test_collecting_shows_the_ids_and_runs_nothing(project, pytester):
    done = project("--gridbuf-producer", "producers.py:Right", "--collect-only", "-q")
    assert [line for line in done.outlines if line.startswith("gridbuf::")] == [
        f"gridbuf::producers.py:Right::{rule}" for rule in RULES.split(",")
    ]
    assert not (pytester.path / "runs.txt").exists()


@pytest.mark.parametrize(
    "choice",
    [
        ("-k", "PB-01"),
        ("--deselect", "gridbuf::producers.py:Right::AI-", "-k", "not XA and not PB-02"),
    ],
    ids=["k", "deselect"],
)
def test_only_what_is_chosen_is_judged(project, pytester, choice):
    report = pytester.path / "report.json"
    done = project(
        "--gridbuf-producer", "producers.py:Right", *choice, f"--gridbuf-report={report}"
    )
    assert done.ret == pytest.ExitCode.OK
    judged = [rule["id"] for rule in json.loads(report.read_text())["rules"]]
    assert "PB-01" in judged
    assert "PB-02" not in judged


@pytest.mark.parametrize("ids", [("PB-01",), ("PB-01", "AI-01"), ()], ids=["one", "two", "target"])
def test_ids_of_a_report_can_be_run_again(project, pytester, ids):
    (pytester.path / "test_own.py").write_text("def test_own(): assert False")
    node = "gridbuf::producers.py:Wrong"
    done = project(*[f"{node}::{id_}" for id_ in ids] or [node], "-v")
    ran = {line.split()[0].rpartition("::")[2] for line in done.outlines if line.startswith(node)}
    assert ran == set(ids or RULES.split(","))
    assert "test_own" not in str(done.stdout)


def test_markers_tell_our_tests_from_the_projects(project, pytester):
    (pytester.path / "test_own.py").write_text("def test_own(): pass")
    both = ("--gridbuf-producer", "producers.py:Right", "--strict-markers")
    project(*both, "-m", "gridbuf").assert_outcomes(passed=3, skipped=2, deselected=1)
    project(*both, "-m", "not gridbuf").assert_outcomes(passed=1, deselected=5)


def test_the_configuration_says_it_once_for_all(project, pytester):
    targets = ["producers.py:Right", "producers.py:Wrong"]
    configure(pytester, producers=targets, rules="PB-01", profile="smoke")
    folder = pytester.mkdir("below")
    os.chdir(folder)
    done = project(rules="")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["gridbuf-conformance: profile smoke, ../pyproject.toml: producer *"])
    project("--gridbuf-no-config", rules="").assert_outcomes()
    # The command line takes precedence.
    os.chdir(pytester.path)
    project("--gridbuf-producer", "array", rules="PB-0*").assert_outcomes(passed=9)


def test_a_wrong_configuration_is_a_usage_error(project, pytester):
    configure(pytester, producer=["producers.py:Right"])
    done = project()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(
        ["*pyproject.toml, *unknown key 'producer'; did you mean producers?*"]
    )


def test_a_project_that_asks_for_nothing_notices_nothing(project, pytester):
    (pytester.path / "test_own.py").write_text(
        "import sys\n"
        "def test_own(pytestconfig):\n"
        "    assert 'gridbuf_conformance.engine.run' not in sys.modules\n"
        "    assert 'rich' not in sys.modules\n"
    )
    done = project(rules="", alone=True)
    done.assert_outcomes(passed=1)
    assert "gridbuf" not in "\n".join(line for line in done.outlines if "rootdir" not in line)


def test_workers_of_xdist_share_one_run(project, pytester):
    pytest.importorskip("xdist", reason="NOT tested: pip install pytest-xdist")
    report = pytester.path / "report.html"
    done = project(
        "--gridbuf-producer=producers.py:Wrong", "-n", "3", f"--gridbuf-report={report}", alone=True
    )
    done.assert_outcomes(passed=2, failed=1, skipped=2)
    done.stdout.fnmatch_lines(["FAIL: 'not a dict'*", "*wrong does not conform*"])
    assert runs(pytester) == 1
    assert "AI-01" in report.read_text(encoding="utf-8")


def test_workers_of_xdist_take_ids_too(project):
    pytest.importorskip("xdist", reason="NOT tested: pip install pytest-xdist")
    done = project("gridbuf::producers.py:Wrong::AI-01", "-n", "2", alone=True)
    done.assert_outcomes(failed=1)


def test_junit_has_a_case_a_rule_with_its_outcome(project, pytester):
    path = pytester.path / "junit.xml"
    project("--gridbuf-producer", "producers.py:Wrong", f"--junitxml={path}")
    cases = {case.get("name"): case for case in ElementTree.parse(path).iter("testcase")}
    assert set(cases) == set(RULES.split(","))
    assert cases["AI-01"].get("classname") == "gridbuf.producers.py:Wrong"
    assert "FAIL: 'not a dict'" in cases["AI-01"].find("failure").get("message")
    assert "replay producers.py:Wrong AI-01" in cases["AI-01"].find("failure").text
    properties = {p.get("name"): p.get("value") for p in cases["PB-01"].iter("property")}
    assert properties == {"gridbuf.outcome": "PASS"}
    assert cases["XA-08"].find("skipped") is not None


def test_several_targets_make_one_survey(project, pytester):
    report = pytester.path / "report.json"
    done = project(
        "--gridbuf-producer=producers.py:Wrong",
        "--gridbuf-producer=array",
        f"--gridbuf-report={report}",
    )
    done.assert_outcomes(passed=5, failed=1, skipped=4)
    names = [r["target"]["name"] for r in json.loads(report.read_text())["reports"]]
    assert names == ["wrong", "array"]


# The fixture
# -----------------------------------------------------------------------------------------------

OWN_TESTS = """
import array

class Wrong(bytearray):
    __array_interface__ = "not a dict"

def test_right(gridbuf_check):
    assert gridbuf_check(array.array("d", [1.0])).outcomes["PB-01"] == "PASS"

def test_wrong(gridbuf_check):
    gridbuf_check(Wrong(8))

def test_part(gridbuf_check):
    gridbuf_check(Wrong(8), rules="PB-*")

def test_nothing_to_judge(gridbuf_check):
    gridbuf_check(object())
"""


def test_the_fixture_judges_a_live_object(project, pytester):
    (pytester.path / "test_own.py").write_text(OWN_TESTS)
    done = project(rules="")
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(
        ["*AssertionError: <Report of test_own.Wrong: * 1 FAIL,*", "*AI-01*MUST*FAIL*"]
    )
    done.stdout.no_fnmatch_line("*raise AssertionError*")
