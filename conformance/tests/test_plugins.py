"""A package that announces a plug-in adds the rules of an interface, and a library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gridbuf_conformance

RULES = """
[group]
id = "MY"
position = 200
subject = "Mine"
heading = "Mine"
interface = "mine"

[MY-01]
level = "MUST"
requirement = "The object has a name."
source = { document = "mine", section = "Names", at = "#names", verb = "must" }
says = "An object must have a name."
since = "1"
oracle = ["META"]
why = "Messages show the name."
fix = "Add the name."
example = "an object without a name"
"""
DOCUMENTS = """
[mine]
title = "My text"
version = "1"
url = "https://example.org/mine"
"""
CHECKS = """
from gridbuf_conformance.outcomes import Verdict
from gridbuf_conformance.rules.registry import check
from gridbuf_conformance.rules.subject import Subject
from gridbuf_conformance.rules.verdicts import fail

@check("MY-01")
def has_a_name(s: Subject) -> Verdict:
    return fail("a name", "none")
"""
LIBRARIES = """
[[library]]
name = "My Library"
needs = "my_plugin"
[library.producers]
mine = { class = "arrays:Producer", summary = "bytearrays" }
"""
PRODUCER = """
class Producer:
    name = "mine"
    def produce(self, plan):
        return bytearray(plan.content())
"""


@pytest.fixture
def run(tmp_path: Path):
    package = tmp_path / "my_plugin"
    (package / "known").mkdir(parents=True)
    texts = {
        "__init__.py": "",
        "rules.toml": RULES,
        "documents.toml": DOCUMENTS,
        "producer.py": CHECKS,
        "libraries.toml": LIBRARIES,
        "arrays.py": PRODUCER,
    }
    for name, text in texts.items():
        (package / name).write_text(text)
    about = tmp_path / "my_plugin-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[gridbuf_conformance.plugins]\nmine = my_plugin\n", "utf-8"
    )
    home = str(Path(gridbuf_conformance.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([home, str(tmp_path), *sys.path])}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "gridbuf_conformance", *arguments]
        return subprocess.run(line, env=env, cwd=tmp_path, capture_output=True, text=True)

    return command


def test_its_rules_are_explained_and_judge_its_library(run) -> None:
    told = run("explain", "MY-01")
    assert told.returncode == 0, told.stderr
    assert "An object must have a name." in told.stdout
    done = run("check", "My Library", "--profile", "smoke", "--rules", "MY-*")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "MY-01" in done.stdout and "FAIL" in done.stdout


def test_a_row_without_a_check_is_an_error(run, tmp_path: Path) -> None:
    (tmp_path / "my_plugin/producer.py").write_text("")
    done = run("list", "rules")
    assert done.returncode != 0 and "MY-01 has no check" in done.stderr
