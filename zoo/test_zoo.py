"""The zoo's files are well formed, its findings are proved, and the pages show all of it. Nothing
is installed here.
"""

from __future__ import annotations

import ast
import json
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import command
import entries
import page
import pytest
import records
import runs
import scripts
import venvs
from entries import Entry
from records import RESULTS, Environment, Finding, read_json

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.rules import catalogue

ZOO = records.load()
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
    proof = finding.replays
    assert runs.is_verified(proof) or finding.is_contested
    assert ("passes" in proof) == bool(finding.passes)


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_peer_is_a_released_library(finding: Finding):
    assert "mutants" not in finding.passes_target


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_the_texts_of_a_finding_are_sentences(finding: Finding):
    texts = (finding.expected, finding.impact, finding.fix, finding.counter)
    for text in filter(None, texts):
        assert text.strip() == text
        assert text.endswith((".", ")", "`"))


def _names(finding: Finding) -> set[str]:
    """The names of a library, its package and its modules, and of the part of CPython."""
    modules = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(finding.code))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else _aliases(node))
    }
    own = {"ctypes"} if finding.library == "CPython" else modules - {*sys.stdlib_module_names}
    packages = ZOO.environments[finding.affected].requirements[:1]
    return {finding.library, *(text.partition("==")[0] for text in packages), *own}


def _aliases(node: ast.Import) -> list[str]:
    return [alias.name for alias in node.names]


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_title_names_its_library_before_another_one(finding: Finding):
    def place(name: str) -> int:
        found = re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", finding.title, re.I)
        return found.start() if found else len(finding.title)

    others = {"numpy", *ZOO.libraries} - {finding.library}
    own = {name for name in _names(finding) if name not in others}
    if finding.library == "NumPy":
        own, others = own | {"numpy"}, others - {"numpy"}
    assert min(map(place, own)) < min(map(place, others))


@pytest.mark.parametrize("finding", ZOO.findings, ids=_ids(ZOO.findings))
def test_a_title_is_no_sentence(finding: Finding):
    assert finding.title.strip() == finding.title
    assert not finding.title.endswith(".")


READERS = {"NumPy", "CTranslate2", "XGBoost"}
"""Consumers that read `__array_interface__` themselves. Others take a NumPy array, so NumPy's C API
binds them.
"""


@pytest.mark.parametrize("entry", ENTRIES, ids=_of_entry)
def test_a_finding_cites_what_binds_its_library(entry: Entry):
    title, link = entry.source
    assert title and link.startswith("https://")
    if entry.finding.side == "consumer" and "arrays.interface" in link:
        assert entry.finding.library in READERS


# The scripts
# ------------------------------------------------------------------------------------------------


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
    wanted = scripts.environments(finding, ZOO)
    assert set(finding.runs) == {environment.name for environment in wanted}
    for environment in wanted:
        result = finding.runs[environment.name]
        there = environment.name in finding.environments
        assert scripts.outcome(result) == (scripts.SHOWN if there else scripts.GONE), result["told"]


def _installed(finding: Finding) -> str:
    """The environment of the zoo that this process is like, for libraries that the tests have
    anyway.
    """
    for environment in scripts.environments(finding, ZOO):
        here = {"CPython": platform.python_version, "NumPy": lambda: metadata.version("numpy")}
        version = here.get(finding.library)
        if version and version() == environment.version:
            return environment.name
    return ""


@pytest.mark.parametrize("finding", [f for f in ZOO.findings if _installed(f)], ids=lambda f: f.id)
def test_a_script_does_here_what_is_recorded(finding: Finding):
    environment = ZOO.environments[_installed(finding)]
    result = scripts.run(finding, Path(sys.executable))
    recorded = finding.runs[environment.name]
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


# Severity
# --------------------------------------------------------------------------------------------------

SHOWS = {
    "memory": r"died of signal|freed|moved under|memory is gone|no memory|other memory|deleted",
    "values": r" became | read as | is written as |was written|made element|first element|"
    r"element \[|other values|, not \[\[|defect: \[\[",
    "leak": r"not called|still hold|are left|more after",
    "refusal": r"Invalid|Only contiguous|only supports|does not support|construction from null",
    "form": "",
}
"""What the line of a script says if the finding is of a severity. That of form may say anything
else.
"""


