"""The run of a consumer: what it takes is found out, what it does is judged, and its failures
replay.
"""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from command_line import run as run_command

import gridbuf_conformance as gc
from gridbuf_conformance.engine import consumer_run
from gridbuf_conformance.exports import Export
from gridbuf_conformance.measure.consumption import consume
from gridbuf_conformance.outcomes import ExitCode
from gridbuf_conformance.plan.consumer import Consumer, version_of
from gridbuf_conformance.plan.profiles import PROFILES, Profile
from gridbuf_conformance.render.report import Report
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance.targets import CannotLoad
from gridbuf_conformance_mutants.consume_dlpack import IgnoresByteOffset
from gridbuf_conformance_mutants.importer import reference

FOLDER = Path(__file__).parent
FILE = FOLDER / "wrong_consumers.py"
MUTANTS = "gridbuf_conformance_mutants.consume_dlpack"
DLPACK = "DL-*,DP-*"
SMALL = Profile(
    "small", general=4, boundary=4, rank=1, huge=0, shrink_per_rule=20, shrink_in_all=60
)


@pytest.fixture(autouse=True, scope="module")
def small_profile() -> Iterator[None]:
    """A profile of a few drawn exports: what a run does is the same with many."""
    PROFILES[SMALL.name] = SMALL
    yield
    del PROFILES[SMALL.name]


@lru_cache
def report_of(target: str) -> Report:
    return check(target)


def check(target: object, rules: str = DLPACK, **options) -> Report:
    """A short run; the time limit is one that a loaded machine keeps."""
    return gc.check_consumer(target, "small", rules=rules, time_limit_s=20.0, **options)


def entry(report: Report, rule: str) -> dict:
    return next(entry for entry in report.data["rules"] if entry["id"] == rule)


def without_timing(report: Report) -> str:
    return json.dumps({**report.data, "timing": None})


# -- verdicts ------------------------------------------------------------------------------------


def test_a_strict_consumer_conforms():
    report = report_of(f"{FILE}:consume")
    assert report.failed == () and report.exit_code == ExitCode.CONFORMANT
    assert report.data["target"]["side"] == "consumer"
    assert report.data["target"]["name"] == "wrong_consumers.py:consume"
    assert list(report.outcomes) == [rule.id for rule in catalogue.select(DLPACK, "consumer")]
    assert report.data["plans"]["taken"] > 50 and report.data["plans"]["refused"] > 20


def test_memory_that_is_given_back_late_is_not_a_leak():
    def late(exporter):
        """Keeps the result for 0.4 s in a thread, as a library does that frees in one of its
        threads.
        """
        result = reference(exporter)
        threading.Timer(0.4, lambda _: None, [result]).start()
        return result

    assert consume(late, Export()).main.after.free


def test_two_runs_differ_in_their_timing_only_and_so_does_one_without_isolation():
    target = f"{MUTANTS}:IgnoresByteOffset"
    assert without_timing(check(target)) == without_timing(report_of(target))
    isolated, local = check(target, "DL-10"), check(target, "DL-10", isolate=False)
    assert without_timing(isolated) == without_timing(local)


def test_reports_hold_no_addresses_and_no_folders():
    text = report_of(f"{FILE}:dies_on_matrices").to_json()
    assert str(FOLDER) not in text and "site-packages" not in text and "0x7f" not in text


def test_a_failure_comes_down_to_the_simplest_export_and_replays():
    report = report_of(f"{MUTANTS}:IgnoresByteOffset")
    assert report.failed == ("DL-10",)
    found, *_ = entry(report, "DL-10")["failures"]
    export = Export.from_json(found["plan"])
    assert export.replaced(export="dlpack:byte-offset") == Export(export="dlpack:byte-offset")
    command = shlex.split(found["replay"])
    assert command[:5] == [
        *("gridbuf-conformance", "replay", "--consumer"),
        *(f"{MUTANTS}:IgnoresByteOffset", "DL-10"),
    ]
    again = consumer_run.replay(command[3], command[4], Export.from_json(command[5]))
    assert again.outcomes == {"DL-10": "FAIL"}
    assert entry(again, "DL-10")["failures"][0]["actual"] == found["actual"]


def test_a_death_is_blamed_on_what_the_export_is_about_and_the_run_goes_on():
    report = report_of(f"{FILE}:dies_on_matrices")
    assert report.outcomes["DP-32"] == "CRASH"
    assert set(report.outcomes.values()) & {"ERROR"} == set()
    found = entry(report, "DP-32")["failures"][0]
    assert len(found["plan"]["shape"]) == 2 and "SIGABRT" in found["actual"]
    assert report.outcomes["DP-30"] == "PASS", "exports of one dimension are judged as ever"
    assert any("no more exports after 2 deaths" in note for note in report.data["notes"])


def test_an_exit_of_the_program_is_no_answer():
    report = check(f"{MUTANTS}:ExitsOnWrongResults", "DP-32")
    assert report.outcomes["DP-32"] == "FRAGILE", "no text says that a number is refused cleanly"
    assert "SystemExit" in entry(report, "DP-32")["failures"][0]["actual"]


# -- accepted forms are discovered ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["refuses", "wraps", "interrupts_itself"])
def test_what_takes_no_interface_is_not_judged(name):
    report = check(f"{FILE}:{name}")
    assert set(report.outcomes.values()) == {"UNSUPPORTED"}
    assert report.exit_code == ExitCode.NOTHING_SELECTED
    assert "dlpack is not taken" in entry(report, "DP-30")["note"]


