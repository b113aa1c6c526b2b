"""What the distribution promises: one version, few dependencies, no import of the accused."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gridbuf_conformance
from gridbuf_conformance import consumers, producers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(gridbuf_conformance.__file__).parent
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
ENTRIES = [*producers.BUILT_IN.values(), *consumers.BUILT_IN.values()]
ACCUSED = {entry.needs.partition(".")[0] for entry in ENTRIES if entry.needs}
"""The libraries that the suite knows, by the names they are imported under."""
HELPERS = {"ml_dtypes"}
"""What a library under test brings along; the same holds for it."""


def imported(path: Path) -> set[str]:
    """The top-level names of all absolute imports in a module, wherever they stand in it.

    What only a type checker imports is no dependency.
    """
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    unseen = {
        below
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for below in ast.walk(node)
    }
    names = set()
    for node in set(ast.walk(tree)) - unseen:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_the_version_stands_in_two_places_and_is_one():
    assert gridbuf_conformance.__version__ == PROJECT["version"]


def test_the_command_is_what_the_metadata_says():
    module, _, function = PROJECT["scripts"]["gridbuf-conformance"].partition(":")
    assert callable(getattr(__import__(module, fromlist=[function]), function))


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_only_declared_packages_are_imported(path):
    declared = {line.split(">")[0].split(";")[0].strip() for line in PROJECT["dependencies"]}
    declared |= {"markupsafe"}  # comes with jinja2, whose output type it is
    foreign = imported(path) - set(sys.stdlib_module_names) - declared - {"gridbuf_conformance"}
    allowed = ACCUSED | HELPERS if path.parts[0] in ("producers", "consumers") else set()
    if path.name == "pytest_plugin.py":
        allowed = {"pytest"}  # which imports it, and nothing else does
    assert foreign <= allowed


def test_the_plugin_is_what_the_metadata_says():
    module = PROJECT["entry-points"]["pytest11"]["gridbuf_conformance"]
    assert callable(importlib.import_module(module).gridbuf_check)


def test_the_judge_never_imports_the_accused():
    """Even where they are installed: judging, rendering and the command leave them alone."""
    script = (
        "import sys, io, contextlib, gridbuf_conformance as gc\n"
        "from gridbuf_conformance import cli, judge, engine, render\n"
        "report = gc.check(bytearray(8))\n"
        "render.FORMATS['.html']([report.data], ()), str(report)\n"
        f"sys.exit(' '.join({ACCUSED | HELPERS!r} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
