"""The zoo's record holds together, is proved, and docs/zoo.md is what it renders to. Nothing is installed here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import by_hand
import page
import pytest
import records
import runs
import venvs
from records import RESULTS, Environment, Finding, read_json

import zoo
from gridbuf_conformance import catalogue
from gridbuf_conformance.plan import Plan

ZOO = records.load()
VERIFIED = read_json(RESULTS / "verified.json")
LEAST = {
    "defects": 40,
    "libraries": 15,
    "newest": 25,
    "published": 15,
    "producers": 10,
    "consumers": 10,
}
"""What the issue that this suite was built by demands of it."""


def _ids(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.id for finding in findings]


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_finding_names_a_must_rule_and_a_valid_plan(finding: Finding):
    rule = catalogue.load()[finding.rule]
    assert rule.level == "MUST", "a SHOULD is an advisory, not a defect"
    for text in (finding.plan, finding.peer[2]):
        known = {key: value for key, value in json.loads(text).items() if key != "export"}
        assert Plan.from_json(known)


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_finding_is_proved_by_two_replays(finding: Finding):
    proof = VERIFIED[finding.id]
    assert proof["affected"]["outcome"] in ("FAIL", "CRASH")
    assert proof["passes"]["outcome"] == "PASS"
    assert runs.is_verified(proof)


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_finding_says_why_and_how_it_was_seen(finding: Finding):
    for text in (finding.title, finding.why, finding.confirmed):
        assert text.strip() == text
        assert text.endswith((".", ")", "`"))


@pytest.mark.parametrize("least", LEAST)
def test_the_zoo_is_as_large_as_it_must_be(least: str):
    assert page.counts(ZOO)[least] >= LEAST[least]


@pytest.mark.parametrize("environment", ZOO.environments.values(), ids=lambda e: e.name)
def test_every_environment_was_run_and_each_failure_is_explained(environment: Environment):
    result = read_json(RESULTS / f"{environment.name}.json")
    ran = [(target["side"], target["target"]) for target in result["targets"]]
    assert ran == environment.targets
    unexplained = [
        (target["target"], rule)
        for target in result["targets"]
        for rule in target.get("failures", {})
        if not _explained(environment, target["side"], target["target"], rule)
    ]
    assert not unexplained


def _explained(environment: Environment, side: str, target: str, rule: str) -> bool:
    remarked = any(
        (remark.library, remark.side, remark.rule) == (environment.library, side, rule)
        for remark in ZOO.remarks
    )
    return remarked or ZOO.finding_of(environment, side, target, rule) is not None


def test_no_result_is_left_of_what_is_gone():
    names = {path.stem for path in RESULTS.glob("*.json")} - {"verified"}
    assert names == set(ZOO.environments)
    assert set(VERIFIED) == set(_ids(ZOO.findings))


@pytest.mark.parametrize("environment", ZOO.environments.values(), ids=lambda e: e.name)
def test_requirements_are_pinned(environment: Environment):
    assert all("==" in requirement for requirement in environment.requirements)


def test_the_document_is_what_the_records_render_to():
    document = records.FOLDER.parents[1] / "docs/zoo.md"
    assert document.read_text("utf-8") == page.render(ZOO), "run: conformance/zoo/zoo.py docs"


@pytest.mark.parametrize("case", ["plain", "byte-offset", "free-strides"])
def test_what_is_seen_by_hand_is_seen(case: str, capsys: pytest.CaptureFixture[str]):
    """The script next to the suite, on a library that is right."""
    pytest.importorskip("numpy")
    assert by_hand.main(["take", "numpy", case]) == 0
    first = 8.0 if case == "byte-offset" else 0.0
    assert capsys.readouterr().out.startswith(f"[{first}")


def test_the_script_beside_the_suite_names_its_cases(capsys: pytest.CaptureFixture[str]):
    assert by_hand.main(["show", "nothing"]) == 2
    assert "byte-offset" in capsys.readouterr().out


# The machinery ----------------------------------------------------------------------------------------------


def test_reduced_reports_keep_failures_and_nothing_that_varies():
    failure = {
        "plan": {"shape": [1]},
        "expected": "a",
        "actual": "b\n c",
        "note": "",
        "drawing": "x",
    }
    report = {
        "target": {"version": "1.0"},
        "summary": {"FAIL": 1, "PASS": 1, "UNSUPPORTED": 1},
        "timing": {"total_s": 1.0},
        "rules": [
            {"id": "PB-01", "outcome": "FAIL", "failures": [failure]},
            {"id": "PB-02", "outcome": "PASS", "failures": []},
            {"id": "DL-01", "outcome": "UNSUPPORTED", "failures": []},
        ],
    }
    reduced = runs.reduced(report)
    assert reduced["judged"] == {"PB": 2}
    kept = {"outcome": "FAIL", "plan": {"shape": [1]}, "expected": "a", "actual": "b c"}
    assert reduced["failures"] == {"PB-01": kept}
    assert "timing" not in reduced


@pytest.mark.parametrize(
    "affected, passes, proved",
    [
        ("FAIL", "PASS", True),
        ("CRASH", "PASS", True),
        ("TIMEOUT", "PASS", False),
        ("ADVISORY", "PASS", False),
        ("FAIL", "UNSUPPORTED", False),
        ("FAIL", "ADVISORY", False),
        ("PASS", "PASS", False),
    ],
)
def test_only_a_failure_here_and_a_pass_there_is_a_proof(affected: str, passes: str, proved: bool):
    assert (
        runs.is_verified({"affected": {"outcome": affected}, "passes": {"outcome": passes}})
        is proved
    )


def test_nothing_is_proved_by_nothing():
    assert not runs.is_verified({})


def test_findings_of_one_cause_are_one_defect():
    first = ZOO.findings[0]
    pair = (replace(first, defect="one"), replace(first, id="another", defect="one"))
    assert page.counts(replace(ZOO, findings=pair))["defects"] == 1
    assert page.counts(replace(ZOO, findings=(first, replace(pair[1], defect=""))))["defects"] == 2


BAD = {
    "an environment that is not there": ({"affected": "nowhere"}, "no environment"),
    "an unknown side": ({"side": "both"}, "side must be"),
    "a tracker that is not a link": ({"tracker": "see #12"}, "tracker must be"),
    "an unknown key": ({"colour": "red"}, "unknown keys"),
    "an id with spaces": ({"id": "two words"}, "lower case"),
}


@pytest.mark.parametrize("change, message", BAD.values(), ids=BAD)
def test_a_record_that_does_not_fit_is_refused(
    change: dict[str, str], message: str, tmp_path: Path
):
    _write(tmp_path, {**_GOOD, **change})
    with pytest.raises(ValueError, match=message):
        records.load(tmp_path)


def test_a_record_without_a_key_is_refused(tmp_path: Path):
    _write(tmp_path, {key: value for key, value in _GOOD.items() if key != "why"})
    with pytest.raises(ValueError, match="why"):
        records.load(tmp_path)


def test_a_record_that_fits_is_read(tmp_path: Path):
    _write(tmp_path, _GOOD)
    (finding,) = records.load(tmp_path).findings
    assert finding.peer == ("demo-2", "demo", "{}")
    assert finding.cause == "demo-wrong"


def test_an_interpreter_that_is_not_here_is_named():
    absent = Environment("x", "x", "1", "2.1", (), "old")
    with pytest.raises(venvs.CannotMake, match="CPython 2.1 is not here"):
        venvs.make(absent, Path("unused"))


def test_the_command_lists_and_refuses_names_that_are_not_there(capsys: pytest.CaptureFixture[str]):
    assert zoo.main(["list"]) == 0
    assert ZOO.findings[0].affected in capsys.readouterr().out
    assert zoo.main(["verify", "no-such-finding"]) == 2
    assert "no finding is called 'no-such-finding'" in capsys.readouterr().err


def test_the_command_tells_whether_the_document_is_current():
    assert zoo.main(["docs", "--check"]) == 0


_GOOD = {
    "id": "demo-wrong",
    "library": "demo",
    "side": "producer",
    "target": "demo",
    "rule": "PB-01",
    "plan": "{}",
    "affected": "demo-1",
    "passes": "demo-2",
    "title": "It is wrong.",
    "why": "The text says so.",
    "tracker": "new",
    "confirmed": "Seen.",
}


def _write(folder: Path, finding: dict[str, str]) -> None:
    keys = ("name", "library", "version", "python", "age")
    environments = [
        dict(zip(keys, (f"demo-{version}", "demo", version, "3.13", "old"))) for version in "12"
    ]
    tables = "\n".join(f"[[environment]]\n{_toml(e)}requirements = []\n" for e in environments)
    (folder / "environments.toml").write_text(f"date = 2026-01-01\n{tables}")
    (folder / "findings.toml").write_text(f"[[finding]]\n{_toml(finding)}")


def _toml(table: dict[str, str]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
