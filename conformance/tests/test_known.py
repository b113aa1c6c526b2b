"""Known failures: the file's grammar and its errors, what a replay excuses and what not, and `known
--update`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridbuf_conformance import cli
from gridbuf_conformance.engine import consumer_run, producer_run, run
from gridbuf_conformance.known import Known, KnownError, KnownFailures, edit, parse, read
from gridbuf_conformance.outcomes import Outcome
from gridbuf_conformance.plan import Plan, profiles
from gridbuf_conformance.render.report import Report

PRODUCERS = Path(__file__).parent / "known_producers.py"
RULES = "AI-0*,XA-11,XA-18,GT-20"
TAME = ("Good", "Faulty", "FaultyOtherwise", "Fixed")
TAME_RULES = "AI-0*"
FEW = profiles.Profile("smoke", 12, 12, 1, 0, shrink_per_rule=10, shrink_in_all=40)
FAULT = '{"shape":[3],"dtype":"uint8"}'


@pytest.fixture(autouse=True)
def few_plans(monkeypatch):
    """Records do not depend on how much is asked."""
    monkeypatch.setitem(profiles.PROFILES, "smoke", FEW)


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """The command in this process and a folder; calling it returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    for inherited in ("BUILD_WORKING_DIRECTORY", "COLUMNS"):
        monkeypatch.delenv(inherited, raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        return code, *capsys.readouterr()

    return run


def record(**keys: str) -> str:
    """The text of one record, with keys over those of Faulty's defect; None leaves one out."""
    fault = {"rule": "AI-03", "producer": "faulty", "plan": FAULT, "reason": "lists are fine"}
    found = {key: value for key, value in {**fault, **keys}.items() if value is not None}
    return "[[known]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in found.items())


def check(name: str, *texts: str, rules: str | None = None, **options) -> Report:
    """A run of a producer here; what may die has a separate process, and the rules that see it."""
    is_tame = name in TAME
    rules, options["isolate"] = rules or (TAME_RULES if is_tame else RULES), not is_tame
    layered = {one.identity: one for text in texts for one in parse(text, "known.toml")}
    known = KnownFailures(tuple(layered.values()), options.pop("lenient", False))
    return producer_run.check_producer(
        f"{PRODUCERS}:{name}", profile="smoke", rules=rules, known=known, **options
    )


def rule(report: Report, id_: str) -> dict:
    return next(entry for entry in report.data["rules"] if entry["id"] == id_)


# What a replay excuses
# -------------------------------------------------------------------------------------


def test_a_failure_that_is_known_is_no_failure():
    report = check("Faulty", record(link="https://example.org/3"))
    assert report.exit_code == 0 and report.failed == ()
    entry = rule(report, "AI-03")
    assert entry["outcome"] == "XFAIL"
    (failure,) = entry["failures"]
    assert Plan.from_json(failure["plan"]) == Plan.from_json(FAULT), (
        "pinned, neither searched nor shrunk"
    )
    assert failure["note"] == "known: lists are fine (https://example.org/3)"
    assert failure["expected"] and failure["actual"] == "[3]" and failure["replay"]
    assert not [e for e in report.events if e["event"] == "shrunk" and e["rule"] == "AI-03"]


def test_without_the_record_it_is_one():
    report = check("Faulty")
    assert report.exit_code == 1 and report.failed == ("AI-03",)


def test_a_known_failure_that_passes_fails_the_run():
    report = check("Fixed", record())
    assert report.exit_code == 1 and report.failed == ("AI-03",)
    (failure,) = rule(report, "AI-03")["failures"]
    assert failure["outcome"] == rule(report, "AI-03")["outcome"] == "XPASS"
    assert failure["actual"] == "the rule holds: remove the record"
    assert "known.toml, entry 1, line 1" in failure["note"]


def test_a_plan_that_passes_while_others_fail_is_a_failure():
    """The record pins a plan without the defect, so it explains nothing."""
    report = check("Faulty", record(plan='{"shape":[1],"dtype":"uint8"}'))
    entry = rule(report, "AI-03")
    assert entry["outcome"] == "FAIL"
    assert [failure["outcome"] for failure in entry["failures"]] == ["FAIL", "XPASS"]


def test_a_failure_of_another_text_is_another_failure():
    actual = rule(check("Faulty", record()), "AI-03")["failures"][0]["actual"]
    assert check("Faulty", record(actual=actual)).exit_code == 0
    assert check("Faulty", record(actual=actual[1:])).exit_code == 0, "a piece is enough"
    report = check("FaultyOtherwise", record(actual=actual))
    assert rule(report, "AI-03")["outcome"] == "FAIL"
    assert any("differs from the current failure" in note for note in report.data["notes"])


def test_a_crash_is_not_excused_by_a_known_failure_nor_the_other_way_round():
    five = '{"shape":[5],"dtype":"uint8"}'
    crash = record(rule="GT-20", producer="dying", plan=five, outcome="CRASH")
    report = check("Dying", crash)
    assert report.exit_code == 0 and report.outcomes["GT-20"] == "XFAIL"
    as_failure = record(rule="GT-20", producer="dying", plan=five, outcome="FAIL")
    assert rule(check("Dying", as_failure), "GT-20")["outcome"] == "CRASH"


def test_known_crashes_do_not_end_the_run(monkeypatch):
    """Deaths on record do not count among those that end a run."""
    monkeypatch.setattr(run, "_CRASHES_TAKEN", 3)
    texts = [
        record(
            rule="GT-20",
            producer="dying",
            plan=json.dumps({"shape": [5], "dtype": "uint8", "fill": n}),
            outcome="CRASH",
        )
        for n in range(4)
    ]
    report = check("Dying", *texts)
    assert report.exit_code == 0
    assert not [note for note in report.data["notes"] if "died on" in note]


def test_a_death_at_the_end_belongs_to_no_plan():
    pinned = record(rule="XA-11", producer="late", plan='{"dtype":"uint8"}', outcome="CRASH")
    report = check("DyingInTheEnd", pinned)
    assert report.outcomes["XA-11"] == "XFAIL" and report.exit_code == 0
    fixed = check("Fixed", pinned.replace("late", "faulty"), rules="XA-11")
    assert fixed.outcomes["XA-11"] == "XPASS"


def test_a_promise_that_is_never_kept_can_be_known():
    plan = rule(check("Choosy"), "GT-20")["failures"][0]["plan"]
    pinned = record(rule="GT-20", producer="choosy", plan=json.dumps(plan))
    report = check("Choosy", pinned)
    assert report.outcomes["GT-20"] == "XFAIL" and report.exit_code == 0
    kept = check("Able", pinned, rules="GT-20")
    assert kept.outcomes["GT-20"] == "XPASS"


def test_what_another_failure_hides_is_noted_and_fails_nothing():
    """Where the process dies AI-03 cannot be judged, so its record is neither right nor stale."""
    hidden = record(producer="dying", plan='{"shape":[5],"dtype":"uint8"}')
    report = check("Dying", hidden)
    assert report.outcomes["AI-03"] == "PASS"
    assert any(note.startswith("AI-03: the failure on record") for note in report.data["notes"])


@pytest.mark.parametrize("clause", ["2.0", "=2.0", ">=two", "~=2", ">=2.*", "==2.0rc1.*", ">= "])
def test_a_wrong_version_specifier_is_named(clause):
    with pytest.raises(KnownError, match="is not a version specifier; write clauses such as >=2.0"):
        parse(record(versions=f">=1,{clause}"), "known.toml")


@pytest.mark.parametrize(
    ("version", "versions"),
    [("2.0rc1", ">=2.0rc1"), ("2.13.0+cpu", "==2.13.*"), ("1.5 (emulated)", ">1,<2")],
)
def test_prereleases_and_local_parts_are_in_a_range_by_their_number(version, versions):
    known = KnownFailures(tuple(parse(record(versions=versions), "known.toml")))
    assert known.concerning("producer", ["faulty"], version)


def test_versions_select():
    assert check("Faulty", record(versions=">=1.5,<2")).exit_code == 0
    assert check("Faulty", record(versions="<1.5")).exit_code == 1
    assert check("Fixed", record(versions="<1.5")).exit_code == 0, "neither stale nor wrong here"


NOT_COVERED = "known: faulty {} is covered, 1.5.0 is installed; the records do not apply"


def test_records_for_other_versions_only_are_told():
    first, second = record(versions="==1.4"), record(rule="AI-01", versions=">=2,<3")
    report = check("Faulty", first, second)
    assert report.data["notes"] == [NOT_COVERED.format("1.4 or >=2,<3")] and report.exit_code == 1
    assert check("Faulty", first, lenient=True).data["notes"] == [NOT_COVERED.format("1.4")]
    assert check("Faulty", first, rules="AI-01").data["notes"] == [], "AI-03 is not selected"
    assert check("Faulty", first, record()).data["notes"] == [], "one record applies"
    assert check("Faulty", first.replace("faulty", "numpy")).data["notes"] == []


def test_a_shipped_file_says_which_version_it_covers(command, tmp_path):
    (tmp_path / "p.py").write_text(PRODUCERS.read_text())
    select = ("--rules", "PB-01", "--profile", "smoke", "--no-isolate")
    code, out, err = command("check", "p.py:LaterNumPy", "--known", "numpy", *select)
    (version,) = {one.versions for one in read(Path("numpy"))}
    note = f"known: numpy {version[2:]} is covered, 99.5.5 is installed; the records do not apply"
    assert note in " ".join(out.split()) and code == 0, out + err


def test_a_rule_that_is_not_selected_is_not_replayed():
    report = check("Faulty", record(), rules="AI-01")
    assert report.exit_code == 0 and list(report.outcomes) == ["AI-01"]


def test_an_empty_reason_is_taken_and_told():
    report = check("Faulty", record(reason=""))
    assert report.exit_code == 0
    assert report.data["notes"] == [
        "AI-03: the failure on record (known.toml, entry 1, line 1) has no reason; add one"
    ]


def test_two_runs_with_records_are_the_same():
    first, second = (check("Faulty", record()) for _ in range(2))
    assert {**first.data, "timing": 0} == {**second.data, "timing": 0}


# Files
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "known.toml is not TOML"),
        ("title = 'x'", "unknown key 'title'"),
        ("[known]\nrule = 'AI-03'", r"write \[\[known\]\]"),
        (record(reson="x"), "entry 1, line 1: unknown key 'reson'; did you mean reason?"),
        (record(wholly="x"), "unknown key 'wholly'; the keys are rule, "),
        (record() + record(rule="AI-3O"), r"entry 2, line 6: rule is 'AI-3O'.*did you mean AI-3"),
        (record(rule=None), "the key rule is missing"),
        (record(plan=None), "the key plan is missing"),
        (record(reason=None), "the key reason is missing"),
        (record(producer=None), "either a producer or a consumer"),
        (record(consumer="numpy.asarray"), "either a producer or a consumer"),
        (record(plan="{"), "the plan is not JSON"),
        (record(plan='{"shap":[1]}'), "unknown plan key 'shap'"),
        (record(plan="[" * 9999), "nested too deeply|no JSON"),
        (record(outcome="XFAIL"), "outcome is 'XFAIL', must be one of FAIL, CRASH"),
        (record(versions="1.5"), "'1.5' is not a version specifier"),
        (record(rule="AI-29"), "AI-29 is a SHOULD"),
        (record().replace('"lists are fine"', "3"), "reason is 3, must be a string"),
        (record() + record(), "the same record is at known.toml, entry 1, line 1"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_no_record_is_told_with_its_place(text, said):
    with pytest.raises(KnownError, match=said) as error:
        parse(text, "known.toml")
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"producer": "fautly"},
            "producer 'fautly' is neither judged here nor known; write one of faulty",
        ),
        (
            {"plan": '{"shape":[3]}', "producer": "choosy"},
            "AI-03 matches nothing, for its plan is declined",
        ),
    ],
)
def test_a_record_that_matches_nothing_is_an_error(keys, said):
    name = "Choosy" if keys["producer"] == "choosy" else "Faulty"
    with pytest.raises(KnownError, match=said):
        check(name, record(**keys))


