"""The command in a separate process, as several tests start it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gridbuf_conformance

__all__ = ["PACKAGE_FOLDER", "run"]

PACKAGE_FOLDER = str(Path(gridbuf_conformance.__file__).parents[1])


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
