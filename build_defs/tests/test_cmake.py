"""The project of docs/how-to/use-with-cmake.md, built from the page by the peers' CMake and Ninja."""

import os
import pathlib
import shlex
import subprocess
import sys

import page
import pytest

PAGE = "docs/how-to/use-with-cmake.md"
# bazelw keeps the environment and Abseil's sources in one folder.
PROGRAMS = pathlib.Path(sys.prefix) / "bin"
ABSEIL = pathlib.Path(sys.prefix).parents[1] / "debian/abseil"


@pytest.mark.thorough
def test_the_project_of_the_page_builds_and_prints(tmp_path):
    if not (PROGRAMS / "cmake").exists():
        pytest.skip(f"NOT run: {PROGRAMS} has no CMake; ./bazelw --peers")
    page.write_project(PAGE, tmp_path)
    environ = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    commands, printed = page.console(PAGE)
    assert commands[0].startswith("cmake -G Ninja")
    commands[0] += f" -D GRIDBUF={page.ROOT} -D ABSEIL={ABSEIL}"
    for command in commands:
        done = subprocess.run(
            shlex.split(command),
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == printed


def test_the_page_shows_all_files_of_the_example(tmp_path):
    page.write_project(PAGE, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CMakeLists.txt", "main.cc"]
    commands, printed = page.console(PAGE)
    assert len(commands) == 3
    assert printed.startswith("offset(")
