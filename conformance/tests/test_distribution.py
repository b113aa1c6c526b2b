"""What the distribution promises: its contents, one version, few dependencies, no import of a
library under test.
"""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import gridbuf_conformance
from gridbuf_conformance import findings, named_consumers, producers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(gridbuf_conformance.__file__).parent
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
ENTRIES = [*producers.BUILT_IN.values(), *named_consumers.BUILT_IN.values()]
JUDGED = {entry.needs.partition(".")[0] for entry in ENTRIES if entry.needs}
"""The libraries that the suite knows, by the names they are imported under."""
HELPERS = {"ml_dtypes"}
"""What a library under test brings along; the same holds for it."""


def imported(path: Path) -> set[str]:
    """The top-level names of all absolute imports in a module, wherever they stand in it.

    What only a type checker imports is not a dependency.
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


def built(kind: str, project: Path, out: Path) -> Path:
    """What hatchling makes of a project's folder: its one "wheel" or "sdist"."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(out)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=True,
        capture_output=True,
    )
    (made,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel. Their order, which the file RECORD repeats, is not part of it."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    return {**files, record: b"".join(sorted(files[record].splitlines(keepends=True)))}


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """The project's folder as a checkout has it, with what must not be packed; a test's inputs are
    links.
    """
    folder = tmp_path_factory.mktemp("project") / "conformance"
    folder.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copyfile(PACKAGE.parent / name, folder / name)
    derived = shutil.ignore_patterns("__pycache__", "findings.json")
    for name in ("gridbuf_conformance", "gridbuf_conformance_mutants", "tests"):
        shutil.copytree(PACKAGE.parent / name, folder / name, ignore=derived)
    shutil.copytree(PACKAGE.parents[1] / "zoo", folder.parent / "zoo", ignore=derived)
    return folder


@pytest.fixture(scope="module")
def wheel(tree, tmp_path_factory) -> Path:
    return built("wheel", tree, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_package_and_the_license_and_nothing_else(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    files = {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    files["gridbuf_conformance/findings.json"] = findings.packed().encode()
    packed = contents(wheel)
    info = f"gridbuf_conformance-{gridbuf_conformance.__version__}.dist-info"
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    about |= {"sboms/gridbuf-conformance.cdx.json"}
    assert packed.keys() - files.keys() == {f"{info}/{name}" for name in about}
    assert {name: packed.get(name) for name in files} == files
    assert packed[f"{info}/licenses/LICENSE"] == (PACKAGE.parents[1] / "LICENSE").read_bytes()
    metadata = message_from_bytes(packed[f"{info}/METADATA"])
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "BSD-3-Clause"


def test_the_source_distribution_gives_the_same_wheel(tree, wheel, tmp_path):
    source = built("sdist", tree, tmp_path)
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path)
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    top = {path.name for path in unpacked.iterdir()}
    hook = {"hatch_build.py", "pyproject.toml"}
    assert top == {"LICENSE", "PKG-INFO", "README.md", "gridbuf_conformance", *hook}
    again = built("wheel", unpacked, tmp_path)
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def test_a_checkout_has_the_findings_without_the_file(tree):
    """The zoo next to it makes them: the folder has no `findings.json`."""
    command = "from gridbuf_conformance import findings; print(findings.packed())"
    path = os.pathsep.join([str(tree), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == findings.packed().strip()
    assert not list(tree.rglob("findings.json"))


def test_the_command_is_what_the_metadata_says():
    module, _, function = PROJECT["scripts"]["gridbuf-conformance"].partition(":")
    assert callable(getattr(__import__(module, fromlist=[function]), function))


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_only_declared_packages_are_imported(path):
    declared = {line.split(">")[0].split(";")[0].strip() for line in PROJECT["dependencies"]}
    declared |= {"markupsafe"}  # comes with jinja2, whose output type it is
    standard = {*sys.stdlib_module_names, "tomllib"}  # which Python 3.10 does not have
    foreign = imported(path) - standard - declared - {"gridbuf_conformance"}
    allowed = JUDGED | HELPERS if path.parts[:2] == ("plugins", "libraries") else set()
    if path.name == "pytest_plugin.py":
        allowed = {"pytest"}  # which imports it, and nothing else does
    assert foreign <= allowed


def test_the_plugin_is_what_the_metadata_says():
    module = PROJECT["entry-points"]["pytest11"]["gridbuf_conformance"]
    assert callable(importlib.import_module(module).gridbuf_check)


def test_the_judge_never_imports_the_judged():
    """Even where they are installed: judging, rendering and the command do not import them."""
    script = (
        "import sys, io, contextlib, gridbuf_conformance as gc\n"
        "from gridbuf_conformance import cli, render\n"
        "from gridbuf_conformance.engine import judge, producer_run\n"
        "report = gc.check(bytearray(8))\n"
        "render.FORMATS['.html']([report.data], ()), str(report)\n"
        f"sys.exit(' '.join({JUDGED | HELPERS!r} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