@pytest.mark.parametrize("entry", ENTRIES, ids=_of_entry)
def test_the_severity_is_what_the_script_shows(entry: Entry):
    line = entry.finding.runs[entry.finding.affected]["told"]
    assert re.search(SHOWS[entry.severity], line), line
    assert entry.crashed is ("died of signal" in line)
    assert entry.severity == "memory" or not entry.crashed


# The whole
# --------------------------------------------------------------------------------------------------


def test_form_and_contested_findings_are_not_in_the_headline():
    assert not any(e.severity == "form" or e.finding.is_contested for e in COUNTED)
    assert not {"form"} & set(page.counts(ZOO)["severity"])


def test_the_headline_counts_patterns_and_fixes():
    text = page.render(ZOO)
    fixed = [entry for entry in COUNTED if entry.finding.fixed_in]
    assert f"{len(fixed)} of the {len(COUNTED)} are fixed." in text
    for name, told in ZOO.patterns.items():
        number = sum(entry.finding.pattern == name for entry in COUNTED)
        assert number > 1 and f"- {number} of {len(COUNTED)}: {told}" in text


@pytest.mark.parametrize("library", sorted({finding.library for finding in ZOO.findings}))
def test_a_library_has_one_newest_version(library: str):
    """A finding that is in it says so; another one is not there, or was not tried there."""
    newest = entries.newest(ZOO, library)
    own = [entry for entry in ENTRIES if entry.finding.library == library]
    for entry in (entry for entry in own if not entry.is_carried):
        assert records.order(entry.version) <= records.order(newest)
        assert entry.newest == (entry.version == newest)


def test_the_ten_worst_are_ranked_with_a_reason_each():
    worst = [entry for entry, _ in entries.worst(ENTRIES)]
    order = list(catalogue.SEVERITIES).index
    assert len({entry.finding.library for entry in worst}) == len(worst) == 10
    assert [order(e.severity) for e in worst] == sorted(order(e.severity) for e in worst)
    assert all(entry in COUNTED and entry.finding.picture for entry in worst)
    assert all(row.reason.endswith(".") for row in ZOO.worst)
    hypothetical = {"DL-22", "DX-03"}  # there is no major version 2
    assert not hypothetical & {rule for entry in worst for rule in entry.finding.rules}


RECORDED = [e for e in ZOO.environments.values() if (RESULTS / f"{e.name}.json").exists()]
OUTCOMES = {*runs.FAILED, "PASS", "ADVISORY", "FRAGILE", "BLOCKED", "UNSUPPORTED", "UNTESTED"}
GROUPS = {rule.partition("-")[0] for rule in catalogue.load()}


@pytest.mark.parametrize("environment", RECORDED, ids=lambda e: e.name)
def test_a_record_is_well_formed(environment: Environment):
    """Which catalogue judged does not matter: a rule that is new has no outcome here, and the page
    says so.
    """
    result = read_json(RESULTS / f"{environment.name}.json")
    keys = {key: result.pop(key) for key in ("library", "version", "python")}
    assert keys == {key: getattr(environment, key) for key in keys}
    assert set(result) == {"profile", "catalogue", "targets"}
    assert result["profile"] == runs.PROFILE
    ran = [(target["side"], target["target"]) for target in result["targets"]]
    assert ran == environment.targets
    for target in result["targets"]:
        by_outcome = {name: runs.listed(text) for name, text in target["outcomes"].items()}
        rules = [rule for named in by_outcome.values() for rule in named]
        assert set(by_outcome) <= OUTCOMES and len(rules) == len(set(rules))
        assert {rule.partition("-")[0] for rule in rules} <= GROUPS
        failed = {rule for name in runs.FAILED for rule in by_outcome.get(name, ())}
        assert failed == set(target["failures"])
        assert set(target.get("alone", ())) <= set(rules)
        digests = {result["catalogue"], *target.get("alone", {}).values()}
        assert all(re.fullmatch("[0-9a-f]{12}", digest) for digest in digests)


