"""The findings as the suite ships them, for `reproduce` and `issue`, and what the score of the
scoreboard rests on: `published.py FILE` writes them as JSON.

Wheels and source distributions have the file as `gridbuf_conformance/findings.json`
(hatch_build.py); Bazel makes it, too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import interop_scores
from entries import Entry, entries
from records import Zoo, load


def text(zoo: Zoo) -> str:
    """The file: every finding, by id."""
    findings = [_published(zoo, entry) for entry in entries(zoo)]
    findings.sort(key=lambda finding: str(finding["id"]))
    data = {
        "schema": "gridbuf-conformance-findings/1",
        "date": zoo.date,
        "findings": findings,
        "scoreboard": interop_scores.tables(),
    }
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _published(zoo: Zoo, entry: Entry) -> dict[str, Any]:
    finding, environment = entry.finding, entry.affected[0]
    project = zoo.libraries[finding.library]
    return {
        "id": finding.id,
        "library": finding.library,
        "severity": entry.severity,
        "contested": finding.counter,
        "contested_link": finding.counter_link,
        "side": finding.side,
        "interface": entry.interface,
        "rule": finding.rule,
        "also_rules": list(finding.also_rules),
        "title": finding.title,
        "expected": finding.expected,
        "impact": finding.impact,
        "fix": finding.fix,
        "source": entry.source[0],
        "source_link": entry.source[1],
        "status": entry.status,
        "tracker": finding.tracker,
        "searched": finding.searched,
        "versions": [e.shown for e in entry.affected],
        "newest": entry.newest,
        "python": environment.python,
        "requirements": list(environment.requirements),
        "issues": project.issues,
        "security": project.security,
        "replay": "" if entry.is_of_zoo else entry.replay,
        "releases": entry.releases.partition("; ")[0],
        "runs": entry.runs,
        "script": finding.code,
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(load()), "utf-8")
