"""Runs the tests of GT4Py's stencils and storages with another GT4Py than the pinned one, in a separate environment.

    python tools/try_gt4py.py                                     # GT4Py 1.2.3, which needs Python 3.12, if there is one
    python tools/try_gt4py.py --gt4py 1.1.12 --python python3.11
    python tools/try_gt4py.py --wheel dist/gridbuf-….whl          # instead of building one

Not a test of `//...`: it installs from the package index, and builds gridbuf's wheel for the other Python, which takes minutes.
Exit code: 0 if they pass, 1 if they fail, and 2, with the reason, if they could not run.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "modules/python/tests/gt4py"


class NotRunError(Exception):
    """Why nothing was tested."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Test gridbuf with another GT4Py.")
    parser.add_argument("--gt4py", default="1.2.3", metavar="VERSION", help="default: 1.2.3")
    parser.add_argument(
        "--python", default="python3.12", metavar="PROGRAM", help="default: python3.12"
    )
    parser.add_argument("--wheel", type=pathlib.Path, help="a wheel of gridbuf for that Python")
    asked = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="gridbuf-gt4py-") as folder:
            return _run(asked.python, asked.gt4py, asked.wheel, pathlib.Path(folder))
    except NotRunError as error:
        print(f"NOT run: {error}", file=sys.stderr)
        return 2


def _run(program: str, version: str, wheel: pathlib.Path | None, folder: pathlib.Path) -> int:
    python = _environment(program, folder / "env")
    _install(python, f"gt4py=={version}", "pytest", "hypothesis", "ml_dtypes", "setuptools<83")
    _install(python, "--no-deps", str(wheel.resolve() if wheel else ROOT))
    # The copy of the tests: in the source tree, the folder of sources would be found for the package.
    tests = shutil.copytree(TESTS, folder / "tests")
    environ = {**os.environ, "TEST_TMPDIR": str(folder)}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        cwd=folder,
        env=environ,
        check=False,
    )
    return int(done.returncode != 0)


def _environment(program: str, folder: pathlib.Path) -> pathlib.Path:
    """A fresh environment of that Python; returns its interpreter."""
    made = subprocess.run([_interpreter(program), "-m", "venv", str(folder)], check=False)
    if made.returncode:
        raise NotRunError(f"{program} makes no environment here, as its messages above say")
    return folder / "bin/python"


def _interpreter(program: str) -> str:
    """The program itself; or pyenv's, whose shims on the PATH run only the versions that are switched on."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    kept = sorted(pyenv.glob(f"versions/*/bin/{pathlib.Path(program).name}"))
    for found in filter(None, [shutil.which(program), *map(str, kept)]):
        if not subprocess.run([found, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode:
            return found
    raise NotRunError(f"{program} is not a Python that runs here; name another with --python")


def _install(python: pathlib.Path, *what: str) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *what]
    if subprocess.run(command, check=False).returncode:
        raise NotRunError(f"pip could not install {' '.join(what)}; its messages are above")


if __name__ == "__main__":
    sys.exit(main())
