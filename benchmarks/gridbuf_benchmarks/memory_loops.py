"""Time and memory of loops that make and free large arrays of equal, random and growing lengths.

Each sample is a new process, in which one loop makes its arrays with one of four functions: `np.empty` with NumPy's allocator, `np.empty`
with `gridbuf.memory.numpy_allocator`, `gridbuf.empty` and `gridbuf.storage.empty`. The four take turns. Every array is written completely. The
table has NumPy's time on the processors and the peak of its resident memory, and the ratios of the others to them: time and peak, and what a process still has
when all arrays are freed, as a part of its peak. Below 1 gridbuf takes less.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_KIB, _MIB = 1 << 10, 1 << 20

Make = Callable[[int], Any]
"""Makes an array of so many bytes."""


def _written(make: Make, size_bytes: int) -> Any:
    array = make(size_bytes)
    array[...] = 1
    return array


def _replace(make: Make, alive: int, sizes: Sequence[int]) -> None:
    draw, arrays = random.Random(1), [None] * alive
    for size_bytes in sizes:
        place = draw.randrange(alive)
        arrays[place] = None
        arrays[place] = _written(make, size_bytes)


def _uniform(count: int, longest: int) -> list[int]:
    draw = random.Random(2)
    return [draw.randrange(_KIB, longest) for _ in range(count)]


def _any_magnitude(count: int, longest: int) -> list[int]:
    draw = random.Random(3)
    return [int(_KIB * (longest / _KIB) ** draw.random()) for _ in range(count)]


def _alternate(make: Make) -> None:
    for _ in range(60):
        first = _written(make, 20 * _MIB)
        second = _written(make, 33 * _MIB)
    del first, second


def _longer_and_longer(make: Make) -> None:
    array = None
    for step in range(120):
        array = _written(make, 8 * _MIB + step * 300 * _KIB)
    del array


def _time_step(make: Make) -> None:
    fields = [_written(make, 32 * _MIB) for _ in range(6)]
    for _ in range(40):
        fields[0] = [_written(make, 32 * _MIB) for _ in range(4)][-1]


def _resize(make: Make) -> None:
    array = _written(make, 64 * _MIB)
    for _ in range(2000):
        array.resize(array.size + _KIB, refcheck=False)
    array[...] = 2


def _resize_from_nothing(make: Make) -> None:
    for _ in range(20):
        array = _written(make, _KIB)
        for _ in range(3000):
            array.resize(array.size + 2 * _KIB, refcheck=False)


def _read_text(make: Make) -> None:
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("1 " * 2_000_000)
        file.flush()
        assert np.fromfile(file.name, sep=" ").size == 2_000_000


@dataclass(frozen=True)
class Loop:
    """`kinds` are the functions that it is measured with: those that resize arrays are only NumPy's."""

    id: str
    title: str
    run: Callable[[Make], None]
    kinds: Sequence[str] = ("numpy", "allocator", "array", "storage")


_NUMPY = ("numpy", "allocator")
LOOPS = {
    loop.id: loop
    for loop in (
        Loop("random", "400 arrays of 1 KiB to 64 MiB, 20 alive", lambda make: _replace(make, 20, _uniform(400, 64 * _MIB))),
        Loop("magnitudes", "2,000 arrays of any magnitude, 1 KiB to 64 MiB, 20 alive", lambda make: _replace(make, 20, _any_magnitude(2000, 64 * _MIB))),
        Loop("long", "80 arrays of 1 KiB to 300 MiB, 5 alive", lambda make: _replace(make, 5, _uniform(80, 300 * _MIB))),
        Loop("alternating", "20 MiB and 33 MiB in turns", _alternate),
        Loop("longer", "8 to 43 MiB, each 300 KiB longer than the last", _longer_and_longer),
        Loop("step", "6 fields of 32 MiB, 4 temporary ones each step", _time_step),
        Loop("resize", "`a.resize`, 2,000 times 1 KiB longer, from 64 MiB", _resize, _NUMPY),
        Loop("resize-small", "`a.resize`, 3,000 times 2 KiB longer, from 1 KiB", _resize_from_nothing, _NUMPY),
        Loop("text", "`np.fromfile(…, sep=\" \")`, 2,000,000 numbers", _read_text, _NUMPY),
    )
}  # fmt: skip


