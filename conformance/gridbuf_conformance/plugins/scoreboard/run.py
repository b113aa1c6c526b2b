"""Running the scoreboard: a worker for each two libraries (`engine.process`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import libraries, named_consumers, producers
from ...engine.process import START_LIMIT_S, Ending, Process, Restarted
from ...engine.worker import system
from ...plan.profiles import PLAN_LIMIT_S
from ...targets import CannotLoad, Target, canonical, is_path
from .arrays import ARRAYS, VERSION
from .records import RIGHT, Cell, Record

_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}


@dataclass(frozen=True)
class Selection:
    """What is run: all pairs of libraries, or those of `libraries` with `against`, both directions.

    `producers` and `consumers` are further targets; they belong to the chosen libraries. Any name
    of a library is one. `LIBRARY=TARGET` names the library of a target, for a function of a file.
    """

    libraries: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Makes names of libraries those of their targets."""
        for side in ("producer", "consumer"):
            written = tuple(canonical(target, side) for target in getattr(self, f"{side}s"))
            object.__setattr__(self, f"{side}s", written)

    def pairs(self) -> list[tuple[Cell, ...]]:
        """The cells to run, grouped by the two libraries.

        Raises UnknownLibrary, and CannotLoad for a library that has no target here.
        """
        sides = {
            "producer": _targets("producer", producers.entries(), self.producers),
            "consumer": _targets("consumer", named_consumers.entries(), self.consumers),
        }
        known = sorted({library for targets in sides.values() for library in targets.values()})
        own = {_here(name, known) for name in self.libraries}
        own |= {sides["producer"][target.partition("=")[2] or target] for target in self.producers}
        own |= {sides["consumer"][target.partition("=")[2] or target] for target in self.consumers}
        own = own or set(known)
        others = {_here(name, known) for name in self.against} or set(known)
        groups: dict[tuple[str, str], list[Cell]] = {}
        for producer, source in sides["producer"].items():
            for consumer, target in sides["consumer"].items():
                if (source in own and target in others) or (source in others and target in own):
                    cell = Cell(producer, consumer, source, target)
                    groups.setdefault((source, target), []).append(cell)
        return [tuple(cells) for _, cells in sorted(groups.items())]


def _here(name: str, known: Sequence[str]) -> str:
    """The library of a name, as records have it."""
    if name in known:
        return name
    library = libraries.find(name, known)
    if library.module not in known:
        raise CannotLoad(
            f"no producer or consumer of {library} is installed; libraries here: "
            f"{', '.join(known)}; "
            "add others with --producer and --consumer"
        )
    return library.module


def _targets(side: str, entries: Any, more: Iterable[str]) -> dict[str, str]:
    """The targets of a side with their library: one for each kind of array exported in full."""
    chosen = {
        name: entry.library.module
        for name, entry in entries.items()
        if entry.is_usable and (side == "consumer" or entry.rules is None or "." not in name)
    }
    for written in more:
        library, named, target = written.rpartition("=")
        chosen[target] = library if named else library_of(target, side)
    return chosen


def library_of(target: str, side: str) -> str:
    """The library of a target: that of its row, the top module, or the name of a file.

    Raises LookupError for an unknown name.
    """
    if not is_path(target):
        find = named_consumers.find if side == "consumer" else producers.find
        return find(target).library.module
    place = target.rpartition(":")[0] or target
    return os.path.basename(place)[:-3] if place.endswith(".py") else place.partition(".")[0]


def run(
    selection: Selection,
    *,
    done: Record | None = None,
    time_limit_s: float = PLAN_LIMIT_S,
    on_pair: Callable[[int, int, str, Record], None] = lambda *_: None,
) -> Record:
    """Runs all pairs of a selection.

    Parameters
    ----------
    selection : Selection
        What is run.
    done : Record, optional
        A record of an earlier run of the same libraries; its cells are kept, unless they are of
        an older set of arrays.
    time_limit_s : float, optional
        The time for one array, in seconds.
    on_pair : callable, optional
        Called after each two libraries with their number, the number of all, their names and the
        record so far.

    Returns
    -------
    Record
        The record.

    Raises
    ------
    LookupError
        If the selection names an unknown library or target.
    CannotLoad
        If a library that the selection names is not installed.
    """
    groups = selection.pairs()
    record = done if done and done.arrays == VERSION else Record(*system())
    have = {cell.key for cell in record.cells}
    for number, cells in enumerate(groups, 1):
        todo = [cell for cell in cells if cell.key not in have]
        if todo:
            _run_libraries(todo, record, time_limit_s)
        on_pair(number, len(groups), f"{cells[0].source} → {cells[0].target}", record)
    return record


