"""What the two commands of this package share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console

__all__ = ["console_for_output", "user_path"]


def user_path(text: str) -> Path:
    """A path relative to where the user stands: `bazel run` starts programs elsewhere."""
    return Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / text


def console_for_output() -> Console:
    """Standard output; wide enough for the tables where no terminal says how wide it is."""
    return Console(width=None if sys.stdout.isatty() else 132, highlight=False)
