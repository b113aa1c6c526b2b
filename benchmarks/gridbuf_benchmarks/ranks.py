"""Cases of several ranks: all contenders of a case in one program under mpiexec, in turns, as elsewhere.

A sample is the time of the slowest rank between a barrier and the end of its loop. Every rank checks the work of every entry.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from timeit import Timer
from typing import Any

from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.processes import run_module
from gridbuf_benchmarks.timing import MINIMUM_ROUNDS, Budget, Samples, page_faults

__all__ = ["launcher", "measure_on_ranks"]

_NANOSECONDS = 1e9


def launcher() -> str | None:
    """The mpiexec that belongs to this Python's mpi4py, or the first one on the path."""
    beside = Path(sys.prefix) / "bin/mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def measure_on_ranks(
    case: Case,
    libraries: Sequence[str],
    budget: Budget,
    on_round: Callable[[int, int], None] = lambda done, wanted: None,
) -> tuple[dict[str, Samples], dict[str, dict[str, Any]]]:
    """Times every named entry of the case on its ranks; returns the samples, and what each entry did.

    Raises:
      RuntimeError: when the program fails, with what it printed; wrong work is such a failure.
    """
    options = {"case": case.id, "libraries": list(libraries), "budget": asdict(budget)}
    printed = run_module(
        *("mpi4py", "-m", "gridbuf_benchmarks.ranks", json.dumps(options)),
        what=f"case {case.id} failed on its ranks",
        launcher=[launcher() or "mpiexec", "-n", str(case.ranks)],
    )
    result = json.loads(printed.splitlines()[-1])
    on_round(1, 1)
    samples = {
        key: Samples(loops, tuple(nanoseconds), page_faults=tuple(faults))
        for key, (loops, nanoseconds, faults) in result["samples"].items()
    }
    return samples, result["done"]


class _Rank:
    """One rank's part in the measurement of a case."""

    def __init__(self, case: Case, libraries: Sequence[str], budget: Budget) -> None:
        from gridbuf_benchmarks.libraries import load
        from gridbuf_benchmarks.work import check_work
        from mpi4py import MPI

        self._comm, self._max, self._budget = MPI.COMM_WORLD, MPI.MAX, budget
        loaded, _ = load(libraries)
        self.done: dict[str, dict[str, Any]] = {}
        self._timers: dict[str, Timer] = {}
        self._kept = []
        for entry in case.entries:
            if entry.library not in libraries:
                continue
            names = dict(entry.names(loaded[entry.library].module))
            eval(entry.statement, names)
            self.done[entry.library] = check_work(case, entry, eval(entry.result, names)).to_json()
            self._timers[entry.library] = Timer(entry.statement, globals=names)
            self._kept.append(names)

    def seconds(self, library: str, loops: int) -> float:
        self._comm.Barrier()
        return float(self._comm.allreduce(self._timers[library].timeit(loops), self._max))

    def loops(self, library: str) -> int:
        """As many that a sample is long enough for the clock; the same on all ranks, for all have the same times."""
        once = min(self.seconds(library, 3) / 3 for _ in range(5))
        return max(1, math.ceil(self._budget.min_sample_seconds / once))

    def rounds(self) -> dict[str, tuple[int, list[float], list[int]]]:
        """Of each entry: loops of a sample, nanoseconds of a call, and the page faults of this rank in each sample."""
        loops = {library: self.loops(library) for library in self._timers}
        times: dict[str, list[float]] = {library: [] for library in loops}
        faults: dict[str, list[int]] = {library: [] for library in loops}
        order, shuffle = list(loops), random.Random(self._budget.seed).shuffle
        started = time.perf_counter()
        for done in range(self._budget.rounds):
            late = time.perf_counter() - started > self._budget.case_seconds
            if self._comm.bcast(late and done >= MINIMUM_ROUNDS):
                break
            shuffle(order)
            for library in order:
                before = page_faults()
                seconds = self.seconds(library, loops[library])
                faults[library].append(page_faults() - before)
                times[library].append(seconds / loops[library] * _NANOSECONDS)
        return {library: (loops[library], times[library], faults[library]) for library in loops}


def main() -> None:
    from gridbuf_benchmarks.cases import named
    from mpi4py import MPI

    options = json.loads(sys.argv[1])
    case = named(options["case"])
    rank = _Rank(case, options["libraries"], Budget(**options["budget"]))
    samples = rank.rounds()
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps({"samples": samples, "done": rank.done}))


if __name__ == "__main__":
    main()
