"""The zoo's record holds together, is proved, and docs/zoo.md is what it renders to. Nothing is installed here."""

from __future__ import annotations

import ast
import json
import platform
import re
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import entries
import entry_points
import page
import pytest
import records
import runs
import scripts
import venvs
from entries import Entry
from records import RESULTS, Environment, Finding, read_json

import zoo
from gridbuf_conformance.rules import catalogue
from gridbuf_conformance import named_consumers, producers
from gridbuf_conformance.plan import Plan

ZOO = records.load()
VERIFIED = read_json(RESULTS / "verified.json")
REPRODUCED = read_json(RESULTS / "reproduced.json")
ENTRIES = entries.entries(ZOO)
COUNTED = entries.counted(ENTRIES)
MOST_LINES = 40


def _ids(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.id for finding in findings]


def _of_entry(entry: Entry) -> str:
    return entry.finding.id


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_finding_names_rules_and_a_valid_plan(finding: Finding):
    rules = catalogue.load()
    assert set(finding.rules) <= set(rules)
    known = {key: value for key, value in json.loads(finding.plan).items() if key != "export"}
    assert Plan.from_json(known)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if not e.finding.is_contested], ids=_of_entry)
def test_what_is_not_contested_breaks_a_must_of_a_published_text(entry: Entry):
    assert entry.rule.level_of(entry.finding.side) == "MUST", (
        "a SHOULD is an advisory, not a defect"
    )
    assert entry.rule.group != "GT", "gridbuf's own specification does not bind other libraries"


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_finding_is_proved_by_its_replays(finding: Finding):
    proof = VERIFIED[finding.id]
    assert runs.is_verified(proof) or finding.is_contested
    assert ("passes" in proof) == bool(finding.passes)


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_peer_is_a_released_library(finding: Finding):
    assert "mutants" not in finding.passes_target


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_the_texts_of_a_finding_are_sentences(finding: Finding):
    texts = (finding.title, finding.expected, finding.impact, finding.fix, finding.counter)
    for text in filter(None, texts):
        assert text.strip() == text
        assert text.endswith((".", ")", "`"))


READERS = {"NumPy", "CTranslate2", "XGBoost"}
"""Consumers that read `__array_interface__` themselves. Others take a NumPy array, so NumPy's C API binds them."""


@pytest.mark.parametrize("entry", ENTRIES, ids=_of_entry)
def test_a_finding_cites_what_binds_its_library(entry: Entry):
    title, link = entry.source
    assert title and link.startswith("https://")
    if entry.finding.side == "consumer" and "arrays.interface" in link:
        assert entry.finding.library in READERS


