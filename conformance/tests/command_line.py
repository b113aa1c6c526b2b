"""The command in a separate process, as several tests start it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import gridbuf_conformance

PACKAGE_FOLDER = str(Path(gridbuf_conformance.__file__).parents[1])


_COUNTS = (
    (r"on \d+ of \d+ plans", "on some plans"),
    (r"^([A-Z]{2,3} .*?\d+ +\d+) +\d+ +\d+ +\d+$", r"\1"),
    (r"\(\d+ rules\)|\d+ rules judged", "some rules"),
    (r" of \d+ rules failed", " of some rules failed"),
)
"""What differs without a reason to write it again: the number of plans is Hypothesis', and each new
rule is counted.
"""


def lasting(output: str) -> list[str]:
    """All lines but the first, which has the versions, with the counts of failures and advisories
    and without others.
    """
    lines = []
    for line in output.rstrip().splitlines()[1:]:
        for pattern, text in _COUNTS:
            line = re.sub(pattern, text, line.rstrip())
        lines.append(line)
    return lines


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """The command in a separate process, with its streams apart."""
    path = os.pathsep.join([PACKAGE_FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **environment}
    for inherited in ("BUILD_WORKING_DIRECTORY", "COLUMNS"):
        environ.pop(inherited, None)
    environ.update(environment)
    command = [sys.executable, "-m", "gridbuf_conformance", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, encoding="utf-8", timeout=200
    )