def test_records_of_other_libraries_may_share_the_file():
    others = [record(producer="numpy"), record(producer="mylib.testing:Producer")]
    assert check("Faulty", record(), *others).exit_code == 0


def test_a_library_without_a_proper_version_cannot_be_selected_by_one():
    entries = parse(record(versions=">=1"), "known.toml")
    with pytest.raises(KnownError, match="calls itself 'nightly'.*remove the key"):
        KnownFailures(tuple(entries)).concerning("producer", ["faulty"], "nightly")
    assert KnownFailures(tuple(entries)).concerning("producer", ["faulty"], "1.0 (emulated)")


def test_later_files_hold_over_earlier_ones(tmp_path):
    (tmp_path / "a.toml").write_text(record() + record(rule="AI-01"))
    (tmp_path / "b.toml").write_text(record(reason="here it is the board's defect"))
    loaded = KnownFailures.load([tmp_path / "a.toml", tmp_path / "b.toml"])
    reasons = {known.rule: known.reason for known in loaded.entries}
    assert reasons == {"AI-03": "here it is the board's defect", "AI-01": "lists are fine"}
    with pytest.raises(KnownError, match="cannot read known failures .*No such file"):
        KnownFailures.load([tmp_path / "c.toml"])


# known --update
# --------------------------------------------------------------------------------------------

