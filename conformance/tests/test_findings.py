"""The findings that the suite ships: the commands `reproduce`, `report` and `list findings`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gridbuf_conformance import cli, findings
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
def test_a_report_has_all_parts(finding):
    text = findings.report(finding)
    title, _, rest = text.partition("\n")
    assert title == f"# {finding.title}"
    headings = [line for line in rest.splitlines() if line.startswith("## ")]
    parts = ("Versions", "Script", "Observed", "Expected", "Impact", "Suggested fix")
    assert headings == [f"## {part}" for part in parts]
    assert finding.issues in rest
    assert finding.script in rest
    assert catalogue.load()[finding.rule].requirement in rest


def test_a_matter_of_memory_is_reported_privately_first():
    finding = next(f for f in ALL if f.severity == "memory" and f.security)
    assert f"Report it privately first if the project has a policy for it: {finding.security}" in (
        findings.report(finding)
    )


def test_a_known_finding_names_its_thread_and_a_contested_one_the_argument():
    known = next(finding for finding in ALL if finding.tracker)
    assert f"({known.status}): {known.tracker}" in findings.report(known)
    contested = next(finding for finding in ALL if finding.contested)
    assert f"Contested: {contested.contested}" in findings.report(contested)


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


def test_report_is_printed(capsys):
    assert cli.main(["report", "ctypes-fortran-granted"]) == 0
    assert capsys.readouterr().out.startswith("# ")


def test_findings_are_listed(capsys):
    assert cli.main(["list", "findings"]) == 0
    printed = capsys.readouterr().out
    assert all(finding.id in printed for finding in ALL)
    assert f"{len(ALL)} findings" in printed


@pytest.mark.parametrize("command", ["reproduce", "report"])
def test_a_name_that_is_not_there_is_usage(command, capsys):
    assert cli.main([command, "ctypes-fortran"]) == 2
    assert "did you mean ctypes-fortran-granted?" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_usage(tmp_path, capsys):
    arguments = ["report", "ctypes-fortran-granted", "--output", str(tmp_path)]
    assert cli.main(arguments) == 2
    assert "cannot write" in capsys.readouterr().err
