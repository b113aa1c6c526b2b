"""tools/interpreters.py with folders of programs that are named as interpreters."""

from __future__ import annotations

import pathlib
import sys

import pytest
from interpreters import interpreters, usable

HERE = "%d.%d" % sys.version_info[:2]


def program(folder: pathlib.Path, version: str, line: str) -> pathlib.Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"python{version}"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def test_what_does_not_run_is_passed_over(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = program(tmp_path / "shims", HERE, "echo 'pyenv: command not found' >&2; exit 127")
    right = program(tmp_path / "bin", HERE, f'exec "{sys.executable}" "$@"')
    other = program(tmp_path / "shims", "3.99", f'exec "{sys.executable}" "$@"')
    assert usable(shim) is None and usable(right) == usable(other) == HERE
    monkeypatch.setenv("PATH", f"{shim.parent}:{right.parent}")
    assert interpreters(["3.99", HERE]) == {HERE: right}  # 3.99 is not what its name says


def test_pyenv_s_versions_are_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pyenv/versions/1").mkdir(parents=True)
    right = program(tmp_path / ".pyenv/versions/1/bin", HERE, f'exec "{sys.executable}" "$@"')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    # What is in /usr/local comes first; some container images have Python there.
    local = pathlib.Path("/usr/local/bin") / right.name
    assert interpreters([HERE]) == {HERE: local if usable_if_there(local) else right}


def usable_if_there(path: pathlib.Path) -> bool:
    return path.exists() and usable(path) == HERE