BY_HAND = """\
# Ours. Ask Ada.

# About shapes:
[[known]]
rule = "AI-03"  # lists
producer = "faulty"
plan = '{"shape":[3],"dtype":"uint8"}'
reason = "lists are fine"

# numpy's
[[known]]
rule = "AI-01"
producer = "numpy"
plan = '{}'
reason = "another library's"
# the end
"""


def updated(path: Path, *names: str) -> edit.Changes:
    known = KnownFailures.load([path] if path.exists() else [])
    reports = {
        f"{PRODUCERS.name}:{name}": producer_run.check_producer(
            f"{PRODUCERS}:{name}",
            profile="smoke",
            rules=TAME_RULES if name in TAME else RULES,
            known=KnownFailures(known.entries, True),
            isolate=name not in TAME,
        )
        for name in names
    }
    return edit.update(path, known.entries, reports)


def test_what_stays_is_left_to_the_byte(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(BY_HAND)
    changes = updated(path, "Faulty")
    assert not changes and len(changes.kept) == 2
    assert path.read_text() == BY_HAND


def test_what_passes_goes_with_its_comment(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(BY_HAND)
    assert [known.rule for known in updated(path, "Fixed").removed] == ["AI-03"]
    assert path.read_text() == BY_HAND[:18] + BY_HAND[BY_HAND.index("# numpy's") :]


def test_what_is_new_is_appended_for_a_person_to_explain(tmp_path):
    path = tmp_path / "known.toml"
    by_hand = BY_HAND.replace('"faulty"', '"known_producers.py:Faulty"')
    path.write_text(by_hand)
    changes = updated(path, "Faulty", "Dying", "DyingInTheEnd", "Choosy")
    assert [(known.rule, known.outcome, known.reason) for known in changes.added] == [
        ("GT-20", Outcome.CRASH, ""),
        ("XA-11", Outcome.CRASH, ""),
        ("GT-20", Outcome.FAIL, ""),
    ]
    assert path.read_text().startswith(by_hand)
    again = updated(path, "Faulty", "Dying", "DyingInTheEnd", "Choosy")
    assert not again and len(again.kept) == 5, "all explained: a second time there is nothing to do"


def test_what_fails_otherwise_keeps_its_reason_and_is_shown(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(BY_HAND.replace("reason =", 'actual = "of old"\nreason =', 1))
    ((old, new),) = updated(path, "FaultyOtherwise").changed
    assert old.actual == "of old" and new.actual != "of old" and new.reason == old.reason
    text = path.read_text()
    assert "of old" not in text and "# lists" in text and "# About shapes:" in text
    assert not updated(path, "FaultyOtherwise")


def test_what_is_declined_hands_its_reason_on(tmp_path):
    path = tmp_path / "known.toml"
    declined = record(
        rule="GT-20", producer="dying", plan='{"shape":[1,1],"dtype":"uint8"}', outcome="CRASH"
    )
    producer = Known("GT-20", "producer", "dying", Plan())
    changes = edit.Changes(removed=parse(declined, path.name), added=[producer])
    heir = edit._heir(
        producer, changes.removed, {(changes.removed[0].place, "GT-20"): {"state": "declined"}}
    )
    assert heir.reason == "lists are fine" and heir.plan == Plan()


def test_strings_of_any_kind_survive(tmp_path):
    path = tmp_path / "known.toml"
    hard = 'it\'s "quoted"\n\ttwice \\ \x7f \x1b[2J ü 🙂'
    known = Known("AI-03", "producer", "a'b\"c", Plan(), actual=hard, reason=hard, link=hard)
    text = edit.edited("# x\n", path.name, edit.Changes(added=[known]))
    (again,) = parse(text, path.name)
    assert (again.actual, again.reason, again.target) == (hard, hard.strip(), "a'b\"c")


def test_a_file_that_cannot_be_edited_safely_is_left_alone(tmp_path):
    text = 'known = [{rule="AI-03", producer="faulty", plan="{}", reason=""}]\n'
    (known,) = parse(text, "known.toml")
    with pytest.raises(KnownError, match=r"under its own line \[\[known\]\]"):
        edit.edited(text, "known.toml", edit.Changes(removed=[known]))


def test_a_value_of_several_lines_is_not_read_as_keys():
    text = record(outcome="CRASH").replace('"lists are fine"', '"""\nactual = 1\n"""')
    (known,) = parse(text, "known.toml")
    changed = Known(**{**vars(known), "outcome": Outcome.FAIL, "actual": "else"})
    (now,) = parse(
        edit.edited(text, "known.toml", edit.Changes(changed=[(known, changed)])), "known.toml"
    )
    assert (now.outcome, now.actual, now.reason) == (Outcome.FAIL, "else", "actual = 1")


def test_consumers_have_known_failures_too(tmp_path):
    path = tmp_path / "known.toml"
    written = f"{PRODUCERS}:reversed_view"
    rules = "PB-*,XA-15,GT-20"
    report = consumer_run.check_consumer(written, profile="smoke", rules=rules)
    assert report.exit_code == 1, report
    edit.update(path, [], {written: report})
    text = path.read_text()
    assert "consumer = " in text and "producer = " not in text
    known = KnownFailures.load([path])
    assert {one.side for one in known.entries} == {"consumer"}
    assert (
        consumer_run.check_consumer(written, profile="smoke", rules=rules, known=known).exit_code
        == 0
    )
    other_side = check("Good", path.read_text())
    assert other_side.exit_code == 0, "a file may hold both sides"


# The command
# -----------------------------------------------------------------------------------------------


def test_a_library_without_failures_gets_a_file_that_the_gate_takes(command, tmp_path):
    (tmp_path / "p.py").write_text(PRODUCERS.read_text())
    select = ("--rules", "AI-0*", "--profile", "smoke")
    code, out, err = command("known", "--update", "known.toml", "p.py:Good", *select)
    assert code == 0, err
    assert out.endswith("known.toml: no failure to record, 0 records kept as they were.\n")
    code, out, err = command("check", "p.py:Good", "--known", "known.toml", *select)
    assert code == 0, out + err


def test_the_commands_from_record_to_gate(command, tmp_path):
    (tmp_path / "p.py").write_text(PRODUCERS.read_text())
    select = ("--rules", "AI-0*", "--profile", "smoke")
    code, out, err = command("known", "--update", "known.toml", "p.py:Faulty", *select)
    assert code == 0, err
    assert "added   AI-03" in out and "Say why" in out
    code, out, err = command("check", "p.py:Faulty", "--known", "known.toml", *select)
    assert code == 0, out + err
    assert "1 known failure" in out.splitlines()[-1]
    fixed = PRODUCERS.read_text().replace("if len(self) > 2", "if False")
    (tmp_path / "p.py").write_text(fixed)
    code, out, _ = command("check", "p.py:Faulty", "--known", "known.toml", *select)
    assert code == 1 and "XPASS" in out
    code, _, err = command("survey", "p.py:Faulty", "bytes", "--known", "known.toml", *select)
    assert code == 0, err
    typo = (tmp_path / "known.toml").read_text().replace('"p.py:Faulty"', '"fautly"')
    (tmp_path / "known.toml").write_text(typo)
    for judge in (("check", "p.py:Faulty"), ("survey", "p.py:Faulty", "bytes")):
        code, _, err = command(*judge, "--known", "known.toml", *select)
        assert code == 2 and "'fautly' is neither judged here" in err
