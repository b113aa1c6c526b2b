"""Running the scoreboard: a worker for each two libraries, and what it survives.

A worker observes all arrays of all ways between two libraries. If it dies or hangs, that array runs again in a process
alone. The second run decides, so that an earlier array cannot spoil it. Then a new worker does the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import named_consumers, producers
from ..engine.worker import system
from ..targets import CannotLoad
from .arrays import ARRAYS
from .cells import COMMAND
from .records import Cell, Record

__all__ = ["Selection", "library_of", "run"]

START_LIMIT_S = 120.0
CELL_LIMIT_S = 10.0
_PATIENCE = 1
"""After this many deaths of one producer and consumer, the next ones are believed at once."""


@dataclass(frozen=True)
class Selection:
    """What is run: all pairs of all libraries, or those of `libraries` with `against`, in both directions.

    `producers` and `consumers` are further targets; they belong to the chosen libraries.
    """

    libraries: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()

    def pairs(self) -> list[tuple[Cell, ...]]:
        """The cells to run, grouped by the two libraries; raises CannotLoad for a library that has no target here."""
        sides = {
            "producer": _targets("producer", producers.entries(), self.producers),
            "consumer": _targets("consumer", named_consumers.entries(), self.consumers),
        }
        known = sorted({library for targets in sides.values() for library in targets.values()})
        for name in (*self.libraries, *self.against):
            if name not in known:
                raise CannotLoad(
                    f"no producer or consumer of {name!r} is installed; libraries here: {', '.join(known)}; "
                    "add others with --producer and --consumer"
                )
        own = {*self.libraries, *map(library_of, (*self.producers, *self.consumers))} or set(known)
        others = set(self.against or known)
        groups: dict[tuple[str, str], list[Cell]] = {}
        for producer, source in sides["producer"].items():
            for consumer, target in sides["consumer"].items():
                if (source in own and target in others) or (source in others and target in own):
                    cell = Cell(producer, consumer, source, target)
                    groups.setdefault((source, target), []).append(cell)
        return [tuple(cells) for _, cells in sorted(groups.items())]


def _targets(side: str, entries: Any, more: Iterable[str]) -> dict[str, str]:
    """The targets of a side with their library: one for each kind of array that a library exports in full."""
    chosen = {
        name: library_of(
            entry.needs or name if "announced" in entry.summary else entry.needs or "python"
        )
        for name, entry in entries.items()
        if entry.is_usable and (side == "consumer" or entry.rules is None or "." not in name)
    }
    return {**chosen, **{target: library_of(target) for target in more}}


def library_of(target: str) -> str:
    """The library of a target: the top module, or the name of a file."""
    place = target.rpartition(":")[0] or target
    return os.path.basename(place)[:-3] if place.endswith(".py") else place.partition(".")[0]


def run(
    selection: Selection,
    *,
    done: Record | None = None,
    time_limit_s: float = CELL_LIMIT_S,
    on_pair: Callable[[int, int, str, Record], None] = lambda *_: None,
) -> Record:
    """Runs all pairs of a selection.

    Parameters
    ----------
    selection : Selection
        What is run.
    done : Record, optional
        A record of an earlier run of the same libraries; its cells are kept.
    time_limit_s : float, optional
        The time for one array, in seconds.
    on_pair : callable, optional
        Called after each two libraries with their number, the number of all, their names and the record so far.

    Returns
    -------
    Record
        The record.

    Raises
    ------
    CannotLoad
        If a library that the selection names is not there.
    """
    groups = selection.pairs()
    record = done or Record(*system())
    have = {cell.key for cell in record.cells}
    for number, cells in enumerate(groups, 1):
        todo = [cell for cell in cells if cell.key not in have]
        if todo:
            _run_libraries(todo, record, time_limit_s)
        on_pair(number, len(groups), f"{cells[0].source} → {cells[0].target}", record)
    return record


def _run_libraries(cells: Sequence[Cell], record: Record, limit_s: float) -> None:
    """Runs the cells of two libraries, however often a worker dies."""
    libraries = {cell.producer: cell.source for cell in cells} | {
        c.consumer: c.target for c in cells
    }
    reached: set[tuple[str, str]] = set()
    deaths: dict[tuple[str, str], int] = {}
    unmade: set[tuple[str, str]] = set()
    queue = [(cell, list(ARRAYS), True) for cell in cells]
    by_key = {cell.key: cell for cell in cells}
    while queue:
        queue = [
            (cell, [array for array in arrays if (cell.producer, array) not in unmade], extras)
            for cell, arrays, extras in queue
        ]
        _, arrays, extras = queue[0]
        if not arrays and not extras:
            del queue[0]
            continue
        together = [item for item in queue if item[1:] == (arrays, extras)]
        queue = [item for item in queue if item not in together]
        at, step, left = (
            ["load", "", ""],
            "import",
            {cell.key: list(arrays) for cell, _, _ in together},
        )
        ending = ""
        for message in _messages([cell.key for cell, _, _ in together], arrays, extras, limit_s):
            at, step = message.get("at", at), message.get("step", step)
            ending = message.get("ending", "")
            if "loaded" in message:
                _note_loaded(message, libraries, record)
            elif "outcome" in message:
                producer, consumer, array = at
                by_key[producer, consumer].set(array, message["outcome"], message["message"])
                left[producer, consumer].remove(array)
            elif "time_us" in message:
                cell = by_key[at[0], at[1]]
                cell.time_us, cell.flat = message["time_us"], message["flat"]
                reached.add(cell.key)
            elif "protocols" in message:
                record.protocols[message["producer"]] = message["protocols"]
        if not ending:
            continue
        if at[0] == "load":
            record.skipped[at[1]] = f"the import {ending}"
            queue = [item for item in queue if at[1] not in item[0].key]
            together = [item for item in together if at[1] not in item[0].key]
            queue = [*together, *queue]
            continue
        key = at[0], at[1]
        if at[2]:
            deaths[key] = deaths.get(key, 0) + 1
            outcome = "hang" if "no answer" in ending else "crash"
            text = f"the process {ending} at step {step}"
            if step == "produce":
                outcome, text = "not made", text
            left[key].remove(at[2])
            if len(arrays) == 1 or deaths[key] > _PATIENCE:
                by_key[key].set(at[2], outcome, text)
                if outcome == "not made":
                    unmade.add((at[0], at[2]))
            else:
                queue.append((by_key[key], [at[2]], False))
        for cell, _, _ in together:
            if left[cell.key] and cell.key != key or left[cell.key] and at[2]:
                queue.append((cell, left[cell.key], extras))
            elif extras and cell.key not in reached and (at[2] or cell.key != key):
                queue.append((cell, [], True))
    if "python" in record.libraries:
        record.libraries["python"] = record.python
    record.cells += [cell for cell in cells if not {*cell.key} & record.skipped.keys()]


def _note_loaded(message: dict[str, Any], libraries: dict[str, str], record: Record) -> None:
    library = libraries[message["loaded"]]
    if "error" in message:
        record.skipped[message["loaded"]] = message["error"]
    else:
        version = message["version"].removeprefix(f"{library} ")
        record.libraries[library] = record.libraries.get(library) or version


def _messages(
    pairs: list[tuple[str, str]], arrays: list[str], extras: bool, limit_s: float
) -> Iterator[dict[str, Any]]:
    """The messages of one worker; the last one has `ending` if it died or hung."""
    read, write = os.pipe()
    path = [entry or os.getcwd() for entry in sys.path]
    setup = {"path": path, "fd": write, "pairs": pairs, "arrays": arrays, "extras": extras}
    with (
        subprocess.Popen(
            [sys.executable, "-c", COMMAND, json.dumps(setup)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(write,),
            start_new_session=True,
            env={"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", **os.environ},
        ) as process,
        os.fdopen(read, "rb", buffering=0) as stream,
    ):
        os.close(write)
        try:
            yield from _lines(process, stream, limit_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _lines(
    process: subprocess.Popen[bytes], stream: Any, limit_s: float
) -> Iterator[dict[str, Any]]:
    unread, step = b"", "import"
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        if not select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
            yield {"ending": "gave no answer in time"}
            return
        raw = stream.read(65536)
        if not raw:
            code = process.wait()
            if code:
                with contextlib.suppress(ValueError):
                    yield {"ending": f"died by {signal.Signals(-code).name}"}
                    return
                yield {"ending": f"left with exit status {code}"}
            return
        *lines, unread = (unread + raw).split(b"\n")
        for line in lines:
            message = json.loads(line)
            step = message.get("step", step)
            yield message
        deadline = time.monotonic() + (START_LIMIT_S if step == "import" else limit_s)
