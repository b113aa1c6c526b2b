"""The suite's findings in released libraries: scripts that show them, issues for trackers.

`findings.json` has each finding with its script, its versions, and the last runs of the script. The
zoo (`zoo/` in the repository) makes the file when the suite is packaged. The suite does not need
it: without the file there are no findings.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from . import libraries
from .version import __version__

FILTERS = ("library", "severity", "interface")
"""What `list findings` selects by."""

_SCHEMA = "gridbuf-conformance-findings/1"
_MAX_MATCHES = 4


class UnknownFinding(LookupError):
    """An id, severity or interface that no finding has; the message lists similar ones."""


@dataclass(frozen=True)
class Finding:
    """One defect in one library. `versions` begins with the version that `requirements` install.

    `expected` rests on `source`. `replay` is empty where only the repository has the target;
    `releases` is the range that was found. `contested` is the argument against the finding, if
    there is one. `searched` says how a tracker was searched for a new finding. `runs` are the last
    runs of `script`: version, Python, date, exit code, and what it printed.
    """

    id: str
    library: str
    severity: str
    side: str
    interface: str
    rule: str
    title: str
    expected: str
    impact: str
    fix: str
    source: str
    source_link: str
    status: str
    python: str
    newest: bool
    issues: str
    script: str
    replay: str = ""
    releases: str = ""
    also_rules: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    contested: str = ""
    contested_link: str = ""
    tracker: str = ""
    searched: str = ""
    security: str = ""


@lru_cache(maxsize=1)
def load() -> MappingProxyType[str, Finding]:
    """All findings by id."""
    data = json.loads(packed())
    if data["schema"] != _SCHEMA:
        raise ValueError(f"findings.json: the schema is {data['schema']!r}, must be {_SCHEMA!r}")
    known = {f.name for f in fields(Finding)}
    rows = ({key: row[key] for key in row if key in known} for row in data["findings"])
    return MappingProxyType({row["id"]: Finding(**row) for row in rows})


@lru_cache(maxsize=1)
def scoreboard() -> Mapping[str, Any]:
    """What the score of `interop` rests on: the arrays that libraries are documented to have, and
    the known causes of harm and of conversions.
    """
    found: Mapping[str, Any] = json.loads(packed()).get("scoreboard", {})
    return {"documented": {}, "causes": [], **found}


@lru_cache(maxsize=1)
def packed() -> str:
    """The package's file; in a checkout, what the zoo would write; without both, no findings."""
    package = Path(str(files("gridbuf_conformance")))
    file = package / "findings.json"
    if file.exists():
        return file.read_text("utf-8")
    program = package.parents[1] / "zoo/published.py"
    if not program.exists():
        return json.dumps({"schema": _SCHEMA, "findings": []})
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, file.name)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path]),
        }
        subprocess.run([sys.executable, str(program), str(made)], env=environment, check=True)
        return made.read_text("utf-8")


def _some() -> MappingProxyType[str, Finding]:
    if not load():
        raise UnknownFinding("this copy of the suite has no findings; an installed one has them")
    return load()


def find(name: str) -> Finding:
    """The finding of an id; raises UnknownFinding, with similar ids, if there is none."""
    findings = _some()
    if name in findings:
        return findings[name]
    close = [id for id in findings if len(name) > 2 and id.startswith(name)]
    close = (close or difflib.get_close_matches(name, findings, cutoff=0.4))[:_MAX_MATCHES]
    hint = f"did you mean {', '.join(close)}? " if close else ""
    raise UnknownFinding(
        f"no finding is called {name!r}; {hint}See: gridbuf-conformance list findings"
    )


def select(wanted: Mapping[str, str | None]) -> list[Finding]:
    """The findings with these values of `FILTERS`, in any case; None selects all.

    Raises UnknownFinding, and UnknownLibrary for a library that neither the suite nor a finding
    names.
    """
    chosen = list(_some().values())
    for name, value in wanted.items():
        if value is not None:
            same = _of_library(value) if name == "library" else _with(name, value)
            chosen = [finding for finding in chosen if same(finding)]
    return chosen


def _of_library(value: str) -> Callable[[Finding], bool]:
    others = {finding.library for finding in load().values()}
    library = libraries.find(value, others)
    return lambda finding: libraries.find(finding.library, others) == library


def _with(name: str, value: str) -> Callable[[Finding], bool]:
    known = sorted({getattr(f, name) for f in load().values()}, key=str.lower)
    if value.lower() not in map(str.lower, known):
        raise UnknownFinding(f"no finding has the {name} {value!r}; use one of {', '.join(known)}")
    return lambda finding: bool(getattr(finding, name).lower() == value.lower())


def script(finding: Finding) -> str:
    """The script that shows the finding, with a comment that says where to run it."""
    needs = " ".join(finding.requirements)
    install = f"pip install {needs}" if needs else "no package is needed"
    head = (
        f"# {finding.id}: exit code 1 while the defect is there, 0 when it is gone.\n"
        f"# {finding.library} {finding.versions[0]}, CPython {finding.python}: {install}\n"
    )
    return head + finding.script


def issue(finding: Finding) -> str:
    """An issue for the tracker of the library, as Markdown; the first line is its title.

    It rests on the script: no package index has the suite, so its commands and rules say nothing
    there.
    """
    parts = [f"# {finding.title}", *_cautions(finding)]
    parts += ["## Versions", _versions(finding)]
    parts += ["## Script", f"```python\n{script(finding)}```"]
    parts += ["## Observed", _observed(finding)]
    parts += ["## Expected", f"{finding.expected} ([{finding.source}]({finding.source_link}))"]
    parts += ["## Impact", finding.impact]
    parts += ["## Suggested fix", finding.fix, f"Found by gridbuf-conformance {__version__}."]
    return "\n\n".join(parts) + "\n"


def _cautions(finding: Finding) -> list[str]:
    """What to read before the text is sent; quoted, so that it is easy to remove."""
    notes = []
    if finding.severity == "memory" and finding.security:
        notes.append(
            "This is about memory safety. "
            f"Report it privately first if the project has a policy for it: {finding.security}"
        )
    if finding.status.startswith("fixed in"):
        notes.append(
            f"It is {finding.status} ({finding.tracker}): report it only for older releases."
        )
    elif finding.tracker:
        notes.append(
            f"The tracker knows it already ({finding.status}): {finding.tracker}. Comment there."
        )
    elif finding.searched:
        notes.append(f"Not found in a search on {finding.searched}. Search again first.")
    if finding.contested:
        notes.append(f"Contested: {finding.contested} {finding.contested_link}")
    notes.append(f"New issues go to {finding.issues}. Remove these lines.")
    return ["> " + "\n>\n> ".join(notes)]


def _versions(finding: Finding) -> str:
    lines = []
    for run in finding.runs:
        state = {0: "the defect is gone", 1: "the defect is there"}.get(run["exit"], "unclear")
        python = "" if finding.library == "CPython" else f", CPython {run['python']}"
        lines.append(f"- {finding.library} {run['version']}{python}, Linux x86-64: {state}")
    ran = {run["version"] for run in finding.runs}
    lines += [
        f"- {finding.library} {version}" for version in finding.versions if version not in ran
    ]
    if finding.releases:
        lines.append(f"- tried on releases: {finding.releases}")
    return "\n".join(lines)


def _observed(finding: Finding) -> str:
    """What the script printed where the defect is: nothing else is claimed."""
    seen = next(run for run in finding.runs if run["exit"] == 1)
    head = f"With {finding.library} {seen['version']} the script ends with:"
    return f"{head}\n\n```text\n{seen['told']}\n```"
