"""Python modules run as programs of their own, with this process's interpreter and paths."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

__all__ = ["run_module"]


def run_module(
    module: str,
    *arguments: str,
    what: str,
    launcher: Sequence[str] = (),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """What `python -m module` prints; `launcher` comes before the interpreter, if something has to start it.

    `settings` are added to the environment.

    Raises:
      RuntimeError: when it fails: `what`, and what it printed.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    finished = subprocess.run(
        [*launcher, sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": path, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{what}: {finished.stderr.strip()}")
    return finished.stdout
