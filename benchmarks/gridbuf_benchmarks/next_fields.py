"""What fields of gt4py.next cost on gridbuf's memory, against GT4Py's own allocator.

Each request is made in turns with GT4Py's allocator, with gridbuf's allocator passed to GT4Py's constructor, and with
gridbuf's constructor. Each field is freed before the next request, so gridbuf finds the memory of the field before; the row
"fresh memory" gives it back to the system first. The table has the processor time with GT4Py's allocator, and the ratios
to it, with quartiles. Below 1 gridbuf needs less time.

It takes some two minutes, and needs GT4Py (./bazelw --peers).
"""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from gridbuf_benchmarks.timing import Budget, Contender, measure, ratio_of, spread_of

_GT4PY, _ALLOCATOR, _CONSTRUCTOR = "GT4Py's", "gridbuf's allocator", "gridbuf's constructor"


@dataclass(frozen=True)
class _Request:
    """A field, as a statement that `make`, a module of constructors, and `options` complete; `untimed` runs before each sample."""

    title: str
    statement: str
    untimed: str = "pass"

    def contenders(self, names: dict[str, Any]) -> dict[str, Contender]:
        """How the request is made with each; a sample is one call if something runs before it."""
        import gridbuf.gt4py.next as gb_next
        from gt4py import next as gtx
        from gt4py.next.custom_layout_allocators import StandardCPUFieldBufferAllocator

        ways = {
            _GT4PY: (gtx, StandardCPUFieldBufferAllocator()),
            _ALLOCATOR: (gtx, gb_next.allocator),
            _CONSTRUCTOR: (gb_next, gb_next.allocator),
        }
        known = 0.0 if self.untimed == "pass" else 1.0
        return {
            name: Contender(
                self.statement, {**names, "make": make, "its": its}, self.untimed, known
            )
            for name, (make, its) in ways.items()
        }


def _requests(edge: int, levels: int) -> list[_Request]:
    cells, many = edge**2 * 5, edge**2 * 80
    touch = f"touch(make.empty({{K: {levels}, Cell: {many}}}, allocator=its))"
    touched = f"`empty` and first touch of each page, {levels} × {many:,}"
    return [
        _Request("`empty`, 18 × 40", "make.empty({Cell: 18, K: 40}, allocator=its)"),
        _Request(
            f"`zeros`, {levels} × {cells:,}",
            f"make.zeros({{K: {levels}, Cell: {cells}}}, allocator=its)",
        ),
        _Request(
            f"`as_field` from C order, {cells:,} × {levels} (the copy transposes)",
            "make.as_field([Cell, K], by_cell, allocator=its)",
        ),
        _Request(
            f"`as_field` from C order, {levels} × {cells:,} (same order)",
            "make.as_field([K, Cell], by_level, allocator=its)",
        ),
        _Request(f"{touched}, memory freed before", touch),
        _Request(f"{touched}, fresh memory", touch, "trim()"),
    ]


def _touch(field: Any) -> None:
    pages = field.ndarray.ravel(order="K")
    assert pages.base is not None, "a copy was touched"
    pages[:: 4096 // 8] = 1.0


def run(rounds: int, edge: int = 64, levels: int = 80) -> int:
    """Measures, and prints a table in Markdown; returns the exit code.

    `edge` sets the cells: 5 · edge² in fields, 80 · edge² in large ones.

    Raises:
      ValueError: when this machine lacks GT4Py.
    """
    if importlib.util.find_spec("gt4py") is None:
        raise ValueError("GT4Py is not installed; `./bazelw --peers` installs it")
    import gridbuf.memory
    from gt4py import next as gtx

    cells = edge**2 * 5
    random = np.random.default_rng(1)
    names = {
        "Cell": gtx.Dimension("Cell"),
        "K": gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL),
        "by_cell": random.random((cells, levels)),
        "by_level": random.random((levels, cells)),
        "touch": _touch,
        "trim": gridbuf.memory.trim,
    }
    budget = Budget(rounds=rounds, min_sample_seconds=0.02, case_seconds=float("inf"))
    print(f"| request | with {_GT4PY} | {_ALLOCATOR} | {_CONSTRUCTOR} |\n|---|--:|---|---|")
    for request in _requests(edge, levels):
        samples = measure(request.contenders(names), budget, time.process_time)
        row = [f"{spread_of(samples[_GT4PY].nanoseconds)['median'] * 1e-6:.3g} ms"]
        for name in (_ALLOCATOR, _CONSTRUCTOR):
            ratio = ratio_of(samples[name], samples[_GT4PY])
            quartiles = f"[{ratio['lower_quartile']:.2f}, {ratio['upper_quartile']:.2f}]"
            row.append(f"{ratio['median']:.2f} {quartiles}")
        print(f"| {request.title} | {' | '.join(row)} |", flush=True)
    return 0
