"""The commands of findings (`reproduce`, `issue`, `list findings`, `explain`), on three findings
and on none.

The findings that the suite ships are the zoo's, which has the tests of their texts.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from types import MappingProxyType

import pytest

from gridbuf_conformance import cli, findings
from gridbuf_conformance.findings import Finding
from gridbuf_conformance.rules import catalogue

_TEXTS = {
    "expected": "It is right.",
    "impact": "A consumer reads other values.",
    "fix": "Correct it.",
    "source": "CPython (3.14), Py_buffer",
    "source_link": "https://docs.python.org/3.14/c-api/buffer.html",
    "python": "3.13",
    "newest": True,
}
SCRIPT = """\
import sys

sys.exit(0 if "b" > "a" else "defect: b is before a")
"""
_RUN = {"date": "2026-11-25", "exit": 1}
ALL = [
    Finding(
        "ctypes-fortran-granted", "CPython", "form", "producer", "buffer protocol", "PB-10",
        "ctypes grants a request for Fortran order, with memory in C order.",
        status="new", issues="https://github.com/python/cpython/issues", script=SCRIPT,
        versions=["3.13.0"], searched="2026-11-25: ctypes Fortran",
        runs=[{"version": "3.13.0", "python": "3.13.0", **_RUN, "told": "defect: x"}],
        **_TEXTS,
    ),
    Finding(
        "numpy-form", "NumPy", "form", "producer", "buffer protocol", "PB-04", "NumPy has a form.",
        status="fixed in 2.3", tracker="https://github.com/numpy/numpy/issues/1",
        issues="https://github.com/numpy/numpy/issues", script=SCRIPT, versions=["2.2.0"],
        requirements=["numpy==2.2.0"],
        runs=[{"version": "2.2.0", "python": "3.13", **_RUN, "told": "defect: y"}],
        **_TEXTS,
    ),
    Finding(
        "torch-memory", "PyTorch", "memory", "consumer", "DLPack", "DL-15",
        "torch.from_dlpack frees the memory twice, "
        "which ends the process in most cases, and so on.",
        status="reported", tracker="https://github.com/pytorch/pytorch/issues/2",
        issues="https://github.com/pytorch/pytorch/issues", script=SCRIPT, versions=["2.13.0"],
        security="https://github.com/pytorch/pytorch/security/policy",
        contested="It is documented.", contested_link="https://docs.pytorch.org/",
        runs=[{"version": "2.13.0", "python": "3.13", **_RUN, "told": "defect: z"}],
        **_TEXTS,
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def shipped(monkeypatch):
    """The suite has these findings."""
    monkeypatch.setattr(findings, "load", lambda: MappingProxyType({f.id: f for f in ALL}))


@pytest.mark.parametrize(
    "arguments", [["reproduce", "numpy-form"], ["issue", "numpy-form"], ["list", "findings"]]
)
def test_a_suite_without_findings_says_so(arguments, monkeypatch, capsys):
    monkeypatch.setattr(findings, "load", lambda: MappingProxyType({}))
    assert cli.main(arguments) == 2
    assert "this copy of the suite has no findings" in capsys.readouterr().err


def test_a_suite_without_the_zoo_has_no_findings(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(findings, "files", lambda package: tmp_path / "conformance" / package)
    findings.load.cache_clear()
    try:
        assert not findings.load()
    finally:
        findings.load.cache_clear()


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


def test_reproduce_writes_a_script_that_runs(tmp_path):
    script = tmp_path / "new/script.py"
    assert cli.main(["reproduce", "ctypes-fortran-granted", "--output", str(script)]) == 0
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr


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
        (["findings", "--library", "pytroch"], "did you mean PyTorch"),
        (["findings", "--severity", "huge"], "use one of form, memory"),
        (["findings", "--interface", "dlpck"], "buffer protocol, DLPack"),
        (["rules", "--library", "numpy"], "list findings --library"),
    ],
)
def test_a_filter_that_selects_nothing_is_usage(arguments, words, capsys):
    assert cli.main(["list", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_of_many_libraries_the_similar_ones_are_named(monkeypatch, capsys):
    others = [replace(ALL[0], id=f"other-{n}", library=f"library {n}") for n in range(9)]
    monkeypatch.setattr(findings, "load", lambda: {f.id: f for f in [*ALL, *others]})
    assert cli.main(["list", "findings", "--library", "pytroch"]) == 2
    named = capsys.readouterr().err.partition("did you mean ")[2]
    assert named.startswith("PyTorch") and "library 1" not in named


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
