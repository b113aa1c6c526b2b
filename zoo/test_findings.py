"""The findings as the suite ships them: the texts of issues against what the scripts show, and
known failures that name them.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gridbuf_conformance import findings, known, libraries, named_consumers, producers
from gridbuf_conformance.rules import catalogue

ALL = list(findings.load().values())
SEVERITIES = {"memory", "values", "leak", "refusal", "form"}


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_a_finding_is_complete(finding):
    assert finding.severity in SEVERITIES
    assert libraries.find(finding.library).name == finding.library
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
    assert re.search(r"\(\[[^]]+\]\(https://[^)]+\)\)$", _part(rest, "Expected"))
    *_, found = rest.splitlines()
    assert re.fullmatch(r"Found by gridbuf-conformance [\w.]+\.", found)
    assert rest.count("gridbuf") == 1, "an issue needs the script only"
    assert finding.rule not in rest


def _part(text, name):
    return text.partition(f"## {name}\n")[2].partition("\n## ")[0]


# An issue against its script
# ---------------------------------------------------------------------------------


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
    """It names something of the script or title, and is not the general line of the rule."""
    rule = catalogue.load()[finding.rule]
    assert finding.fix not in (rule.fix, rule.consumer_fix)
    assert sum(other.fix == finding.fix for other in ALL) == 1
    names = set(re.findall(r"[A-Za-z_]{4,}", finding.script + finding.title))
    named = {word for word in re.findall(r"[A-Za-z_]{4,}", finding.fix) if word in names}
    assert {word for word in named if not word.islower() or "_" in word or word in finding.title}
    told = re.findall(r"\. ([0-9.]+) does", finding.fix)
    assert all(f"fixed in {version}" == finding.status for version in told)


@pytest.mark.parametrize("finding", [f for f in ALL if f.replay], ids=lambda finding: finding.id)
def test_a_replay_runs_with_the_wheel(finding):
    """A target that is a file is in the repository, not in a wheel."""
    target = next(w for w in shlex.split(finding.replay)[2:] if not w.startswith("--"))
    known = {**producers.BUILT_IN, **named_consumers.BUILT_IN}
    assert target in known or target.startswith("gridbuf_conformance.")


@pytest.mark.parametrize("finding", ALL, ids=lambda finding: finding.id)
def test_a_script_compiles_and_says_what_to_install(finding):
    text = findings.script(finding)
    compile(text, finding.id, "exec")
    assert all(requirement in text for requirement in finding.requirements)


@pytest.mark.parametrize("library", known.shipped())
def test_a_known_failure_that_names_a_finding_is_about_it(library):
    named = 0
    for record in known.read(Path(library)):
        _, names, finding = record.reason.rstrip(".").rpartition(" Finding ")
        if names:
            about = findings.find(finding)
            assert record.rule in (about.rule, *about.also_rules), record.place
            assert record.link == about.tracker, record.place
            named += 1
    assert named
