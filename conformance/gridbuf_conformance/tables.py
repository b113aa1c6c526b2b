"""TOML tables among the files of a package."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def table(package: str, *place: str) -> dict[str, Any]:
    """The table of a file."""
    text = files(package).joinpath(*place).read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    return found
