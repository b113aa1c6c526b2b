"""The project of docs/how-to/use-with-cmake.md, built from the page by the peers' CMake and Ninja."""

import ast
import os
import pathlib
import re
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


def rules(folder: str) -> dict[str, dict[str, list[str]]]:
    """The rules of a BUILD.bazel file by name, with their lists. The file is also Python."""
    text = (page.ROOT / "modules" / folder / "BUILD.bazel").read_text()
    calls = [node.value for node in ast.parse(text).body if isinstance(node, ast.Expr)]
    made = [
        {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
        for call in calls
        if isinstance(call, ast.Call)
    ]
    return {rule["name"]: rule for rule in made if "name" in rule}


def sources_and_libraries(folder: str, name: str) -> tuple[set[str], set[str]]:
    """Those of a library for Bazel, with the libraries of its folder that are not modules. Libraries have CMake's names."""
    rule = rules(folder)[name]
    sources, libraries = set(rule.get("srcs", [])), set()
    for label in rule.get("deps", []):
        path, _, target = label.partition(":")
        target = target or path.rpartition("/")[2]
        if not path:
            more, linked = sources_and_libraries(folder, target)
            sources |= more
            libraries |= linked
        elif path.startswith("//modules/"):
            libraries.add("gridbuf_" + path.removeprefix("//modules/").replace("/", "_"))
        else:
            assert path.startswith("@com_google_absl//"), label
            libraries.add(f"absl::{target}")
    return sources, libraries


def test_the_project_has_the_sources_and_libraries_of_bazel():
    text = (page.ROOT / "examples/cmake_consumer/CMakeLists.txt").read_text()
    calls = re.findall(r"^gridbuf_library\(([^)]*)\)", text, re.MULTILINE)
    assert len(calls) == 4
    for call in calls:
        before, _, linked = call.partition("LINK")
        folder, *sources = before.split()
        expected = sources_and_libraries(folder, folder.rpartition("/")[2])
        assert (set(sources), set(linked.split())) == expected, folder