def _run_libraries(cells: Sequence[Cell], record: Record, limit_s: float) -> None:
    """Runs the cells of two libraries, however often a worker dies."""
    exchange = _Exchange(cells, record, limit_s)
    try:
        for cell in cells:
            exchange.run(cell)
    finally:
        exchange.worker.discard()
    if "python" in record.libraries:
        record.libraries["python"] = record.python
    record.cells += [cell for cell in cells if not {*cell.key} & record.skipped.keys()]


class _Exchange:
    """Two libraries in a worker. An array at which it dies runs again in a worker with this pair
    alone, so that an earlier array cannot spoil it: the second run decides. Then a new worker does
    the rest."""

    def __init__(self, cells: Sequence[Cell], record: Record, limit_s: float) -> None:
        self.worker = Restarted(self._started)
        self._cells = self._loads = cells
        self._record = record
        self._limit_s = limit_s
        self._unmade: set[tuple[str, str]] = set()
        """What kills its producer is not made again for the next consumer."""

    def run(self, cell: Cell) -> None:
        """Observes all arrays of a pair, then what else is known of it."""
        for array in ARRAYS:
            if (cell.producer, array) not in self._unmade:
                self._observe(cell, array)
        if not self._is_loaded(cell):
            return
        came = [name for name, letter in zip(ARRAYS, cell.outcomes) if letter in RIGHT]
        array = "rank 1" if "rank 1" in came else next(iter(came), "")
        answer = self._ask(_request(cell, array, extras=True))
        if not isinstance(answer, Ending):
            cell.time_us, cell.flat = answer["time_us"], answer["flat"]
            self._record.protocols[cell.producer] = answer["protocols"]

    def _observe(self, cell: Cell, array: str) -> None:
        if not self._is_loaded(cell):
            return
        request = _request(cell, array)
        answer = self._ask(request)
        if isinstance(answer, Ending):
            self._loads = [cell]
            answer = self.worker.again(answer, request, self._limit_s, cell.key)
            self.worker.discard()
            self._loads = self._cells
        if not isinstance(answer, Ending):
            cell.set(array, answer["outcome"], answer["message"])
        elif answer.step == "produce":
            self._unmade.add((cell.producer, array))
        else:
            outcome = "hang" if answer.kind == "timeout" else "crash"
            cell.set(array, outcome, f"the process {answer.what} at step {answer.step}")

    def _is_loaded(self, cell: Cell) -> bool:
        self.worker.started()
        return not {*cell.key} & self._record.skipped.keys()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any] | Ending:
        self.worker.send(request, self._limit_s)
        return self.worker.receive()

    def _started(self) -> Process[dict[str, Any]]:
        while True:
            process = Process(f"{__package__}.cells", {}, _answer, _ENVIRONMENT)
            try:
                process.reply()  # it is ready
                if all(self._load(process, *target) for target in self._targets()):
                    return process
            except BaseException:
                process.kill()
                raise
            process.kill()

    def _targets(self) -> list[tuple[str, str, str]]:
        """Side, name and library of what is to be loaded."""
        sides = [("producer", cell.producer, cell.source) for cell in self._loads]
        sides += [("consumer", cell.consumer, cell.target) for cell in self._loads]
        return [t for t in dict.fromkeys(sides) if t[1] not in self._record.skipped]

    def _load(self, process: Process[dict[str, Any]], side: str, name: str, library: str) -> bool:
        """Whether the process lives after the import."""
        request = {"load": Target(name, side=side).to_dict(), "library": library}
        process.request(request, START_LIMIT_S)
        ready = process.reply()
        if isinstance(ready, Ending):
            self._record.skipped[name] = f"the import {ready.what}"
            return False
        if "error" in ready:
            self._record.skipped[name] = ready["error"]
        else:
            version = ready["version"].removeprefix(f"{library} ")
            self._record.libraries[library] = self._record.libraries.get(library) or version
        return True


def _request(cell: Cell, array: str, extras: bool = False) -> dict[str, Any]:
    pair = {"producer": cell.producer, "consumer": cell.consumer}
    return {**pair, "array": array, "extras": extras}


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    if message.get("kind") == "error":  # of the suite
        raise RuntimeError(message["reason"])
    return message