def test_a_refusal_of_what_is_documented_counts():
    def refuses(exporter: object) -> None:
        raise BufferError("not today")

    consumer = Consumer(refuses, "mylib.from_dlpack", takes=("dlpack",))
    report = check(consumer, isolate=False)
    assert report.failed == ("DP-30",)
    assert "not today" in entry(report, "DP-30")["failures"][0]["actual"]


def test_a_result_that_cannot_be_read_fails_no_rule():
    report = check(f"{FILE}:sees_nothing")
    assert report.failed == ()
    assert report.outcomes["DP-30"] == "UNSUPPORTED"
    assert entry(report, "DP-30")["note"] == "the result cannot be looked into"
    assert report.outcomes["DL-19"] == "PASS", "deleters are still counted"


@pytest.mark.parametrize(
    ("name", "actual"),
    [
        ("ReturnsNothing", "NoneType"),
        ("PointsNowhere", "an address where no memory is"),
        ("ReturnsObjects", "elements: object of 8 bytes"),
    ],
)
def test_a_result_that_makes_no_sense_is_a_wrong_value(name, actual):
    report = check(f"{MUTANTS}:{name}", "DP-30")
    assert "DP-30" in report.failed
    assert actual in entry(report, "DP-30")["failures"][0]["actual"]


# -- objects with several interfaces -------------------------------------------------------------

MIXED = "gridbuf_conformance_mutants.consume_several"


@pytest.mark.parametrize(
    ("name", "rule", "outcome", "variants"),
    [
        (
            "TakesStridesOfTheBuffer",
            "XA-15",
            "FRAGILE",
            {"array-interface-elsewhere", "buffer-elsewhere"},
        ),
        ("TakesTheFlagOfTheBuffer", "XA-06", "ADVISORY", {"array-interface-read-only"}),
        ("TakesTheDeviceOfTheArrayInterface", "XA-15", "FRAGILE", {"dlpack-device"}),
    ],
)
def test_a_consumer_that_mixes_interfaces_is_found_and_replays(name, rule, outcome, variants):
    report = check(f"{MIXED}:{name}", rule)
    assert report.outcomes == {rule: outcome}
    (found,) = entry(report, rule)["failures"]
    command = shlex.split(found["replay"])
    export = Export.from_json(command[5])
    assert export.interface.name == "several" and export.variant.name in variants
    assert consumer_run.replay(command[3], rule, export).outcomes == {rule: outcome}


# -- naming a consumer ---------------------------------------------------------------------------


def test_a_file_needs_no_name_if_it_holds_consume():
    report = check(str(FILE), "DP-30")
    assert report.outcomes == {"DP-30": "PASS"}


def test_functions_and_objects_are_taken_as_they_are():
    exports = [Export(), Export(export="dlpack:byte-offset")]
    for consumer, failed in ((reference, ()), (IgnoresByteOffset, ("DL-10",))):
        report = consumer_run.check_exports(consumer, exports, rules=DLPACK, isolate=False)
        assert report.failed == failed


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (f"{FILE}:NOT_CALLABLE", "cannot be called"),
        (f"{FILE}:nothing", "has no 'nothing'"),
        ("no.such.module:function", "no.such"),
        ("numpy.from_dlpak", "use one of numpy.from_dlpack"),
    ],
)
def test_what_cannot_be_loaded_says_why(target, words):
    with pytest.raises(CannotLoad, match=words):
        check(target)


def test_versions_come_from_the_package():
    assert version_of(pytest.raises) == pytest.__version__
    assert version_of(len) == ""


# -- the command ---------------------------------------------------------------------------------


def test_the_command_judges_consumers(tmp_path):
    done = run_command(
        *("check", "--consumer", f"{MUTANTS}:IgnoresByteOffset", "--profile", "smoke"),
        *("--rules", "DL-10", "--report", "out.json"),
        cwd=tmp_path,
        PYTHONPATH=str(FOLDER.parent),
    )
    assert done.returncode == ExitCode.NOT_CONFORMANT, done.stderr
    assert "does not conform" in done.stdout and "replay --consumer" in done.stdout
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["target"]["side"] == "consumer"


def test_the_command_replays_an_export_and_refuses_what_is_none(tmp_path):
    arguments = ("replay", "--consumer", f"{FILE}:consume", "DL-10")
    good = run_command(*arguments, '{"export":"dlpack:byte-offset"}', cwd=tmp_path)
    assert good.returncode == ExitCode.CONFORMANT, good.stdout + good.stderr
    bad = run_command(*arguments, '{"export":"dlpack:sideways"}', cwd=tmp_path)
    assert bad.returncode == ExitCode.USAGE and "variant must be one of plain" in bad.stderr


def test_the_command_names_consumers_and_exports(tmp_path):
    listed = run_command("list", "consumers", cwd=tmp_path)
    assert "numpy.from_dlpack" in listed.stdout and "--consumer package.module" in listed.stdout
    exports = run_command("list", "exports", cwd=tmp_path)
    assert "dlpack:byte-offset" in exports.stdout and "DL-10" in exports.stdout
    unknown = run_command("check", "--consumer", "nunpy", cwd=tmp_path)
    assert unknown.returncode == ExitCode.USAGE and "is not a consumer" in unknown.stderr
