"""The findings that the suite ships: the commands `reproduce`, `issue` and `list findings`."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from gridbuf_conformance import cli, findings, named_consumers, producers
from gridbuf_conformance.rules import catalogue

ALL = list(findings.load().values())
SEVERITIES = {"memory", "values", "leak", "refusal", "form"}


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_a_finding_is_complete(finding):
    assert finding.severity in SEVERITIES
    assert {finding.rule, *finding.also_rules} <= set(catalogue.load())
    assert finding.versions
    assert finding.title
    assert bool(finding.searched) == (finding.status == "new")
    assert bool(finding.tracker) == (finding.status != "new")


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_an_issue_has_all_parts(finding):
    text = findings.issue(finding)
    title, _, rest = text.partition("\n")
    assert title == f"# {finding.title}"
    headings = [line for line in rest.splitlines() if line.startswith("## ")]
    parts = ("Versions", "Script", "Observed", "Expected", "Impact", "Suggested fix")
    assert headings == [f"## {part}" for part in parts]
    assert finding.issues in rest
    assert finding.script in rest
    assert re.search(r"\]\(https://[^)]+\), [A-Z]{2,3}-[0-9]{2}\)", _part(rest, "Expected"))


def _part(text, name):
    return text.partition(f"## {name}\n")[2].partition("\n## ")[0]


# An issue against its script ---------------------------------------------------------------------------------


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_what_is_observed_is_what_the_script_printed(finding):
    observed = _part(findings.issue(finding), "Observed")
    shown = [run for run in finding.runs if run["exit"] == 1]
    assert f"```text\n{shown[0]['told']}\n```" in observed
    assert f"{finding.library} {shown[0]['version']} " in observed


def _evidence(finding):
    """The script, what it printed, and the versions: what the texts of an issue may refer to."""
    printed = [str(run["told"]) for run in finding.runs]
    return "\n".join([finding.title, finding.script, finding.source, finding.status, *printed])


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
@pytest.mark.parametrize("part", ["expected", "impact"])
def test_a_number_or_a_quotation_is_in_the_script_or_in_what_it_printed(finding, part):
    text, evidence = getattr(finding, part).replace("PEP 3118", ""), _evidence(finding)
    for number in re.findall(r"(?<![\w.])-?[0-9][0-9.,]*[0-9]|(?<![\w.])[0-9](?![\w])", text):
        plain = number.replace(",", "")
        assert re.search(rf"(?<![0-9]){re.escape(plain)}(?![0-9])", evidence.replace("_", "")), (
            number
        )
    for quoted in re.findall(r"`([^`]+)`", text):
        assert quoted in evidence, quoted


CLAIMS = {
    r"\b(crash|abort)": r"died of signal",
    r"(?<!never )freed|given back": r"freed|moved under|memory is gone|died of signal|deleted",
    r"never freed": r"not called|still hold|are left|more after",
    r"memory that is not|memory behind": r"died of signal|other memory",
    r"MemoryError": r"MemoryError|other values",
}
"""What the text of an impact says, and what a script has to have printed for it."""


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_an_impact_claims_what_the_script_shows(finding):
    printed = "\n".join(str(run["told"]) for run in finding.runs if run["exit"] == 1)
    impact = finding.impact.replace("not a crash", "").replace("without a crash", "")
    for claim, proof in CLAIMS.items():
        assert not re.search(claim, impact) or re.search(proof, printed), claim
    if "died of signal" in printed:
        assert re.search(r"crash|abort", finding.impact)


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_a_fix_is_for_the_case(finding):
    """It names something of the script or of the title, and it is not the general line of the rule."""
    rule = catalogue.load()[finding.rule]
    assert finding.fix not in (rule.fix, rule.consumer_fix)
    assert sum(other.fix == finding.fix for other in ALL) == 1
    names = set(re.findall(r"[A-Za-z_]{4,}", finding.script + finding.title))
    named = {word for word in re.findall(r"[A-Za-z_]{4,}", finding.fix) if word in names}
    assert {word for word in named if not word.islower() or "_" in word or word in finding.title}
    told = re.findall(r"\. ([0-9.]+) does", finding.fix)
    assert all(f"fixed in {version}" == finding.status for version in told)


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_a_replay_in_an_issue_runs_with_the_wheel(finding):
    """A target that is a file is in the repository, not in a wheel."""
    assert "zoo/" not in findings.issue(finding)
    if finding.replay:
        target = next(w for w in shlex.split(finding.replay)[2:] if not w.startswith("--"))
        known = {**producers.BUILT_IN, **named_consumers.BUILT_IN}
        assert target in known or target.startswith("gridbuf_conformance.")


def test_a_matter_of_memory_is_reported_privately_first():
    finding = next(f for f in ALL if f.severity == "memory" and f.security)
    assert f"Report it privately first if the project has a policy for it: {finding.security}" in (
        findings.issue(finding)
    )


def test_a_known_finding_names_its_thread_and_a_contested_one_the_argument():
    known = next(f for f in ALL if f.status == "reported")
    assert f"({known.status}): {known.tracker}" in findings.issue(known)
    fixed = next(f for f in ALL if f.status.startswith("fixed in"))
    assert f"It is {fixed.status} ({fixed.tracker})" in findings.issue(fixed)
    contested = next(finding for finding in ALL if finding.contested)
    assert f"Contested: {contested.contested}" in findings.issue(contested)


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_a_script_compiles_and_says_what_to_install(finding):
    text = findings.script(finding)
    compile(text, finding.id, "exec")
    assert all(requirement in text for requirement in finding.requirements)


def test_reproduce_writes_a_script_that_runs(tmp_path):
    """ctypes is in every Python: its finding is here, or this Python has repaired it."""
    script = tmp_path / "new/script.py"
    assert cli.main(["reproduce", "ctypes-fortran-granted", "--output", str(script)]) == 0
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode in (0, 1)
    assert bool(done.returncode) == done.stderr.startswith("defect: ")


def test_an_issue_is_printed(capsys):
    assert cli.main(["issue", "ctypes-fortran-granted"]) == 0
    assert capsys.readouterr().out.startswith("# ")


def test_findings_are_listed(capsys):
    assert cli.main(["list", "findings"]) == 0
    printed = capsys.readouterr().out
    assert all(finding.id in printed for finding in ALL)
    assert f"{len(ALL)} findings" in printed


def test_a_line_of_the_list_has_at_most_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["list", "findings"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        ("--library", "pYtorch", "PyTorch"),
        ("--severity", "MEMORY", "memory"),
        ("--interface", "dlpack", "DLPack"),
    ],
)
def test_findings_are_selected_in_any_case(option, value, name, capsys):
    assert cli.main(["list", "findings", option, value]) == 0
    printed = capsys.readouterr().out
    matching = {f.id for f in ALL if getattr(f, option[2:]) == name}
    assert {f.id for f in ALL if re.search(rf"^  {f.id}  ", printed, re.MULTILINE)} == matching
    assert matching and len(matching) < len(ALL)


def test_filters_of_findings_go_together(capsys):
    assert cli.main(["list", "findings", "--library", "numpy", "--severity", "form"]) == 0
    wanted = [f for f in ALL if (f.library, f.severity) == ("NumPy", "form")]
    assert f"{len(wanted)} finding" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["findings", "--library", "pytroch"], "use one of PyTorch"),
        (["findings", "--severity", "huge"], "form, leak, memory, refusal, values"),
        (["findings", "--interface", "dlpck"], "buffer protocol, DLPack"),
        (["rules", "--library", "numpy"], "list findings --library"),
    ],
)
def test_a_filter_that_selects_nothing_is_usage(arguments, words, capsys):
    assert cli.main(["list", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_finding_is_explained_next_to_rules_and_groups(capsys):
    finding = next(f for f in ALL if f.id == "ctypes-fortran-granted")
    assert cli.main(["explain", finding.id.upper(), "pb-01", "as"]) == 0
    printed = capsys.readouterr().out
    assert finding.source_link in printed and f"reproduce {finding.id}" in printed
    assert " ".join(finding.impact.split()[:4]) in " ".join(printed.split())
    ids = re.findall(r"^((?:AS|PB)-\d\d)  ", printed, re.MULTILINE)
    assert ids == ["PB-01", *(rule for rule in catalogue.load() if rule.startswith("AS-"))]
    assert cli.main(["explain", finding.id, "--format", "md"]) == 0
    assert capsys.readouterr().out == findings.issue(finding)


def test_a_word_that_is_neither_a_rule_nor_a_finding_is_usage(capsys):
    assert cli.main(["explain", "ctypes-fortran"]) == 2
    told = capsys.readouterr().err
    assert "no rule matches" in told and "did you mean ctypes-fortran-granted?" in told


@pytest.mark.parametrize("command", ["reproduce", "issue"])
def test_a_name_that_is_not_there_is_usage(command, capsys):
    assert cli.main([command, "ctypes-fortran"]) == 2
    assert "did you mean ctypes-fortran-granted?" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_usage(tmp_path, capsys):
    arguments = ["issue", "ctypes-fortran-granted", "--output", str(tmp_path)]
    assert cli.main(arguments) == 2
    assert "cannot write" in capsys.readouterr().err
