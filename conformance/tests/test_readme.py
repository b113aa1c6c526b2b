"""The README is true: its code is the example's, and its output is the command's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import lasting, run

FOLDER = Path(__file__).parents[1]
README = (FOLDER / "README.md").read_text(encoding="utf-8")
EXAMPLE = FOLDER / "examples" / "mylib.py"

pytest.importorskip("numpy", reason="the README's example is NOT tested: pip install numpy")


def test_the_code_is_the_examples():
    """docs/ has the same test for the documents of the whole repository; this one travels with the
    suite.
    """
    text = EXAMPLE.read_text(encoding="utf-8")
    snippets = re.findall(r"<!-- snippet: \S+#(\w+) -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert [name for name, _ in snippets] == ["library", "producer"]
    for name, code in snippets:
        region = re.search(rf"^# \[{name}\]\n(.*?)^# \[/{name}\]$", text, re.DOTALL | re.MULTILINE)
        assert code.strip() == region[1].strip()


def test_no_link_is_relative():
    """On a package index the README is the only file."""
    assert not re.search(r"\]\((?!https://|#)", README)


def test_the_output_is_the_commands():
    ((arguments, printed),) = re.findall(
        r"<!-- output: (.*?) -->\n```console\n\$ [^\n]*\n(.*?)```", README, re.DOTALL
    )
    done = run(*arguments.split(), cwd=EXAMPLE.parent)
    assert done.returncode == 1, done.stdout + done.stderr
    assert lasting(done.stdout) == lasting(printed)


def test_the_correction_it_names_is_one(tmp_path):
    text = EXAMPLE.read_text(encoding="utf-8")
    (tmp_path / "mylib.py").write_text(text.replace("strides=None", "strides=self._memory.strides"))
    done = run("check", "mylib.py:Producer", "--profile", "smoke", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_exit_codes_are_all_there():
    from gridbuf_conformance import ExitCode

    table = README.split("## Exit codes")[1].split("##")[0]
    codes = [str(code.value) for code in ExitCode]
    assert re.findall(r"^\| (\d+) \|", table, re.MULTILINE) == codes


def test_the_commands_are_all_there():
    from gridbuf_conformance import cli

    for command in re.findall(r"gridbuf-conformance (\w+)", README):
        assert command in cli.parser().format_help(), command
