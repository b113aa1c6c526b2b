"""The tutorial and two how-tos are true: what they print is what the commands print, in the example
project of the tutorial.

`<!-- output: COMMAND -->` is before each printed output, `<!-- output of the … image: COMMAND -->`
if a line of the class is another one (`IMAGES`). This test writes nothing; to renew the text, run
the commands in a copy of examples/pytest_user and paste.
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
DOCS = ROOT / "docs"
TUTORIAL = (DOCS / "tutorial-conformance.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "pytest_user"
OUTPUT = re.compile(r"<!-- output(?: of the ([\w ]+))?: (.*?) -->\n```console\n(.*?)```", re.DOTALL)
RECORD = re.compile(r"<!-- known: (\S+) -->\n```toml\n(.*?)```", re.DOTALL)
IMAGES = {
    "": ("", ""),
    "wrong image": ('"strides": (self._row_bytes, 1),', '"strides": None,'),
    "image that copies": ('"data": self._memory,', '"data": bytes(self._memory),'),
}


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


def compare(project: Path, image: str, command: str, shown: str) -> None:
    """Runs a command with an image, and compares what it prints with the page."""
    right, other = IMAGES[image]
    text = (EXAMPLE / "image.py").read_text(encoding="utf-8")
    assert not right or text.count(right) == 1
    (project / "image.py").write_text(text.replace(right, other), encoding="utf-8")
    first, _, rest = shown.partition("\n")
    assert first == f"$ {command}"
    # The first line of a report has versions.
    title = "" if "gc.check" in command or "-conformance check" in command else "title\n"
    assert lasting(title + printed(command, project)) == lasting(title + rest)


@pytest.mark.parametrize(
    ("image", "command", "shown"), OUTPUT.findall(TUTORIAL), ids=["object", "right", "wrong"]
)
def test_the_output_is_the_commands(tmp_path, image, command, shown):
    project = Path(shutil.copytree(EXAMPLE, tmp_path / "project"))
    compare(project, image, command, shown)


def test_the_records_of_the_how_to_are_written_excused_and_removed(tmp_path):
    """The commands of the page, one after the other in one project."""
    page = (DOCS / "how-to/check-your-library.md").read_text(encoding="utf-8")
    project = Path(shutil.copytree(EXAMPLE, tmp_path / "project"))
    ((file, record),) = RECORD.findall(page)
    outputs = OUTPUT.findall(page)
    assert [image for image, *_ in outputs] == ["wrong image", "wrong image", ""]
    for number, output in enumerate(outputs):
        compare(project, *output)
        if not number:
            written = (project / file).read_text(encoding="utf-8").partition("\n\n")[2]
            assert written == re.sub("(?m)^reason = .*", 'reason = ""', record)
            (project / file).write_text(record, encoding="utf-8")
    assert "[[known]]" not in (project / file).read_text(encoding="utf-8")


def test_the_how_to_of_the_scoreboard_compares(tmp_path):
    pytest.importorskip("numpy", reason="the page's outputs are NOT tested: pip install numpy")
    page = (DOCS / "how-to/run-the-scoreboard.md").read_text(encoding="utf-8")
    project = Path(shutil.copytree(EXAMPLE, tmp_path / "project"))
    outputs = OUTPUT.findall(page)
    assert [image for image, *_ in outputs] == ["", "image that copies"]
    for output in outputs:
        compare(project, *output)
    ((command, output),) = re.findall(r"^\$ (gridbuf.* --script .*) > (\S+)$", page, re.MULTILINE)
    script = project / output
    script.write_text(printed(command, project), encoding="utf-8")
    told = printed(f"python {script.name}", project).splitlines()
    assert [line.partition(":")[0] for line in told] == ["passed", "outcome"]


def test_the_producer_has_ten_lines():
    text = (EXAMPLE / "producer.py").read_text(encoding="utf-8")
    body = text.split("class Producer")[1].split("# [/producer]")[0].strip().splitlines()
    assert len([line for line in body if line.strip()]) <= 10