def test_each_rule_that_judged_no_library_is_on_the_page_with_the_reason():
    judged = {
        rule
        for environment in RECORDED
        for target in read_json(RESULTS / f"{environment.name}.json")["targets"]
        for outcome, text in target["outcomes"].items()
        if outcome not in ("BLOCKED", "UNSUPPORTED", "UNTESTED", "ERROR")
        for rule in runs.listed(text)
    }
    shown = dict(page.unreached(ZOO))
    listed = [rule for rules in shown.values() for rule in rules]
    assert len(listed) == len(set(listed))
    rules = catalogue.load()
    assert set(listed) == {id_ for id_ in rules if id_ not in judged or rules[id_].untestable}
    row = next(line for line in page.render(ZOO).splitlines() if line.startswith("| needs a CUDA"))
    assert set(runs.listed(row)) == set(shown[page.NEEDS_CUDA]) > {"CAI-01", "DL-18", "DP-19"}
    assert not set(page.REASONS) - set(listed), "a reason for a rule that judges by now"


def test_a_rule_without_outcomes_is_newer_than_the_records(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "read_json", lambda path: {})
    assert dict(page.unreached(ZOO))["newer than the records"]


def test_no_result_is_left_of_what_is_gone():
    assert {path.stem for path in RESULTS.glob("*")} <= set(ZOO.environments)


def test_a_failure_that_the_reading_library_has_too_is_its_own():
    failures = entries.elsewhere(ZOO)
    assert ("consumer", "jax.numpy.asarray", "XA-15") in failures
    assert ("consumer", "zoo/consumers.py:opencv_copied", "AI-34") not in failures


# The pages
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[Any], None]], str]:
    """The page after a change of the record of one environment."""

    def render(name: str, change: Callable[[Any], None]) -> str:
        def read(path: Path) -> dict[str, Any]:
            record = read_json(path)
            if path.stem == name:
                change(record)
            return record

        monkeypatch.setattr(page, "read_json", read)
        return page.render(ZOO)

    return render


def test_a_record_that_is_older_than_a_rule_is_shown_as_such(changed):
    def forget(record: dict[str, Any]) -> None:
        record["catalogue"] = "0123456789ab"
        for target in record["targets"]:
            target["outcomes"] = {
                outcome: runs.packed(set(runs.listed(text)) - {"PB-24"})
                for outcome, text in target["outcomes"].items()
            }

    line = (
        r"- catalogue 0123456789ab: cffi 2\.1\.1; "
        r"\d+ newer rules? did not judge there \(.*\bPB-24\b"
    )
    assert re.search(line, changed("cffi-2.1.1", forget))


def test_a_failure_without_a_finding_is_shown_as_not_examined(changed):
    def fail(record: dict[str, Any]) -> None:
        record["targets"][0]["failures"]["PB-25"] = {"outcome": "FAIL"}

    title = "\nNot examined yet:\n"
    assert title not in page.render(ZOO)
    assert f"{title}\n- cffi 2.1.1, PB-25 (`cffi`)\n" in changed("cffi-2.1.1", fail)


def test_an_environment_without_a_record_is_not_run(changed):
    assert "cffi 2.1.1: not run\n" in changed("cffi-2.1.1", dict.clear)


def test_a_target_of_the_suite_that_no_environment_judges_is_named():
    kept = {name: e for name, e in ZOO.environments.items() if e.library != "cffi"}
    others = set(page._unjudged(replace(ZOO, environments=kept))) - set(page._unjudged(ZOO))
    assert others == {
        "`cffi` (producer)",
        "`cffi.readonly` (producer)",
        "`cffi.from_buffer` (consumer)",
    }


def test_the_page_names_each_finding_and_its_links_lead_somewhere(site: Path):
    text = (site / "zoo.md").read_text("utf-8")
    scripts = set(re.findall(r"\]\(\.\./zoo/findings/([^)]+)\)", text))
    assert scripts == {finding.script.name for finding in ZOO.findings}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert command.main(["docs", str(folder)]) == 0
    return folder


