"""Where the tests are that docs/spec.md names.

A reference reads `//package:target Suite.Name` (GoogleTest) or `//package:target file.py::name` (pytest).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

# The source tree, also where Bazel runs this from a folder of links.
ROOT = Path(__file__).resolve().parents[1]
REFERENCE = re.compile(r"`//([\w/]*):(\w+) ([^`\s]+)`")
# A parameterised suite is named Instantiation/Suite.Test.
GTEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
PYTEST = re.compile(r"^ *(?:async )?def (\w+)", re.MULTILINE)


@cache
def tests_of(path: Path) -> dict[str, int]:
    """The line of each test of a file, by `name` or `Suite.Name`."""
    text = path.read_text(encoding="utf-8")
    pattern = PYTEST if path.suffix == ".py" else GTEST
    return {
        ".".join(match.groups()): text.count("\n", 0, match.start(1)) + 1
        for match in pattern.finditer(text)
    }


@cache
def files_of(package: str, pattern: str) -> list[Path]:
    return sorted((ROOT / package).rglob(pattern))


def find_test(package: str, name: str) -> tuple[Path, int] | None:
    """The file and the line of a test; None if `package` and the folders below it do not have it."""
    file, is_pytest, function = name.partition("::")
    pattern = Path(file).name if is_pytest else "*_test.cc"
    test = function.split("[")[0] if is_pytest else name.split("/")[-1]
    for path in files_of(package, pattern):
        if line := tests_of(path).get(test):
            return path, line
    return None
