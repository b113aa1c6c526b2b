"""The scripts of the findings: a program for each that needs the library and not the suite.

A script ends with exit code 1 and a line `defect: …` while the defect is there, and with 0 when it
is gone. Any other end (a traceback, which is exit code 1 without that line) says nothing about the
defect.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import venvs
from records import Environment, Finding, Zoo, order

SHOWN, GONE, UNKNOWN = "shown", "gone", "unknown"
_MARK = "defect: "
_LIMIT_S = 300
_MAX_CHARS = 300


def environments(finding: Finding, zoo: Zoo) -> list[Environment]:
    """Where its script is run: every version in which the defect is recorded, and the newest one
    that has a fix.
    """
    own = [zoo.environments[name] for name in finding.environments]
    passes = zoo.environments.get(finding.passes)
    if passes and passes.library == finding.library and passes not in own:
        return [*own, passes]
    fixed = [e for e in zoo.environments.values() if _has_fix(finding, e)]
    return [*own, *sorted(fixed, key=lambda e: order(e.version))[-1:]]


def _has_fix(finding: Finding, environment: Environment) -> bool:
    is_version = finding.fixed_in[:1].isdigit() and environment.library == finding.library
    return is_version and order(environment.version) >= order(finding.fixed_in)


def run(finding: Finding, python: Path) -> dict[str, Any]:
    """Runs a script with the Python of an environment, without the suite. `told` is its line on the
    defect, or its last line.
    """
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [python, finding.script],
                cwd=folder,
                env={**around, **venvs.SILENT},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return _record(None, f"it took longer than {_LIMIT_S} s")
    lines = [line.strip() for line in (*done.stdout.splitlines(), *done.stderr.splitlines())]
    marked = [line for line in lines if line.startswith(_MARK)]
    if done.returncode == 0:  # what else a library prints is not about the defect
        marked, lines = [], [line for line in lines if line.startswith("refused: ")]
    return _record(done.returncode, ["", *filter(None, lines), *marked][-1])


def outcome(result: Mapping[str, Any]) -> str:
    """What a run says: the defect is there (SHOWN), it is GONE, or the run says nothing."""
    if result.get("exit") == 1 and str(result.get("told", "")).startswith(_MARK):
        return SHOWN
    return GONE if result.get("exit") == 0 else UNKNOWN


def _record(code: int | None, told: str) -> dict[str, Any]:
    """A run; one that was ended has no exit code."""
    ended = {} if code is None else {"exit": code}
    text = venvs.without_paths(told)[:_MAX_CHARS]
    return {"date": datetime.date.today().isoformat(), **ended, "told": text}