def test_each_finding_has_a_section_on_the_page_of_its_library(site: Path):
    sections = {
        line.removeprefix("## "): path.read_text("utf-8").partition("\n")[0]
        for path in (site / "zoo").glob("*.md")
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


@pytest.mark.parametrize("is_current", [True, False])
def test_the_chart_has_the_data_of_the_records(
    is_current: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also where the committed chart is older than a finding: then it is drawn."""
    if not is_current:
        monkeypatch.setattr(page, "CHART", tmp_path / "none.svg")
    page._draw(ZOO, tmp_path / "images/zoo.svg")
    drawn = (tmp_path / "images/zoo.svg").read_text("utf-8").replace("&quot;", '"')
    assert json.dumps(page.chart_data(ZOO), sort_keys=True) in drawn


# The machinery
# ----------------------------------------------------------------------------------------------


def test_reduced_reports_keep_failures_and_nothing_that_varies():
    failure = {
        "plan": {"shape": [2], "dtype": "float64"},
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
            {"id": "PB-03", "outcome": "PASS", "failures": []},
            {"id": "DL-01", "outcome": "UNSUPPORTED", "failures": []},
        ],
    }
    reduced = runs.reduced(report)
    assert reduced["outcomes"] == {"FAIL": "PB-01", "PASS": "PB-02…03", "UNSUPPORTED": "DL-01"}
    kept = {"outcome": "FAIL", "plan": {"shape": [2]}, "expected": "a", "actual": "b c"}
    assert reduced["failures"] == {"PB-01": kept}
    assert "timing" not in reduced


@pytest.mark.parametrize(
    "rules, text",
    [
        ("", ""),
        ("PB-07", "PB-07"),
        ("PB-01 PB-02 PB-03 PB-05", "PB-01…03 PB-05"),
        ("PB-09 PB-10 CAI-01 PB-11 AI-01", "AI-01 CAI-01 PB-09…11"),
    ],
)
def test_ids_of_rules_become_a_short_text(rules: str, text: str):
    assert runs.packed(rules.split()) == text
    assert sorted(runs.listed(text)) == sorted(rules.split())


# One library, one rule
# ---------------------------------------------------------------------------------------


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What is asked of the suite, which answers that PB-24 fails and all else passes; records go to
    a folder.
    """
    asked: list[tuple[str, ...]] = []

    def suite(python: Path, command: str, side: str, target: str, *arguments: str) -> Any:
        asked.append((side, target, *arguments))
        rules = runs.selected(side, target)
        if "--rules" in arguments:
            rules &= set(arguments[-1].split(","))
        failure = {"plan": {"shape": [1]}, "expected": "a", "actual": "b"}
        return {
            "target": {"version": "2"},
            "rules": [
                {"id": r, "outcome": "FAIL", "failures": [failure]}
                if r == "PB-24"
                else {"id": r, "outcome": "PASS", "failures": []}
                for r in catalogue.load()
                if r in rules
            ],
        }

    monkeypatch.setattr(venvs, "make", lambda environment, folder: Path(sys.executable))
    monkeypatch.setattr(venvs, "suite", suite)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    return asked


def test_one_library_is_judged_alone(judged: list[tuple[str, ...]], tmp_path: Path):
    assert command.main(["run", "--library", "numpy"]) == 0
    own = {e.name for e in ZOO.environments.values() if e.library == "NumPy"}
    assert {path.stem for path in tmp_path.glob("*.json")} == own and len(own) > 2
    assert command.main(["run", "--library", "nothing"]) == 2


def test_one_rule_is_judged_alone(judged: list[tuple[str, ...]], tmp_path: Path):
    """The rest of the record stays, and the rule's part says which catalogue judged it."""
    old = read_json(RESULTS / "cffi-2.1.1.json")
    assert "PB-24" not in old["targets"][0]["failures"] and "PB-24" in catalogue.load()
    records.write_json(tmp_path / "cffi-2.1.1.json", {**old, "catalogue": "0123456789ab"})
    assert command.main(["run", "cffi-2.1.1", "--rule", "PB-24"]) == 0
    asked = ("--profile", "default", "--rules", "PB-24")
    assert judged == [("producer", "cffi", *asked), ("consumer", "cffi.from_buffer", *asked)]
    new = read_json(tmp_path / "cffi-2.1.1.json")
    assert new["catalogue"] == "0123456789ab"
    for was, target in zip(old["targets"], new["targets"]):
        if target["target"] == "cffi.readonly":  # its producer leaves the rule out
            assert target == was
            continue
        assert target.pop("alone") == {"PB-24": runs.CATALOGUE}
        assert target["failures"].pop("PB-24")["outcome"] == "FAIL"
        assert target["failures"] == was["failures"]
        assert target["outcomes"].pop("FAIL") == runs.packed([*was["failures"], "PB-24"])
        for outcome, rules in target["outcomes"].items():
            assert set(runs.listed(rules)) == set(runs.listed(was["outcomes"][outcome])) - {"PB-24"}


def test_a_rule_that_is_new_to_a_record_gets_its_part(
    judged: list[tuple[str, ...]], tmp_path: Path
):
    old = read_json(RESULTS / "bitarray-3.12.3.json")
    target, before = old["targets"][0], runs.newer(old)
    target["outcomes"] = {
        outcome: runs.packed(set(runs.listed(text)) - {"PB-24"})
        for outcome, text in target["outcomes"].items()
    }
    assert {*runs.newer(old)} - {*before} == {"PB-24"}
    records.write_json(tmp_path / "bitarray-3.12.3.json", old)
    assert command.main(["run", "--library", "bitarray", "--rule", "PB-24"]) == 0
    new = read_json(tmp_path / "bitarray-3.12.3.json")
    assert runs.newer(new) == before
    assert new["targets"][0]["failures"]["PB-24"]["plan"] == {}


def test_a_rule_that_is_not_there_is_refused(judged: list[tuple[str, ...]]):
    assert command.main(["run", "--rule", "PB-99"]) == 2
    assert not judged


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
_LIBRARY = """
name = "demo"
documentation = "https://example.org/"
exports = [{ name = "array", targets = ["demo"] }]

[[environment]]
python = "3.13"
requirements = ["demo==1"]
producers = ["demo"]

[[environment]]
python = "3.13"
requirements = ["demo==2"]
producers = ["demo"]
"""


def _write(folder: Path, finding: dict[str, object]) -> None:
    """A library in two environments, and a script with this header."""
    (folder / "zoo.toml").write_text("date = 2026-01-01\n")
    (folder / "libraries").mkdir()
    (folder / "libraries/demo.toml").write_text(_LIBRARY)
    lines = {
        key: f"# {key} = {json.dumps(value)}\n" for key, value in finding.items() if key != "id"
    }
    top = "".join(lines.pop(key, "") for key in ("requires-python", "dependencies"))
    record = "#\n# [tool.gridbuf-finding]\n" + "".join(lines.values())
    script = folder / f"findings/{finding['id']}.py"
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
    "an unknown pattern": ({"pattern": "stripes"}, "no pattern is called"),
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


def test_verify_writes_into_the_script_and_removes_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Two findings need the environments, and each is removed after the last one. A third cannot be
    made.
    """
    _write(tmp_path, _GOOD)
    script = tmp_path / "findings/demo-wrong.py"
    (tmp_path / "findings/demo-again.py").write_text(script.read_text())
    made: list[str] = []
    replays = {"affected": {"outcome": "FAIL"}, "passes": {"outcome": "PASS"}}
    shown = {"date": "2026-01-01", "exit": 1, "told": "defect: x"}
    monkeypatch.setattr(command, "load", lambda: records.load(tmp_path))
    monkeypatch.setattr(runs, "verified", lambda *_: replays)
    monkeypatch.setattr(scripts, "run", lambda *_: shown)
    monkeypatch.setattr(venvs, "make", lambda e, folder: made.append(e.name) or Path(e.name))
    monkeypatch.setattr(venvs, "discard", lambda e, folder: made.append(f"no {e.name}"))
    assert command.main(["verify", "--discard"]) == 0
    assert made == ["demo-1", "demo-2"] * 2 + ["no demo-1", "no demo-2"]
    for finding in records.load(tmp_path).findings:
        assert finding.replays == replays
        assert finding.runs == {"demo-1": shown, "demo-2": shown}
    made.clear()
    assert command.main(["verify", "--missing"]) == 0 and not made

    def cannot(environment: Environment, folder: Path) -> Path:
        raise venvs.CannotMake("no such wheel")

    monkeypatch.setattr(venvs, "make", cannot)
    assert command.main(["verify", "demo-wrong"]) == 1
    assert "! no such wheel" in capsys.readouterr().out
    assert "runs" not in script.read_text()


def test_a_script_without_a_header_is_refused(tmp_path: Path):
    _write(tmp_path, _GOOD)
    (tmp_path / "findings/bare.py").write_text(SCRIPT)
    with pytest.raises(ValueError, match="bare.py: its header"):
        records.load(tmp_path)


def test_a_script_without_a_docstring_is_refused(tmp_path: Path):
    _write(tmp_path, _GOOD)
    script = tmp_path / "findings/demo-wrong.py"
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


BAD_LIBRARY = {
    "a target that drives nothing": ('["demo"] }', "[] }", "give targets, or a reason"),
    "a target and a reason": (
        '["demo"] }',
        '["demo"], reason = "no." }',
        "give targets, or a reason",
    ),
    "a target that no environment judges": ('["demo"] }', '["demo", "x"] }', r"x \(producer\)"),
    "a target that is not listed": ('producers = ["demo"]', 'producers = ["demo", "y"]', r"y \(pr"),
    "a link that is none": ("https://example.org/", "example", "are a link"),
    "a reader that is not there": ('["demo"] }', '["demo"], through = "Numpy" }', "no library is"),
    "two entry points of one name": (
        "exports = [",
        'exports = [{ name = "array", reason = "no." }, ',
        "twice",
    ),
    "a version that is not pinned": ("demo==1", "demo", "pinned with =="),
    "two environments of one name": ("demo==2", "demo==1", "there twice"),
    "an unknown key": ("documentation", "colour = 1\ndocumentation", "unknown keys"),
    "another name than that of the file": ('"demo"\n', '"Demo 2"\n', "demo-2.toml"),
}


@pytest.mark.parametrize("old, new, message", BAD_LIBRARY.values(), ids=BAD_LIBRARY)
def test_a_library_that_does_not_fit_is_refused(old: str, new: str, message: str, tmp_path: Path):
    _write(tmp_path, _GOOD)
    path = tmp_path / "libraries/demo.toml"
    assert old in _LIBRARY
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        records.load(tmp_path)


def test_runs_are_written_below_what_is_written_by_hand(tmp_path: Path):
    _write(tmp_path, _GOOD)
    script = tmp_path / "findings/demo-wrong.py"
    before = script.read_text()
    told = 'defect: "a\\b" is é, not \x07'
    records.write_records(script, {"replays": {"affected": {"outcome": "FAIL"}}})
    records.write_records(script, {"runs": {"demo-1": {"exit": 1, "told": told}}})
    (finding,) = records.load(tmp_path).findings
    assert finding.replays == {"affected": {"outcome": "FAIL"}}
    assert finding.runs == {"demo-1": {"exit": 1, "told": told}}
    assert finding.code == SCRIPT
    assert script.read_text().startswith(before.partition('# ///\n"')[0])
    records.write_records(script, {"replays": {}, "runs": {}})
    assert script.read_text() == before


def test_an_interpreter_that_is_not_here_is_named():
    absent = Environment("x", "x", "1", "2.1", ())
    with pytest.raises(venvs.CannotMake, match="CPython 2.1 is not here"):
        venvs.make(absent, Path("unused"))


def test_the_command_lists_and_refuses_names_that_are_not_there(capsys: pytest.CaptureFixture[str]):
    assert command.main(["list"]) == 0
    assert ZOO.findings[0].affected in capsys.readouterr().out
    assert command.main(["verify", "no-such-finding"]) == 2
    assert "no finding is called 'no-such-finding'" in capsys.readouterr().err
