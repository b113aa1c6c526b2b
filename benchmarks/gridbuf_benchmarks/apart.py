"""Times a case in several processes of its own, one after another, and takes their rounds together.

Where a process's arrays lie (which pages, which addresses, what the C library kept of arrays before them) is luck that stays for
all of its rounds: more rounds of one process do not even it out. Loops over large arrays notice; for a few per cent, more than what
compiled loops on two kinds of arrays differ by. Each process makes its arrays anew, as a program does when it begins, and has
the case's whole time. Within it all is as elsewhere: contenders in turns, ratios formed within a round.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.processes import run_module
from gridbuf_benchmarks.timing import Budget, Contender, Samples, measure

__all__ = ["measure_apart", "pooled"]


def measure_apart(
    case: Case,
    libraries: Sequence[str],
    budget: Budget,
    on_round: Callable[[int, int], None] = lambda done, wanted: None,
) -> dict[str, Samples]:
    """Times every named entry of the case in each of `case.processes` processes.

    Raises:
      RuntimeError: when a process fails, with what it printed.
    """
    series = []
    for number in range(case.processes):
        # Another seed: who comes first in a round is not the same in all.
        own = {**asdict(budget), "seed": budget.seed + number}
        options = {"case": case.id, "libraries": list(libraries), "budget": own}
        what = f"case {case.id} failed in a process of its own"
        printed = run_module("gridbuf_benchmarks.apart", json.dumps(options), what=what)
        series.append(
            {key: Samples(**one) for key, one in json.loads(printed.splitlines()[-1]).items()}
        )
        on_round(number + 1, case.processes)
    return {library: pooled([one[library] for one in series]) for library in libraries}


def pooled(series: Sequence[Samples]) -> Samples:
    """The samples of one contender from several processes as those of one, which had one round after the other."""
    loops = min(one.loops for one in series)
    rounds: list[int] = []
    for one in series:
        begin = max(rounds, default=-1) + 1
        rounds += [begin + number for number in one.rounds]
    # Faults are counted in a sample; a process that took longer ones has as many more.
    faults = [count * loops // one.loops for one in series for count in one.page_faults]
    nanoseconds = [value for one in series for value in one.nanoseconds]
    return Samples(loops, tuple(nanoseconds), tuple(rounds), tuple(faults))


def _measure_here(case_id: str, libraries: Sequence[str], budget: Budget) -> dict[str, Samples]:
    from gridbuf_benchmarks.cases import named
    from gridbuf_benchmarks.libraries import load

    case = named(case_id)
    loaded, _ = load(libraries)
    entries = {entry.library: entry for entry in case.entries + case.yardsticks}

    def contender(library: str) -> Contender:
        entry, module = entries[library], loaded[library].module
        essential = entry in case.yardsticks
        return Contender(
            entry.statement, dict(entry.names(module)), entry.setup, essential=essential
        )

    return measure({library: contender(library) for library in libraries}, budget)


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    samples = _measure_here(options["case"], options["libraries"], Budget(**options["budget"]))
    print(json.dumps({key: asdict(one) for key, one in samples.items()}))


if __name__ == "__main__":
    main()