# The scripts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_script_stands_alone_and_is_short(finding: Finding):
    text = finding.code
    assert 3 <= len(text.splitlines()) <= MOST_LINES
    imported = {
        alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert not any("gridbuf" in name for name in imported)
    assert '"defect: ' in text and "sys.exit(" in text


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_script_ran_where_the_defect_is_and_where_it_is_not(finding: Finding):
    ran = REPRODUCED[finding.id]
    wanted = scripts.environments(finding, ZOO)
    assert set(ran) == {environment.name for environment in wanted}
    for environment in wanted:
        result = ran[environment.name]
        assert (result["version"], result["python"]) == (environment.version, environment.python)
        there = environment.name in finding.environments
        assert scripts.outcome(result) == (scripts.SHOWN if there else scripts.GONE), result["told"]


def _installed(finding: Finding) -> str:
    """The environment of the zoo that this process is like, for libraries that the tests have anyway."""
    for environment in scripts.environments(finding, ZOO):
        here = {"CPython": platform.python_version, "NumPy": lambda: metadata.version("numpy")}
        version = here.get(finding.library)
        if version and version() == environment.version:
            return environment.name
    return ""


@pytest.mark.parametrize("finding", [f for f in ZOO.findings if _installed(f)], ids=lambda f: f.id)
def test_a_script_does_here_what_is_recorded(finding: Finding):
    environment = ZOO.environments[_installed(finding)]
    result = scripts.run(finding, environment, Path(sys.executable))
    recorded = REPRODUCED[finding.id][environment.name]
    assert scripts.outcome(result) == scripts.outcome(recorded), result["told"]


@pytest.mark.parametrize(
    "code, told, outcome",
    [
        (1, "defect: it is wrong", scripts.SHOWN),
        (1, "ModuleNotFoundError: No module named 'x'", scripts.UNKNOWN),
        (0, "", scripts.GONE),
        (2, "", scripts.UNKNOWN),
        (-11, "", scripts.UNKNOWN),
    ],
)
def test_only_a_marked_line_shows_a_defect(code: int, told: str, outcome: str):
    assert scripts.outcome({"exit": code, "told": told}) == outcome


# Severity ---------------------------------------------------------------------------------------------------

SHOWS = {
    "memory": r"died of signal|freed|moved under|memory is gone|no memory|other memory|deleted",
    "values": r" became | read as | is written as |was written|made element|first element|element \[|other values|, not \[\[|defect: \[\[",
    "leak": r"not called|still hold|are left|more after",
    "refusal": r"Invalid|Only contiguous|only supports|does not support|construction from null",
    "form": "",
}
"""What the line of a script says if the finding is of a severity. That of form may say anything else."""


@pytest.mark.parametrize("entry", ENTRIES, ids=_of_entry)
def test_the_severity_is_what_the_script_shows(entry: Entry):
    line = REPRODUCED[entry.finding.id][entry.finding.affected]["told"]
    assert re.search(SHOWS[entry.severity], line), line
    assert entry.crashed is ("died of signal" in line)
    assert entry.severity == "memory" or not entry.crashed


# The whole --------------------------------------------------------------------------------------------------


def test_form_and_contested_findings_are_not_in_the_headline():
    assert not any(e.severity == "form" or e.finding.is_contested for e in COUNTED)
    assert not {"form"} & set(page.counts(ZOO)["severity"])


def test_the_ten_worst_are_ranked_with_a_reason_each():
    worst = [entry for entry, _ in entries.worst(ENTRIES)]
    order = list(catalogue.SEVERITIES).index
    assert len({entry.finding.library for entry in worst}) == len(worst) == 10
    assert [order(e.severity) for e in worst] == sorted(order(e.severity) for e in worst)
    assert all(entry in COUNTED and entry.finding.picture for entry in worst)
    assert all(row.reason.endswith(".") for row in ZOO.worst)
    hypothetical = {"DL-22", "DX-03"}  # there is no major version 2
    assert not hypothetical & {rule for entry in worst for rule in entry.finding.rules}


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


@pytest.mark.parametrize("environment", ZOO.environments.values(), ids=lambda e: e.name)
def test_a_record_is_as_new_as_the_catalogue(environment: Environment):
    judged_by = read_json(RESULTS / f"{environment.name}.json")["catalogue"]
    assert judged_by == runs.CATALOGUE, "run: conformance/zoo/zoo.py run"


@pytest.mark.parametrize("environment", ZOO.environments.values(), ids=lambda e: e.name)
def test_a_record_names_every_rule_with_its_outcome(environment: Environment):
    result = read_json(RESULTS / f"{environment.name}.json")
    assert result["profile"] == "default"
    for target in result["targets"]:
        built_in = producers.BUILT_IN.get(target["target"])
        selected = catalogue.select(built_in.rules if built_in else None, target["side"])
        rules = {rule.id for rule in selected}
        named = " ".join(target["outcomes"].values()).split()
        assert sorted(named) == sorted(rules), target["target"]
        assert "ERROR" not in target["outcomes"], target["target"]


def test_a_change_of_a_rule_makes_the_records_old(monkeypatch: pytest.MonkeyPatch):
    rules = catalogue.load()
    for change in ({"level": "SHOULD"}, {"preconditions": ("PB-01",)}):
        changed = {**rules, "PB-24": replace(rules["PB-24"], **change)}
        monkeypatch.setattr(catalogue, "load", lambda: changed)
        assert catalogue.digest() != runs.CATALOGUE
    monkeypatch.setattr(
        catalogue, "load", lambda: {**rules, "PB-24": replace(rules["PB-24"], why="")}
    )
    assert catalogue.digest() == runs.CATALOGUE


def test_every_registered_consumer_runs_in_the_zoo():
    judged = {
        target for environment in ZOO.environments.values() for target in environment.consumers
    }
    others = {
        name
        for name, entry in named_consumers.BUILT_IN.items()
        if not entry.needs_gpu and entry.needs != "gridbuf"
    }
    assert others <= judged


def _explained(environment: Environment, side: str, target: str, rule: str) -> bool:
    remarked = any(
        (remark.library, remark.side, remark.rule) == (environment.library, side, rule)
        for remark in ZOO.remarks
    )
    is_elsewhere = (side, target, rule) in entry_points.elsewhere()
    return remarked or is_elsewhere or ZOO.finding_of(environment, side, target, rule) is not None


def test_no_result_is_left_of_what_is_gone():
    names = {path.stem for path in RESULTS.glob("*.json")} - {"verified", "reproduced", "versions"}
    assert names == set(ZOO.environments)
    assert set(VERIFIED) == set(_ids(ZOO.findings))
    assert set(REPRODUCED) <= set(_ids(ZOO.findings))


@pytest.mark.parametrize("environment", ZOO.environments.values(), ids=lambda e: e.name)
def test_requirements_are_pinned(environment: Environment):
    assert all("==" in requirement for requirement in environment.requirements)


def test_the_page_is_what_the_records_render_to():
    assert page.PAGE.read_text("utf-8") == page.render(ZOO), "run: conformance/zoo/zoo.py docs"


def test_each_finding_has_a_section_on_the_page_of_its_library(tmp_path: Path):
    assert zoo.main(["docs", "--site", str(tmp_path)]) == 0
    sections = {
        line.removeprefix("## "): path.read_text("utf-8").partition("\n")[0]
        for path in tmp_path.glob("*.md")
        for line in path.read_text("utf-8").splitlines()
        if line.startswith("## ")
    }
    assert sections == {finding.id: f"# {finding.library}" for finding in ZOO.findings}


@pytest.mark.parametrize(
    "text, written",
    [
        ("memoryview.__getbuffer__ copies", r"memoryview.\_\_getbuffer\_\_ copies"),
        ("with _pack_ = 1 and PyBUF_ND", r"with \_pack\_ = 1 and PyBUF_ND"),
        ("data `a*b` < 2 * c", r"data `a*b` \< 2 \* c"),
    ],
)
def test_prose_has_no_markup_of_markdown(text: str, written: str):
    assert page._prose(text) == written


def test_the_chart_has_the_data_of_the_records():
    description = json.dumps(page.chart_data(ZOO), sort_keys=True)
    assert description in page.CHART.read_text("utf-8").replace("&quot;", '"')


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
    assert reduced["outcomes"] == {"FAIL": "PB-01", "PASS": "PB-02", "UNSUPPORTED": "DL-01"}
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


@pytest.mark.parametrize("outcome, proved", [("FAIL", True), ("PASS", False)])
def test_a_finding_without_a_peer_needs_its_own_replay_only(outcome: str, proved: bool):
    assert runs.is_verified({"affected": {"outcome": outcome}}) is proved


def test_addresses_and_folders_are_left_out():
    told = "<capsule at 0x7f12aabbccdd> in /home/me/lib/x.py: 140018788138496 of 8"
    assert venvs.without_paths(told) == "<capsule at …> in …/x.py: … of 8"


SCRIPT = '"""It is wrong."""\n'
_GOOD = {
    "id": "demo-wrong",
    "requires-python": "==3.13.*",
    "dependencies": ["demo==1"],
    "library": "demo",
    "side": "producer",
    "target": "demo",
    "rule": "PB-01",
    "plan": "{}",
    "passes": "demo-2",
    "severity": "values",
    "expected": "It is right.",
    "impact": "It is wrong.",
    "fix": "Correct it.",
    "status": "new",
    "searched": "2026-01-01: demo wrong",
}
_ENVIRONMENT = """
[[environment]]
name = "demo-{0}"
library = "demo"
version = "{0}"
python = "3.13"
requirements = ["demo=={0}"]
age = "old"
producers = ["demo"]
"""


def _write(folder: Path, finding: dict[str, object]) -> None:
    """Two environments, and a script with this header."""
    tables = "".join(_ENVIRONMENT.format(version) for version in (1, 2))
    (folder / "environments.toml").write_text(f"date = 2026-01-01\n{tables}")
    lines = {
        key: f"# {key} = {json.dumps(value)}\n" for key, value in finding.items() if key != "id"
    }
    top = "".join(lines.pop(key, "") for key in ("requires-python", "dependencies"))
    record = "#\n# [tool.gridbuf-finding]\n" + "".join(lines.values())
    script = folder / f"reproducers/{finding['id']}.py"
    script.parent.mkdir()
    script.write_text(f"# /// script\n{top}{record}# ///\n{SCRIPT}")


BAD = {
    "dependencies of no environment": ({"dependencies": ["demo==3"]}, "no environment has"),
    "another Python": ({"requires-python": "==3.12.*"}, "no environment has"),
    "a target that is not judged": ({"target": "other"}, "no environment has"),
    "an environment that is not there": ({"passes": "nowhere"}, "no environment is called"),
    "an unknown side": ({"side": "both"}, "no environment has"),
    "a tracker that is not a link": (
        {"status": "reported", "searched": "", "tracker": "see #12"},
        "tracker must be",
    ),
    "a new finding that was not searched for": ({"searched": ""}, "searched is for"),
    "a new finding with a tracker": ({"tracker": "https://example.org"}, "tracker must be"),
    "an unknown status": ({"status": "old"}, "status must be"),
    "a fix without a version": (
        {"status": "fixed", "searched": "", "tracker": "https://example.org"},
        "fixed_in is for",
    ),
    "an argument without a link": ({"counter": "No."}, "counter needs"),
    "a source without a link": ({"source": "A text."}, "source needs"),
    "an unknown severity": ({"severity": "bad"}, "severity must be"),
    "an unknown key": ({"colour": "red"}, "unknown keys"),
    "a name of the file with spaces": ({"id": "two words"}, "lower case"),
}


@pytest.mark.parametrize("change, message", BAD.values(), ids=BAD)
def test_a_record_that_does_not_fit_is_refused(
    change: dict[str, object], message: str, tmp_path: Path
):
    _write(tmp_path, {**_GOOD, **change})
    with pytest.raises(ValueError, match=message):
        records.load(tmp_path)


@pytest.mark.parametrize("missing", sorted({*_GOOD} - {"id", "passes", "searched"}))
def test_a_record_without_a_key_is_refused(missing: str, tmp_path: Path):
    _write(tmp_path, {key: value for key, value in _GOOD.items() if key != missing})
    with pytest.raises(ValueError, match=f"demo-wrong.*{missing}"):
        records.load(tmp_path)


def test_a_script_without_a_header_is_refused(tmp_path: Path):
    _write(tmp_path, _GOOD)
    (tmp_path / "reproducers/bare.py").write_text(SCRIPT)
    with pytest.raises(ValueError, match="bare.py: its header"):
        records.load(tmp_path)


def test_a_script_without_a_docstring_is_refused(tmp_path: Path):
    _write(tmp_path, _GOOD)
    script = tmp_path / "reproducers/demo-wrong.py"
    script.write_text(script.read_text().replace(SCRIPT, "import sys\n"))
    with pytest.raises(ValueError, match="demo-wrong.py: the docstring"):
        records.load(tmp_path)


def test_a_record_that_fits_is_read(tmp_path: Path):
    _write(tmp_path, _GOOD)
    (finding,) = records.load(tmp_path).findings
    assert finding.peer == ("demo-2", "demo")
    assert finding.rules == ("PB-01",)
    assert (finding.id, finding.affected) == ("demo-wrong", "demo-1")
    assert (finding.title, finding.code) == ("It is wrong.", SCRIPT)
    assert not finding.is_contested


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