def _maker(kind: str) -> Make:
    if kind == "array":
        import gridbuf

        return lambda size_bytes: gridbuf.empty((size_bytes,), dtype=np.uint8)
    if kind == "storage":
        import gridbuf

        return lambda size_bytes: gridbuf.storage.empty((size_bytes,), dtype=np.uint8)
    if kind == "allocator":
        from gridbuf.memory import numpy_allocator

        numpy_allocator().install()
    return lambda size_bytes: np.empty(size_bytes, np.uint8)


def _status_bytes(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10 if found else 0


def sample(loop: Loop, kind: str) -> dict[str, float]:
    """The loop in this process: seconds, and bytes of the peak and the rest beyond those at its start."""
    make = _maker(kind)
    _written(make, _KIB)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
    before = _status_bytes("VmRSS")
    start = time.process_time()
    loop.run(make)
    seconds = time.process_time() - start
    peak, rest = _status_bytes("VmHWM") - before, _status_bytes("VmRSS") - before
    return {"seconds": seconds, "peak_bytes": peak, "rest_bytes": max(rest, 0)}


def measured(loop: Loop, rounds: int) -> dict[str, Any]:
    """Samples of all kinds in turns; each round begins with another."""
    from gridbuf_benchmarks.runner import run_module
    from gridbuf_benchmarks.timing import spread_of

    samples: dict[str, list[dict[str, float]]] = {kind: [] for kind in loop.kinds}
    for number in range(rounds):
        turn = number % len(loop.kinds)
        for kind in (*loop.kinds[turn:], *loop.kinds[:turn]):
            samples[kind].append(json.loads(run_module(__name__, loop.id, kind, what=loop.id)))
    base = samples.pop("numpy")

    def ratio(ours: list[dict[str, float]], name: str) -> dict[str, float]:
        return spread_of([one[name] / other[name] for one, other in zip(ours, base)])

    return {
        "id": loop.id,
        "title": loop.title,
        "numpy_seconds": spread_of([one["seconds"] for one in base])["median"],
        "numpy_peak_bytes": spread_of([one["peak_bytes"] for one in base])["median"],
        "kinds": {
            kind: {
                "seconds": ratio(ours, "seconds"),
                "peak_bytes": ratio(ours, "peak_bytes"),
                "rest": spread_of([one["rest_bytes"] / one["peak_bytes"] for one in ours]),
            }
            for kind, ours in samples.items()
        },
    }


KIND_TITLES = {
    "allocator": "`numpy_allocator`",
    "array": "`gridbuf.empty`",
    "storage": "`storage.empty`",
}


def run(rounds: int, record: Path | None = None, only: Sequence[str] = ()) -> int:
    """Measures, prints a table in Markdown, and writes the record; returns the exit code."""
    from gridbuf_benchmarks.report import format_time

    results = []
    print("| loop | NumPy | with | time | peak | rest |\n|---|--:|---|--:|--:|--:|")
    for loop in LOOPS.values():
        if only and not any(text in loop.id for text in only):
            continue
        found = measured(loop, rounds)
        results.append(found)
        numpy = f"{format_time(found['numpy_seconds'] * 1e9)}, {math.ceil(found['numpy_peak_bytes'] / _MIB)} MiB"
        for kind, ratios in found["kinds"].items():
            seconds = ratios["seconds"]
            quartiles = f"[{seconds['lower_quartile']:.2f}, {seconds['upper_quartile']:.2f}]"
            figures = f"{seconds['median']:.2f} {quartiles} | {ratios['peak_bytes']['median']:.2f} | {ratios['rest']['median']:.2f}"
            print(f"| {loop.title} | {numpy} | {KIND_TITLES[kind]} | {figures} |", flush=True)
    if record is not None:
        text = json.dumps({"rounds": rounds, "loops": results}, indent=1, ensure_ascii=False)
        record.write_text(text + os.linesep, "utf-8")
    return 0


if __name__ == "__main__":
    print(json.dumps(sample(LOOPS[sys.argv[1]], sys.argv[2])))
