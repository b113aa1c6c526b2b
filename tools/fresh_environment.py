"""A Python environment like that of a user: gridbuf's wheel, its dependencies, and no path into this repository.

Nothing is fetched: the dependencies are linked from the environment in which the tests run.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import venv
import zipfile

SUITE_NEEDS = (
    *("attr", "attrs", "hypothesis", "_hypothesis_ftz_detector.py", "_hypothesis_globals.py"),
    *("sortedcontainers", "rich", "markdown_it", "mdurl", "pygments", "jinja2", "markupsafe"),
    *("packaging", "tomlkit"),
)
"""The import packages of gridbuf-conformance's dependencies, and of theirs."""

# pluggy asks for its own version by its metadata.
PYTEST_NEEDS = (*("pytest", "_pytest", "py.py", "pluggy", "pluggy-*.dist-info", "iniconfig"),)


def only_wheel(folder: pathlib.Path) -> pathlib.Path:
    """The one wheel of a folder."""
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(
    wheel: pathlib.Path, folder: pathlib.Path, packages: tuple[str, ...], *, with_pip: bool = False
) -> pathlib.Path:
    """A fresh environment with the wheel and, of ours, only `packages`; returns its interpreter.

    The wheel's own command is not there (pip would write it): `python -m` starts it.
    """
    venv.create(folder, with_pip=with_pip)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (ours,) = (p for p in map(pathlib.Path, sys.path) if (p / "hypothesis").is_dir())
    for package in packages:
        found = list(ours.glob(package))
        if not found:
            raise FileNotFoundError(f"{ours / package} is not there; run ./bazelw --setup")
        for source in found:
            (site / source.name).symlink_to(source)
    return folder / "bin/python"


def run(
    python: pathlib.Path, *arguments: str, cwd: pathlib.Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the interpreter with a bare environment."""
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": os.environ.get("TEST_TMPDIR", "/tmp"),
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        [str(python), "-P", *arguments],
        env=environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
