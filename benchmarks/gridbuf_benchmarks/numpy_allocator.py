"""What `gridbuf.memory.numpy_allocator` is worth to programs that only use NumPy, xarray, or GT4Py's `numpy` backend.

Each sample is a new process that does one thing again and again, by `python -m MODULE` and by `python -m gridbuf.memory run -m MODULE`. The
program is the same, and does not import gridbuf. The two take turns. The table has the time with NumPy's own allocator, and the
ratio of that time to the time with gridbuf's, with quartiles over the rounds. Above 1 gridbuf is faster.

It takes about 15 minutes. GT4Py and xarray are measured where they are installed (./bazelw --peers).
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

_REPEATS = 9
_LEAST_SECONDS = 0.03
"""The loop of one repetition takes at least this."""

EXPRESSION = "(a*2 + b*3 - a)/b"
SIZES = tuple(1 << exponent for exponent in (10, 13, 16, 18, 20, 21, 22, 24, 26, 28))
"""Bytes of one array of the chart."""


@dataclass(frozen=True)
class Case:
    """`statement` runs with the names that `make` returns; `needs` is a library besides NumPy."""

    id: str
    title: str
    size_bytes: int
    statement: str
    make: Callable[[int], dict[str, Any]]
    needs: str = "numpy"


def _arrays(size_bytes: int) -> dict[str, Any]:
    random = np.random.default_rng(1)
    a, b = random.random(size_bytes // 8) + 1, random.random(size_bytes // 8) + 1
    return {"np": np, "n": size_bytes // 8, "a": a, "b": b}


def _labelled(size_bytes: int) -> dict[str, Any]:
    import xarray

    values = np.random.default_rng(1).random((size_bytes >> 19, 256, 256))
    return {"t": xarray.DataArray(values, dims=("z", "y", "x"))}


def _stencil(size_bytes: int) -> dict[str, Any]:
    from gridbuf_benchmarks.cases.kernels import HALO, frozen, values_of

    shape = (size_bytes >> 17, 256, 64)
    domain = shape[0] - 2 * HALO, shape[1] - 2 * HALO, shape[2]
    return {"stencil": frozen("hdiff", "numpy", domain), "fields": values_of("hdiff", shape)}


def _text(size_bytes: int) -> str:
    for unit, scale in (("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << scale:
            return f"{size_bytes >> scale} {unit}"
    return f"{size_bytes} bytes"


def _cases() -> list[Case]:
    def one(id: str, size_bytes: int, statement: str, title: str = "", **more: Any) -> Case:
        make = more.pop("make", _arrays)
        title = title or f"`{statement}`"
        return Case(f"{id}-{size_bytes}", title, size_bytes, statement, make, **more)

    mebibyte = 1 << 20
    found = [one("empty", 64, "np.empty(n)")]
    for id, statement in (("add", "a + b"), ("expression", EXPRESSION)):
        found += [one(id, size, statement) for size in (64, *SIZES)]
    for size in (4 * mebibyte, 16 * mebibyte, 64 * mebibyte, 256 * mebibyte):
        found += [
            one("zeros", size, "np.zeros(n)"),
            one("some", size, "np.zeros(n)[::n // 64].fill(1)", "`np.zeros(n)`, 64 places written"),
            one("all", size, "np.zeros(n).fill(1)", "`np.zeros(n)`, every element written"),
        ]
    anomaly = "(t - t.mean(('y', 'x'))) / t.std(('y', 'x'))"
    title = "xarray: `(t - t.mean(…)) / t.std(…)`"
    found.append(one("xarray", 64 * mebibyte, anomaly, title, make=_labelled, needs="xarray"))
    title = "GT4Py's `numpy` backend, horizontal diffusion"
    call = "stencil(**fields)"
    found.append(one("gt4py", 32 * mebibyte, call, title, make=_stencil, needs="gt4py"))
    return found


CASES = {case.id: case for case in _cases()}


def sample(case: Case) -> float:
    """The median time of the statement in this process, in seconds."""
    timer = Timer(case.statement, globals=case.make(case.size_bytes))
    once = min(timer.repeat(3, 1))
    loops = max(1, round(_LEAST_SECONDS / once)) if once > 0 else 1
    return statistics.median(timer.repeat(_REPEATS, loops)) / loops


def measured(case: Case, rounds: int) -> dict[str, Any]:
    """Samples of both in turns; the first starts every second round."""
    from gridbuf_benchmarks.runner import run_module
    from gridbuf_benchmarks.timing import spread_of

    seconds: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for ours in (number % 2 == 0, number % 2 == 1):
            start = ["gridbuf.memory", "run", "-m", __name__] if ours else [__name__]
            seconds[ours].append(float(run_module(*start, case.id, what=case.id)))
    ratios = [numpy / ours for numpy, ours in zip(seconds[False], seconds[True])]
    facts = asdict(case)
    del facts["make"]
    return {**facts, "numpy_ns": spread_of(seconds[False])["median"] * 1e9, **spread_of(ratios)}


def run(rounds: int, record: Path | None = None, only: Sequence[str] = ()) -> int:
    """Measures, prints a table in Markdown, and writes the record; returns the exit code."""
    from gridbuf_benchmarks.report import format_time

    results = []
    print("| work | array | NumPy's allocator | NumPy's ÷ gridbuf's |\n|---|--:|--:|--:|")
    for case in CASES.values():
        if importlib.util.find_spec(case.needs) is None:
            continue
        if only and not any(text in case.id for text in only):
            continue
        found = measured(case, rounds)
        results.append(found)
        quartiles = f"[{found['lower_quartile']:.2f}, {found['upper_quartile']:.2f}]"
        row = (case.title, _text(case.size_bytes), format_time(found["numpy_ns"]))
        print(f"| {' | '.join(row)} | {found['median']:.2f} {quartiles} |", flush=True)
    if record is not None:
        record.write_text(json.dumps({"rounds": rounds, "cases": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    print(sample(CASES[sys.argv[1]]))
