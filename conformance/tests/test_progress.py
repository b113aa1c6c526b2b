"""Progress: a bar on a terminal, plain lines elsewhere, from the event stream alone."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gridbuf_conformance.cli import progress
from gridbuf_conformance.cli.progress import progress_on
from gridbuf_conformance.engine import producer_run
from gridbuf_conformance.plan import Plan


def shown(is_terminal: bool, encoding: str = "utf-8", runs: int = 2) -> str:
    """What two short real runs show."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    console = Console(file=stream, width=100, force_terminal=is_terminal, highlight=False)
    with progress_on(console, runs) as reporter:
        for name in ["array", "größe.py:Prüfling"][:runs]:
            reporter.begin(name)
            producer_run.replay("array", "PB-03", Plan(), on_event=reporter.listen)
            reporter.end("conforms\x1b[2J")
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def test_lines_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_EVERY_S", float("inf"))
    first, second = shown(is_terminal=False).splitlines()
    assert first.startswith("[1/2] array: conforms\\x1b[2J (")
    assert second.startswith("[2/2] größe.py:Prüfling: conforms")


def test_one_run_is_not_numbered():
    assert shown(is_terminal=False, runs=1).startswith("array: ")


def test_lines_between_for_runs_that_take_long(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    text = shown(is_terminal=False, runs=1)
    assert "array: 1 of 1 plan\n" in text


def test_a_bar_on_a_terminal_that_vanishes():
    text = shown(is_terminal=True)
    assert "[1/2] array" in text and "[2/2] größe.py:Prüfling" in text
    assert "\x1b[2K" in text, "the line is erased, so that results follow on a clean screen"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_an_ascii_terminal_is_enough(is_terminal):
    assert "[1/2] array" in shown(is_terminal, encoding="ascii")
