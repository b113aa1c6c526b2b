#!/usr/bin/env python3
"""Finds the CPythons of this machine that can build extensions: for tools/release and tools/test_next.

  tools/interpreters.py VERSION …     prints the path of the first interpreter of the first version that is here

They are looked for by name (python3.12) on PATH, below ~/.pyenv/versions and in /usr/local. A program of that name that does not run,
such as pyenv's shim for a version that is not selected, is passed over, and so is one without headers or without a global lock.

Exit code: 0, or 1 if there is none.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable

ABOUT = """
import sys, sysconfig, pathlib
print("%d.%d" % sys.version_info[:2], bool(sysconfig.get_config_var("Py_GIL_DISABLED")), sys.implementation.name,
      (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists())
"""


def interpreters(versions: Iterable[str]) -> dict[str, pathlib.Path]:
    """Version → the first interpreter of it that can build extensions, in the order of the versions."""
    folders = [*os.environ["PATH"].split(os.pathsep), "/usr/local/bin"]
    folders += sorted(map(str, pathlib.Path.home().glob(".pyenv/versions/*/bin")))
    found: dict[str, pathlib.Path] = {}
    for version in versions:
        for folder in folders:
            path = pathlib.Path(folder) / f"python{version}"
            if version not in found and path.exists() and usable(path) == version:
                found[version] = path
    return found


def usable(path: pathlib.Path) -> str | None:
    """The version of a CPython with headers and a global lock; None for any other program."""
    try:
        done = subprocess.run([path, "-c", ABOUT], capture_output=True, text=True)
    except OSError:
        return None
    match done.stdout.split():
        case [version, "False", "cpython", "True"]:
            return version
    return None


if __name__ == "__main__":
    if not (paths := list(interpreters(sys.argv[1:]).values())):
        sys.exit(1)
    print(paths[0])
