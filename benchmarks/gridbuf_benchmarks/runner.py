"""How a case is measured: in this process, in separate processes, or on several ranks.

- Most cases run here: every entry's work is checked, then all are timed in turns.
- `fresh_process`: what a library keeps between calls (blocks, pages, caches) helps every call but the first. Each sample
  is the first call of a new process. The state of the system is not fresh, but the same for all contenders.
- `processes`: the place of a process's arrays (pages, addresses) stays for all of its rounds, and large loops differ by
  it by a few per cent. Each process makes new arrays and has the case's whole time.
- `ranks`: one program under mpiexec. A sample is the time of the slowest rank, from a barrier on. Every rank checks the
  work of every entry.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from timeit import Timer
from types import MappingProxyType, ModuleType
from typing import Any

from gridbuf_benchmarks import memory
from gridbuf_benchmarks.case import Case, Entry, check_work, check_yardstick
from gridbuf_benchmarks.cases import kernels, named
from gridbuf_benchmarks.libraries import load
from gridbuf_benchmarks.timing import (
    MINIMUM_ROUNDS,
    Budget,
    Contender,
    Samples,
    measure,
    page_faults,
    settle,
)

FRESH_ROUNDS = 15
"""Each sample starts a process; this number of rounds is enough for quartiles."""


def run_module(
    module: str,
    *arguments: str,
    what: str,
    launcher: Sequence[str] = (),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The output of `python -m module` with this process's interpreter and paths, started by `launcher`.

    `settings` are added to the environment.

    Raises:
      RuntimeError: when it fails: `what`, and its error output.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    finished = subprocess.run(
        [*launcher, sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": path, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{what}: {finished.stderr.strip()}")
    return finished.stdout


def mpiexec() -> str | None:
    """The mpiexec that belongs to this Python's mpi4py, or the first one on the path."""
    own = Path(sys.prefix) / "bin/mpiexec"
    return str(own) if own.exists() else shutil.which("mpiexec")


Measured = tuple[dict[str, Samples], dict[str, dict[str, Any]]]
"""The samples of each contender, and what it did (see `check_work`)."""


def measure_case(case: Case, modules: Mapping[str, ModuleType], budget: Budget) -> Measured:
    """Checks the work of every entry whose library is here, then times them against each other.

    Raises:
      WrongWork: when an entry does not do the work of its case.
      RuntimeError: when another process fails, with its error output.
    """
    entries = [entry for entry in case.entries + case.yardsticks if entry.library in modules]
    if case.consumer is not None:
        # All run the same code of the consumer and differ by a few percent: each gets its share of the time.
        budget = replace(budget, contender_seconds=budget.case_seconds / len(entries))
    libraries = [entry.library for entry in entries]
    if case.processes or case.ranks > 1:
        return measure_apart(case, libraries, budget)
    contenders, done = _prepared(case, entries, modules)
    if case.fresh_process:
        return measure_fresh(case, libraries, budget), done
    return measure(contenders, budget), done


def _prepared(
    case: Case,
    entries: Sequence[Entry],
    modules: Mapping[str, ModuleType],
    agree: Callable[[float], float] = float,
) -> tuple[dict[str, Contender], dict[str, dict[str, Any]]]:
    """Each entry does its work once, and is checked."""
    contenders, done = {}, {}
    for entry in entries:
        names = dict(entry.names(modules[entry.library]))
        if case.work.target is not None:
            memory.poison(case.work.target.span_bytes(case.work.shape))
        settle()
        agree(0.0)
        faults, begun = page_faults(), time.perf_counter()
        # An entry is a line of this package's own source, evaluated as `timeit` will.
        result = eval(entry.statement, names)
        seconds, faults = time.perf_counter() - begun, page_faults() - faults
        if entry.result:
            result = eval(entry.result, names)
        yardstick = entry in case.yardsticks
        done[entry.library] = (check_yardstick if yardstick else check_work)(case, entry, result)
        contenders[entry.library] = Contender(
            entry.statement, names, entry.setup, seconds, faults, essential=yardstick
        )
    return contenders, done


def measure_fresh(case: Case, libraries: Sequence[str], budget: Budget) -> dict[str, Samples]:
    """Times every named entry of the case in interleaved rounds, each sample the first call of a new process."""
    rounds = min(budget.rounds, FRESH_ROUNDS)
    found = {library: Samples(1) for library in libraries}
    order, shuffle = list(libraries), random.Random(budget.seed).shuffle
    started = time.perf_counter()
    for number in range(rounds):
        late = time.perf_counter() - started > budget.case_seconds
        if late and number >= MINIMUM_ROUNDS:
            break
        shuffle(order)
        for library in order:
            found[library].keep(number, *_child(case, [library], None))
    return found


def measure_apart(case: Case, libraries: Sequence[str], budget: Budget) -> Measured:
    """Times every named entry of the case in each of `case.processes` processes, or in one on its ranks."""
    series, done = [], {}
    for number in range(max(case.processes, 1)):
        # Another seed: another order of contenders.
        samples, done = _child(case, libraries, replace(budget, seed=budget.seed + number))
        series.append({library: Samples(**one) for library, one in samples.items()})
    of_each = {library: [one[library] for one in series] for library in libraries}
    return {library: pooled(some, budget.rounds) for library, some in of_each.items()}, done


def pooled(series: Sequence[Samples], rounds: int) -> Samples:
    """The samples of one contender from several processes, of so many rounds at most, as those of one process."""
    found = Samples(min(one.loops for one in series))
    for process, one in enumerate(series):
        found.nanoseconds.extend(one.nanoseconds)
        found.rounds.extend(process * rounds + number for number in one.rounds)
        # Faults are counted in a sample; a process with longer samples has as many more.
        found.page_faults.extend(count * found.loops // one.loops for count in one.page_faults)
    return found


def _child(case: Case, libraries: Sequence[str], budget: Budget | None) -> Any:
    """What `_main` prints in another process, or on the ranks of the case."""
    kernels.keep_cache()
    command, launcher = ["gridbuf_benchmarks.runner"], []
    if case.ranks > 1:
        command = ["mpi4py", "-m", *command]
        launcher = [mpiexec() or "mpiexec", "-n", str(case.ranks)]
    options = json.dumps([case.id, list(libraries), budget and asdict(budget)])
    what = f"case {case.id} of {', '.join(libraries)} failed in a process that was started for it"
    printed = run_module(*command, options, what=what, launcher=launcher)
    return json.loads(printed.splitlines()[-1])


def _main(case_id: str, libraries: Sequence[str], budget: dict[str, Any] | None) -> None:
    """Prints samples and work of the named entries; without a budget, seconds and page faults of a first call."""
    case = named(case_id)
    modules, _ = load(libraries)
    by_library = {entry.library: entry for entry in case.entries + case.yardsticks}
    entries = [by_library[library] for library in libraries]
    if budget is None:
        names = dict(entries[0].names(modules[libraries[0]]))
        timer, faults = Timer(entries[0].statement, globals=names), page_faults()
        print(json.dumps([timer.timeit(1), page_faults() - faults]))
        return
    rank = 0
    agree: Callable[[float], float] = float
    if case.ranks > 1:
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
        agree = partial(MPI.COMM_WORLD.allreduce, op=MPI.MAX)
    contenders, done = _prepared(case, entries, modules, agree)
    samples = measure(contenders, Budget(**budget), agree=agree)
    if rank == 0:
        print(json.dumps([{key: asdict(one) for key, one in samples.items()}, done]))


if __name__ == "__main__":
    _main(*json.loads(sys.argv[1]))
