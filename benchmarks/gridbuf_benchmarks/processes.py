"""Python modules run as programs of their own, with this process's interpreter and paths."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

__all__ = ["run_module"]


def run_module(module: str, *arguments: str, what: str, launcher: Sequence[str] = ()) -> str:
    """What `python -m module` prints; `launcher` comes before the interpreter, if something has to start it.

    Raises:
      RuntimeError: when it fails: `what`, and what it printed.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    finished = subprocess.run(
        [*launcher, sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{what}: {finished.stderr.strip()}")
    return finished.stdout
