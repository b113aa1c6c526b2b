"""Which layout, padding and alignment of fields is fast for the backends of gt4py.next, against GT4Py's own allocator.

Two field operators run on fields of each allocator, in turns and in random order: a structured one (a Laplacian in I and J)
and an unstructured one (the sum over the two vertices of each edge, by a table). Each round allocates all fields again,
because times also depend on where fields begin. The table has the processor time of a call and its ratio to the time on
GT4Py's allocator, with quartiles. Below 1 the layout is faster.

It takes some three minutes, and needs GT4Py (./bazelw --peers), cmake and g++; for the backend `dace` also DaCe.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gridbuf_benchmarks.timing import spread_of

BACKENDS = ("embedded", "gtfn", "dace")
_CALLS = 2


def run(backends: Sequence[str], rounds: int, extent: int = 128) -> int:
    """Measures, and prints a table in Markdown; returns the exit code.

    `extent` is that of I and J; the other operator has 5/4 · extent² vertices, and three times as many edges. There are 80 levels.

    Raises:
      ValueError: when this machine lacks GT4Py.
    """
    if importlib.util.find_spec("gt4py") is None:
        raise ValueError("GT4Py is not installed; `./bazelw --peers` installs it")
    print(
        "| backend | operator | layout | alignment | time | ÷ on GT4Py's |\n|---|---|---|---|---|---|"
    )
    for backend in backends:
        calls = _Calls(_backend(backend), extent)
        times: dict[tuple[str, str], list[float]] = {key: [] for key in calls.keys()}
        for number in range(-1, rounds):  # the first one compiles
            print(f"\r{backend}: round {number + 1} of {rounds}", end="", file=sys.stderr)
            found = calls.times()
            if number >= 0:
                for key, once in found.items():
                    times[key].append(once)
        print(file=sys.stderr)
        for (operator, name), seconds in times.items():
            base = times[operator, "GT4Py's | 64"]
            ratio = spread_of([mine / theirs for mine, theirs in zip(seconds, base)])
            quartiles = f"[{ratio['lower_quartile']:.2f}, {ratio['upper_quartile']:.2f}]"
            milliseconds = spread_of(seconds)["median"] * 1e3
            figures = f"{milliseconds:.3g} ms | {ratio['median']:.2f} {quartiles}"
            print(f"| {backend} | {operator} | {name} | {figures} |", flush=True)
    return 0


def _backend(name: str) -> Any:
    if name == "embedded":
        return None
    module, attribute = {
        "gtfn": ("gt4py.next", "gtfn_cpu"),
        "dace": ("gt4py.next.program_processors.runners.dace", "run_dace_cpu"),
    }[name]
    return getattr(importlib.import_module(module), attribute)


class _Calls:
    """The calls of one backend: each operator on the fields of each allocator."""

    def __init__(self, backend: Any, extent: int) -> None:
        import gridbuf.gt4py.next as gb_next
        from gridbuf_benchmarks.next_operators import Operators
        from gt4py.next.custom_layout_allocators import StandardCPUFieldBufferAllocator

        self._operators = Operators(backend, extent)
        self._allocators = {
            "GT4Py's | 64": StandardCPUFieldBufferAllocator(),
            "horizontal | 64": gb_next.FieldAllocator(),
            "horizontal | 8": gb_next.FieldAllocator(byte_alignment=8),
            "horizontal | 128": gb_next.FieldAllocator(byte_alignment=128),
            "vertical | 64": gb_next.FieldAllocator(
                layout_mapper=gb_next.vertical_contiguous_layout_mapper
            ),
        }

    def keys(self) -> list[tuple[str, str]]:
        return [(o, name) for o in self._operators.names for name in self._allocators]

    def times(self) -> dict[tuple[str, str], float]:
        """The processor seconds of a call of each, on new fields.

        Raises:
          RuntimeError: when two results differ.
        """
        made = {key: self._operators.call(key[0], self._allocators[key[1]]) for key in self.keys()}
        results: dict[str, np.ndarray] = {}
        for (operator, name), (call, result) in made.items():
            call()
            first = results.setdefault(operator, result)
            if not np.array_equal(first, result):
                raise RuntimeError(f"{operator} on the fields of {name} has another result")
        order = list(made)
        random.shuffle(order)
        return {key: _seconds(made[key][0]) for key in order}


def _seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    for _ in range(_CALLS):
        call()
    return (time.process_time() - start) / _CALLS
