"""The tutorial is true: what it prints is what the commands print, in the example project that it
shows.

`<!-- output: COMMAND -->` is before each printed output. `python docs/…` has no part in it: this
test writes nothing; to renew the text, run the command in a copy of examples/pytest_user and paste.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PACKAGE_FOLDER, lasting

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "tutorial-conformance.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "pytest_user"
OUTPUT = re.compile(
    r"<!-- output( of the wrong image)?: (.*?) -->\n```console\n(.*?)```", re.DOTALL
)
STRIDES = '"strides": (self._row_bytes, 1),'


def printed(command: str, folder: Path) -> str:
    """What a command of the tutorial prints to its output stream."""
    program, *arguments = shlex.split(command)
    start = [sys.executable] + ([] if program == "python" else ["-m", "gridbuf_conformance"])
    path = os.pathsep.join([PACKAGE_FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    environ.pop("COLUMNS", None)
    done = subprocess.run(
        [*start, *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=200
    )
    assert done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("wrong", "command", "shown"), OUTPUT.findall(TUTORIAL), ids=["object", "right", "wrong"]
)
def test_the_output_is_the_commands(tmp_path, wrong, command, shown):
    project = Path(shutil.copytree(EXAMPLE, tmp_path / "project"))
    if wrong:
        source = project / "image.py"
        assert source.read_text().count(STRIDES) == 1
        source.write_text(source.read_text().replace(STRIDES, '"strides": None,'))
    first, _, rest = shown.partition("\n")
    assert first == f"$ {command}"
    assert lasting(printed(command, project)) == lasting(rest)


def test_the_producer_has_ten_lines():
    text = (EXAMPLE / "producer.py").read_text(encoding="utf-8")
    body = text.split("class Producer")[1].split("# [/producer]")[0].strip().splitlines()
    assert len([line for line in body if line.strip()]) <= 10
