"""Times the first call in a process: nothing is warm, no memory has been used before.

What a library keeps between calls (blocks, pages, caches) helps every call but the first. Cases that ask for
`fresh_process` therefore take each sample in a process of its own: it imports the library, makes the names, and times the
statement once. Contenders take turns in random order, as everywhere. The system's own state (which pages the kernel has
at hand, what a hypervisor has given back) is not fresh; it is the same for all.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from timeit import Timer

from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.processes import run_module
from gridbuf_benchmarks.timing import MINIMUM_ROUNDS, Budget, Samples

__all__ = ["FRESH_ROUNDS", "measure_fresh", "time_first_call"]

FRESH_ROUNDS = 15
"""A sample costs the start of a process; this many rounds are enough for quartiles."""

_NANOSECONDS = 1e9


def time_first_call(case_id: str, library: str) -> float:
    """Seconds of the first call of an entry in this process."""
    from gridbuf_benchmarks.cases import named
    from gridbuf_benchmarks.libraries import load

    case = named(case_id)
    (entry,) = [entry for entry in case.entries if entry.library == library]
    loaded, _ = load([library])
    names = dict(entry.names(loaded[library].module))
    return Timer(entry.statement, globals=names).timeit(1)


def measure_fresh(
    case: Case,
    libraries: Sequence[str],
    budget: Budget,
    on_round: Callable[[int, int], None] = lambda done, wanted: None,
) -> dict[str, Samples]:
    """Times every named entry of the case in interleaved rounds, each sample in a new process.

    Raises:
      RuntimeError: when a process fails, with what it printed.
    """
    rounds = min(budget.rounds, FRESH_ROUNDS)
    minimum = min(MINIMUM_ROUNDS, rounds)
    times: dict[str, list[float]] = {library: [] for library in libraries}
    order = list(libraries)
    shuffle = random.Random(budget.seed).shuffle
    started = time.perf_counter()
    for done in range(rounds):
        if done >= minimum and time.perf_counter() - started > budget.case_seconds:
            break
        shuffle(order)
        for library in order:
            times[library].append(_sample(case.id, library) * _NANOSECONDS)
        on_round(done + 1, rounds)
    return {library: Samples(1, tuple(values)) for library, values in times.items()}


def _sample(case_id: str, library: str) -> float:
    what = f"{library} failed in a process of its own at case {case_id}"
    return float(run_module("gridbuf_benchmarks.fresh", case_id, library, what=what))


if __name__ == "__main__":
    print(time_first_call(*sys.argv[1:]))
