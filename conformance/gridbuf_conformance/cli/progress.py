"""How far a run is: a bar on a terminal, plain lines elsewhere, both on the error stream.

Both listen to the event stream (`events`) and only to that. Results go to the output stream, so
that they can be piped while progress is still seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from ..text import clean, plural, shorten

_LINE_EVERY_S = 5.0
_MAX_NAME_CHARS = 32


class Reporter(Protocol):
    """Shows the runs of one command, one after the other."""

    def begin(self, name: str) -> None:
        """A run starts: the producer is being loaded."""

    def listen(self, event: dict[str, Any]) -> None:
        """An event of the run (`on_event`)."""

    def end(self, remark: str) -> None:
        """The run is over; `remark` says how it went."""


@contextmanager
def progress_on(console: Console, runs: int = 1) -> Iterator[Reporter]:
    """A reporter for `runs` runs: a bar if `console` is a Unicode terminal, else lines."""
    has_unicode = (console.encoding or "").lower().startswith("utf")
    if not (console.is_terminal and has_unicode):
        yield _Lines(console, runs)
        return
    columns = (
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TextColumn("plans  {task.fields[remark]}", markup=False, style="dim"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, runs)


class _Counted:
    """What both reporters know: the run, the number of plans done, the rules found wanting."""

    def __init__(self, runs: int) -> None:
        self.run, self.runs = 0, runs

    def start(self, name: str) -> str:
        self.run += 1
        self.name = shorten(clean(name), _MAX_NAME_CHARS)
        self.done, self.total, self.is_shrinking = 0, 0, False
        self.wanting: set[str] = set()
        place = f"[{self.run}/{self.runs}] " if self.runs > 1 else ""
        return f"{place}{self.name}"

    def take(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "plan":
            self.done, self.total = event["n"], event["of"]
        elif kind == "verdict":
            self.wanting.add(event["rule"])
        elif kind == "shrunk":
            self.is_shrinking = True

    @property
    def remark(self) -> str:
        found = f"{plural(len(self.wanting), 'finding')}" if self.wanting else ""
        return f"{found}, making them small" if self.is_shrinking else found


class _Bar:
    """One line that changes in place; it vanishes when the command is done."""

    def __init__(self, progress: Progress, runs: int) -> None:
        self._progress, self._state = progress, _Counted(runs)
        self._task: Any = None

    def begin(self, name: str) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        label = self._state.start(name)
        self._task = self._progress.add_task(label, total=None, remark="loading")

    def listen(self, event: dict[str, Any]) -> None:
        self._state.take(event)
        if event["event"] in ("start", "plan", "shrunk"):
            state = self._state
            self._progress.update(
                self._task, completed=state.done, total=state.total or None, remark=state.remark
            )

    def end(self, remark: str) -> None:
        self._progress.update(self._task, remark=clean(remark))


class _Lines:
    """A line at the start and the end of each run, and one every few seconds between."""

    def __init__(self, console: Console, runs: int) -> None:
        self._console, self._state = console, _Counted(runs)

    def begin(self, name: str) -> None:
        self._label = self._state.start(name)
        self._began = self._last = time.monotonic()

    def listen(self, event: dict[str, Any]) -> None:
        self._state.take(event)
        now = time.monotonic()
        if now - self._last >= _LINE_EVERY_S:
            self._last = now
            remark = f", {self._state.remark}" if self._state.remark else ""
            self._say(f"{self._state.done} of {plural(self._state.total, 'plan')}{remark}")

    def end(self, remark: str) -> None:
        self._say(f"{clean(remark)} ({time.monotonic() - self._began:.1f} s)")

    def _say(self, text: str) -> None:
        encoding = self._console.encoding or "ascii"
        line = f"{self._label}: {text}".encode(encoding, "backslashreplace").decode(encoding)
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
