"""The example projects that need only Python, as users run them: a fresh environment with the suite's wheel.

The environment has neither NumPy nor a path into this repository.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess

import pytest
from fresh_environment import PYTEST_NEEDS, SUITE_NEEDS, install, only_wheel, run

ROOT = pathlib.Path(__file__).parents[1]
WHEEL = only_wheel(ROOT / "conformance/wheel")

# What the setuptools of Python's own venv asks for when it builds.
BUILD_NEEDS = ("wheel", "wheel-*.dist-info")

# Pixels that are looked for one after the other, where rows are padded.
CORRECT = '"strides": (self._row_bytes, 1),'
WRONG = '"strides": (self.shape[1], 1),'


def copied(example: str, folder: pathlib.Path) -> pathlib.Path:
    """A project as a user checks it out: real files, which may be written."""
    return pathlib.Path(shutil.copytree(ROOT / "examples" / example, folder / example))


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("fresh") / "env"
    return install(WHEEL, folder, SUITE_NEEDS + PYTEST_NEEDS + BUILD_NEEDS, with_pip=True)


def test_pytest_user(python, tmp_path):
    project = copied("pytest_user", tmp_path)
    done = run(python, "-m", "pytest", "--gridbuf-profile=smoke", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "image conforms" in done.stdout
    assert "tests/test_image.py .." in done.stdout
    own = run(python, "-m", "pytest", "-m", "not gridbuf", cwd=project)
    assert "2 passed" in own.stdout


def test_pytest_user_that_is_wrong(python, tmp_path):
    project = copied("pytest_user", tmp_path)
    source = project / "image.py"
    assert source.read_text().count(CORRECT) == 1
    source.write_text(source.read_text().replace(CORRECT, WRONG))
    done = run(python, "-m", "pytest", "-m", "gridbuf", "--gridbuf-profile=smoke", cwd=project)
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert [line.split()[1] for line in failed] == ["gridbuf::producer.py:Producer::XA-08"]
    # The id in the summary runs that rule alone.
    again = run(
        python, "-m", "pytest", failed[0].split()[1], "--gridbuf-profile=smoke", cwd=project
    )
    assert "1 failed" in again.stdout


def test_entry_point_user(python, tmp_path):
    project = copied("entry_point_user", tmp_path)
    if run(python, "-c", "import setuptools").returncode:
        pytest.skip("NOT tested: this Python's venv brings no setuptools to build the example with")
    options = ("--no-index", "--no-deps", "--no-build-isolation")
    installed = run(python, "-m", "pip", "install", *options, ".", cwd=project)
    assert installed.returncode == 0, installed.stderr

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run(python, "-m", "gridbuf_conformance", *arguments, cwd=tmp_path)

    listed = command("list")
    assert "tinygrid" in listed.stdout and "announced by tinygrid" in listed.stdout
    checked = command("check", "tinygrid", "--profile", "smoke")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.startswith("tinygrid 0.3.0")
    consumer = command("check", "--consumer", "tinygrid.column", "--profile", "smoke")
    assert consumer.returncode == 0, consumer.stdout + consumer.stderr
    surveyed = command("survey", "tinygrid", "array")
    assert surveyed.returncode == 0, surveyed.stdout + surveyed.stderr
    assert "tinygrid" in surveyed.stdout
    assert (tmp_path / "gridbuf-survey.html").exists()
    # What its build server runs, with the command where pip would put it.
    script = tmp_path / "bin/gridbuf-conformance"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{python}" -m gridbuf_conformance "$@"\n')
    script.chmod(0o755)
    environ = {"PATH": f"{script.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    gate = subprocess.run(
        ["sh", "ci/conformance.sh"], cwd=project, env=environ, capture_output=True, text=True
    )
    assert gate.returncode == 0, gate.stdout + gate.stderr
    judged = json.loads((project / "reports/conformance.json").read_text())["reports"]
    assert [one["target"]["side"] for one in judged] == ["producer", "consumer"]
    assert {one["profile"] for one in judged} == {"default"}
    reports = {path.suffix for path in (project / "reports").iterdir()}
    assert reports == {".xml", ".html", ".md", ".svg", ".json"}
    assert "sh ci/conformance.sh" in (project / "ci/github.yml").read_text()
