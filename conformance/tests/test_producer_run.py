"""The run of a producer: one outcome a rule, small failures, and repeatable runs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from gridbuf_conformance.engine import producer_run
from gridbuf_conformance.engine import run as run_module
from gridbuf_conformance.outcomes import ExitCode, Outcome, Verdict, exit_code_of, worst
from gridbuf_conformance.plan import Plan, profiles
from gridbuf_conformance.plan.producer import Capabilities
from gridbuf_conformance.render.report import Report
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance.targets import CannotLoad

HOSTILE = Path(__file__).parent / "hostile_producers.py"


def target(name: str) -> str:
    return f"{HOSTILE}:{name}"


def run(name: str, **options) -> Report:
    return producer_run.check_producer(
        target(name), **{"profile": "smoke", "time_limit_s": 20.0, **options}
    )


@lru_cache
def report_of(name: str) -> Report:
    """The report of one smoke run, shared by the tests that only look at it."""
    return run(name)


def entry(report: Report, rule: str) -> dict:
    return next(entry for entry in report.data["rules"] if entry["id"] == rule)


def failure(report: Report, rule: str) -> dict:
    return entry(report, rule)["failures"][0]


def smallest_plan(report: Report, rule: str) -> Plan:
    return Plan.from_json(failure(report, rule)["plan"])


def without_timing(report: Report) -> str:
    return json.dumps({**report.data, "timing": None})


# -- a good producer -------------------------------------------------------------------


def test_a_good_producer_conforms():
    report = report_of("Good")
    assert report.exit_code == ExitCode.CONFORMANT and report.failed == ()
    assert report.outcomes["PB-03"] == "PASS" and report.outcomes["GT-20"] == "PASS"
    assert report.outcomes["DL-09"] == "UNSUPPORTED"
    assert entry(report, "PB-03")["plans"] > 30
    assert list(report.outcomes) == [rule.id for rule in catalogue.select()]
    assert report.data["target"]["name"] == "good" and report.data["target"]["version"] == "1.2"
    assert report.data["summary"]["PASS"] == sum(o == "PASS" for o in report.outcomes.values())
    assert sum(report.data["summary"].values()) == len(report.outcomes)


@pytest.mark.parametrize(
    ("name", "rule", "actual"),
    [
        ("SharesForItsOwnDevice", "DP-20", "for dl_device=(1,0), copy=True"),
        ("CopiesForItsOwnDevice", "DP-21", "dl_device=(1,0), copy=False"),
        ("TakesTwoKeywords", "DP-14", "TypeError for stream=None, dl_device=(1,0), copy=False"),
        ("VersionedForItsOwnDevice", "DP-11", "for dl_device=(1,0), copy=False"),
    ],
)
def test_a_defect_of_two_keywords_together_is_found_and_replays(name, rule, actual):
    mutant = f"gridbuf_conformance_mutants.dlpack:{name}"
    report = producer_run.check_producer(mutant, profile="smoke", rules=rule, time_limit_s=20.0)
    found = failure(report, rule)
    assert actual in found["expected"] + found["actual"]
    replayed = producer_run.replay(mutant, rule, Plan.from_json(found["plan"]))
    assert replayed.outcomes == report.outcomes == {rule: "ADVISORY" if rule == "DP-11" else "FAIL"}


def test_two_runs_differ_in_their_timing_only():
    for name in ("Good", "SegfaultOnLongArrays"):
        first = without_timing(report_of(name))
        producer_run._batches.cache_clear()  # so that the plans are drawn again
        assert without_timing(run(name)) == first


def test_reports_hold_no_addresses_and_no_folders():
    for name in ("Good", "Raises", "SegfaultOnLongArrays"):
        text = report_of(name).to_json()
        assert (
            str(HOSTILE.parent) not in text and "/usr/" not in text and "site-packages" not in text
        )
        assert "0x7f0012345678" not in text


def test_another_seed_asks_other_plans():
    def plans(report: Report) -> list:
        return [event["plan"] for event in report.events if event["event"] == "plan"]

    first, second = run("Good", seed=1, rules="PB-03"), run("Good", seed=2, rules="PB-03")
    assert plans(first) != plans(second)
    assert plans(first) == plans(run("Good", seed=1, rules="PB-03"))
    assert (first.data["seed"], second.data["seed"]) == (1, 2)


# -- bad producers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, outcome, words",
    [
        ("Segfault", "CRASH", "died by SIGSEGV at step produce"),
        ("LeavesQuietly", "CRASH", "exit status 0"),
        ("Raises", "FAIL", "produce raised RuntimeError: no luck with"),
        ("CallsExit", "FAIL", "SystemExit: 3"),
    ],
)
def test_what_happens_in_produce_counts_against_gt_20(name, outcome, words):
    report = report_of(name)
    assert report.outcomes["GT-20"] == outcome and report.exit_code == ExitCode.NOT_CONFORMANT
    assert report.failed == ("GT-20",)
    assert words in failure(report, "GT-20")["actual"]
    assert smallest_plan(report, "GT-20") == Plan()
    assert report.outcomes["PB-03"] == "BLOCKED" and "GT-20" in entry(report, "PB-03")["note"]


def test_a_producer_that_hangs_is_given_up_and_the_report_says_so():
    report = run("Sleeps", time_limit_s=0.5)
    assert report.outcomes["GT-20"] == "TIMEOUT" and report.exit_code == ExitCode.NOT_CONFORMANT
    assert any("3 plans hung" in note for note in report.data["notes"])
    assert report.data["plans"] == {"timeout": 3}


def test_a_producer_that_dies_on_every_plan_is_given_up_and_the_report_says_so():
    report = report_of("Segfault")
    assert any("died on 12 plans" in note for note in report.data["notes"])


def test_crashes_shrink_like_failures():
    report = report_of("SegfaultOnLongArrays")
    assert report.outcomes["GT-20"] == "CRASH"
    assert smallest_plan(report, "GT-20") == Plan(shape=(3,))
    assert report.outcomes["PB-03"] == "PASS", "the plans that do not crash are judged as ever"


def test_a_death_that_does_not_repeat_is_unstable(monkeypatch, tmp_path):
    monkeypatch.setenv("DIES_ONCE_MARK", str(tmp_path / "mark"))
    report = run("DiesOnce")
    assert report.outcomes["GT-20"] == "UNSTABLE" and report.failed == ("GT-20",)


def test_a_getter_that_raises_is_one_advisory_with_the_smallest_plan():
    report = report_of("RaisesInGetter")
    assert report.outcomes["XA-18"] == "ADVISORY"
    assert smallest_plan(report, "XA-18") == Plan()
    assert report.outcomes["AI-02"] in ("BLOCKED", "UNSUPPORTED")


def test_a_getter_that_crashes_counts_against_the_probe():
    report = run("SegfaultInGetter", rules="XA-18,PB-*")
    assert report.outcomes["XA-18"] == "CRASH"
    assert "__array_interface__" in failure(report, "XA-18")["actual"]


def test_a_crash_at_a_rule_that_was_not_selected_is_still_reported(monkeypatch):
    monkeypatch.setattr(run_module, "_CRASHES_TAKEN", 3)  # each death starts a process
    report = run("Segfault", rules="PB-*")
    assert report.failed == ("GT-20",)
    assert any("GT-20 was not selected" in note for note in report.data["notes"])


def test_a_crash_at_exit_is_reported():
    report = report_of("DiesAtExit")
    assert report.failed == ("XA-11",) and report.outcomes["XA-11"] == "CRASH"
    assert failure(report, "XA-11")["plan"] is None


def test_a_declared_capability_that_is_never_met_fails():
    report = report_of("DeclaresTooMuch")
    assert report.failed == ("GT-20",)
    found = failure(report, "GT-20")
    assert "dtypes: float32" in found["expected"] and "planned for next year" in found["actual"]
    assert Plan.from_json(found["plan"]).dtype == "float32"


def test_a_producer_that_declines_everything_is_not_called_conformant():
    report = report_of("Declines")
    assert set(report.outcomes.values()) == {"UNSUPPORTED"}
    assert report.exit_code == ExitCode.NOTHING_SELECTED
    assert entry(report, "PB-03")["note"] == "not today"


def test_a_lack_of_memory_is_a_reason_to_decline():
    report = report_of("OutOfMemory")
    assert report.failed == ("GT-20",), "it declares what it never makes"
    assert "MemoryError: no room" in failure(report, "GT-20")["actual"]


def test_a_fault_of_the_suite_is_an_error_and_exit_code_3(monkeypatch):
    from gridbuf_conformance.engine import judge

    def broken(*_):
        raise KeyError("an error of the suite")

    monkeypatch.setattr(judge, "judge", broken)
    report = run("Good", rules="PB-03")
    assert report.outcomes == {"PB-03": "ERROR"} and report.exit_code == ExitCode.SUITE_ERROR
    assert (
        "KeyError: 'an error of the suite' (test_producer_run.py:"
        in failure(report, "PB-03")["actual"]
    )


# -- selection and refusals ------------------------------------------------------------


def test_rules_are_selected_by_text_or_by_sequence():
    by_text = run("Good", rules="PB-03,XA-*")
    assert set(by_text.outcomes) == {rule.id for rule in catalogue.select("PB-03,XA-*")}
    assert run("Good", rules=["PB-03", "XA-*"]).outcomes == by_text.outcomes


def test_nothing_selected_has_an_exit_code_of_its_own():
    of_consumers = next(r.id for r in catalogue.load().values() if r.sides == ("consumer",))
    report = run("Good", rules=of_consumers)
    assert report.outcomes == {} and report.exit_code == ExitCode.NOTHING_SELECTED
    assert not [event for event in report.events if event["event"] == "plan"]


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no rule matches"):
        run("Good", rules="XY-99")
    with pytest.raises(ValueError, match="must be one of smoke, default, thorough, threads, soak"):
        run("Good", profile="quick")
    with pytest.raises(CannotLoad, match="is not a producer"):
        producer_run.check_producer("no-such-library")


# -- ways to run -----------------------------------------------------------------------


def test_without_isolation_the_report_is_the_same():
    isolated, local = report_of("RaisesInGetter"), run("RaisesInGetter", isolate=False)
    assert without_timing(isolated) == without_timing(local)


def test_without_isolation_any_object_will_do():
    class Local:
        name = "local"
        capabilities = Capabilities(max_ndim=1, min_ndim=1, dtypes=("uint8",), readonly=(True,))

        def produce(self, plan):
            return bytes(plan.content())

    for producer in (Local, Local()):
        report = producer_run.check_producer(producer, profile="smoke", isolate=False, rules="PB-*")
        assert report.exit_code == ExitCode.CONFORMANT and report.data["target"]["name"] == "local"


def test_a_failure_replays_by_its_command():
    report = report_of("SegfaultOnLongArrays")
    command = shlex.split(failure(report, "GT-20")["replay"])
    assert command[:2] == ["gridbuf-conformance", "replay"]
    assert command[2] == "hostile_producers.py:SegfaultOnLongArrays", "no folder of this machine"
    again = producer_run.replay(
        target("SegfaultOnLongArrays"), command[3], Plan.from_json(command[4])
    )
    assert again.outcomes == {"GT-20": "CRASH"}
    assert failure(again, "GT-20")["actual"] == failure(report, "GT-20")["actual"]
    assert producer_run.replay(target("SegfaultOnLongArrays"), "GT-20", Plan()).exit_code == 0


def test_replay_needs_no_hypothesis(tmp_path):
    program = (
        "import sys; sys.modules['hypothesis'] = None; "
        f"sys.path[:0] = {[str(HOSTILE.parent.parent), *filter(None, sys.path)]!r}; "
        "from gridbuf_conformance import Plan; "
        "from gridbuf_conformance.engine import producer_run; "
        f"print(producer_run.replay({target('Good')!r}, 'PB-03', Plan(shape=(3,))).outcomes)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "{'PB-03': 'PASS'}", done.stderr


def test_a_soak_takes_a_seed_of_its_own_and_stops_in_time(monkeypatch):
    short = profiles.Profile("soak", 4, 4, 1, 1, 5, 5, time_box_s=0.2)
    monkeypatch.setitem(profiles.PROFILES, "soak", short)
    first, second = run("Good", profile="soak"), run("Good", profile="soak")
    assert first.data["seed"] != second.data["seed"]
    again = run("Good", profile="soak", seed=first.data["seed"])
    assert again.data["seed"] == first.data["seed"]


# -- the stream ------------------------------------------------------------------------


def test_the_events_come_in_order_and_make_the_report():
    heard = []
    report = run("DeclaresTooMuch", on_event=heard.append)
    names = [event["event"] for event in heard]
    assert heard == report.events
    assert names[0] == "start" and names[-1] == "end"
    assert set(names) == {"start", "plan", "verdict", "shrunk", "rule", "end"} - (
        set() if "shrunk" in names else {"shrunk"}
    )
    assert names.count("rule") == len(report.outcomes)
    plans = [event for event in heard if event["event"] == "plan"]
    assert [event["n"] for event in plans] == list(range(1, len(plans) + 1))
    assert plans[-1]["n"] == plans[-1]["of"] == sum(report.data["plans"].values())
    assert Report.of(heard).to_json() == report.to_json()
    with pytest.raises(ValueError, match="no start or no end"):
        Report.of(heard[:-1])


def test_no_plan_is_asked_twice():
    report = report_of("SegfaultOnLongArrays")
    plans = [json.dumps(event["plan"]) for event in report.events if event["event"] == "plan"]
    assert len(plans) == len(set(plans))


# -- outcomes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seen, outcome",
    [
        ([], Outcome.UNTESTED),
        ([Outcome.PASS, Outcome.UNSUPPORTED], Outcome.PASS),
        ([Outcome.PASS, Outcome.BLOCKED, Outcome.UNTESTED], Outcome.PASS),
        ([Outcome.PASS, Outcome.ADVISORY], Outcome.ADVISORY),
        ([Outcome.ADVISORY, Outcome.ERROR], Outcome.ERROR),
        ([Outcome.ERROR, Outcome.FAIL], Outcome.FAIL),
        ([Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT], Outcome.CRASH),
        ([Outcome.UNTESTED, Outcome.UNSUPPORTED], Outcome.UNTESTED),
    ],
)
def test_the_worst_verdict_is_the_outcome(seen, outcome):
    assert worst(seen) is outcome


@pytest.mark.parametrize(
    "seen, code",
    [
        ([], 5),
        ([Outcome.PASS, Outcome.ADVISORY, Outcome.XFAIL, Outcome.UNTESTED], 0),
        ([Outcome.PASS, Outcome.FAIL], 1),
        ([Outcome.XPASS], 1),
        ([Outcome.CRASH], 1),
        ([Outcome.TIMEOUT], 1),
        ([Outcome.UNSTABLE], 1),
        ([Outcome.FAIL, Outcome.ERROR], 3),
    ],
)
def test_exit_codes(seen, code):
    assert exit_code_of(seen) == code


def test_a_verdict_knows_whether_it_counts():
    assert Verdict(Outcome.FAIL).failed and not Verdict(Outcome.ADVISORY).failed


def test_a_device_table_that_is_none_is_a_producer_that_cannot_be_loaded():
    class Exporting:
        name = "exporting"

        def produce(self, plan):
            return bytes(8)

        def device_table(self):
            return 3

    with pytest.raises(CannotLoad, match="device_table.* must be a capsule"):
        producer_run.check_producer(Exporting(), profile="smoke", isolate=False)
