"""Fills: one element to all of an array, into memory that is there, and into memory that was just allocated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Names, Work, uses
from gridbuf_benchmarks.cases.allocation import touch
from gridbuf_benchmarks.cases.copies import (
    CUBES,
    SIZES_NOTE,
    in_shared_memory,
    needed_bytes,
    without_slow_peers,
    yardsticks,
)
from gridbuf_benchmarks.memory import Placement

_NOTE = (
    "copyto(dst, element) into the same array for all, touched before. The memory's ratio is to the faster of memset in halves "
    "on two threads and torch.fill_, of as many contiguous bytes. gridbuf and PyTorch use their threads, NumPy has one."
)
_WARM_NOTE = (
    "A new array, its fill and its release, in a loop: what gridbuf keeps of the last one is warm. The memory's ratio is to "
    "memset in halves or torch.fill_ of memory that is there and touched: neither allocates. Some processors write zeros "
    "faster than other bytes; memset writes others."
)
_SHAPE = (512, 512, 256)
_VALUE = 1.5


def _in_place(id: str, title: str, work: Work, note: str, *, quick: bool = False) -> Case:
    work = replace(work, bytes_moved=work.array_bytes)
    assert work.values is not None
    element = np.asarray(work.values, dtype=work.dtype)
    return Case(
        id=id,
        title=title,
        note=note,
        work=work,
        entries=in_shared_memory(work, element),
        yardsticks=tuple(yardsticks(work.array_bytes, fill=True)),
        quick=quick,
        memory_bytes=needed_bytes(work),
    )


def _fills() -> Iterator[Case]:
    c_order = (0, 1, 2)
    for dtype in ("uint8", "float32", "float64", "complex128"):
        for name, step, target in (
            ("dense", 1, Placement(dtype, c_order)),
            ("padded", 1, Placement(dtype, c_order, "lines")),
            ("padded.turned", 1, Placement(dtype, (2, 1, 0), "lines")),
            ("strided", 2, Placement(dtype, c_order, step=2)),
        ):
            shape = (*_SHAPE[:2], _SHAPE[2] * 8 // target.itemsize_bytes // step)
            work = Work(shape, dtype, 7.0 if dtype == "uint8" else _VALUE, target=target)
            title = f"fill {'×'.join(map(str, shape))} {dtype}, {name.replace('.', ' and ')}"
            quick = (dtype, name) == ("float32", "padded")
            yield _in_place(f"fill/{dtype}/{name}", title, work, _NOTE, quick=quick)
    for name, extent in CUBES.items():
        work = Work((extent,) * 3, values=_VALUE, target=Placement("float64", c_order))
        title = f"fill {extent}³ float64"
        yield without_slow_peers(_in_place(f"sizes/fill/{name}", title, work, SIZES_NOTE))


def _warm(
    name: str, title: str, work: Work, *entries: Entry, note: str = _WARM_NOTE, quick: bool = False
) -> Case:
    work = replace(work, bytes_moved=work.array_bytes)
    return Case(
        id=f"fill/warm/{name}",
        title=title,
        note=note,
        work=work,
        entries=entries,
        yardsticks=tuple(yardsticks(work.array_bytes, fill=True, separate=True)),
        promises=("fill-full",) if work.values else (),
        quick=quick,
        memory_bytes=6 << 30,
    )


def _names(function: str, shape: tuple[int, ...], dtype: str) -> Names:
    def names(module: ModuleType) -> dict[str, Any]:
        kind = getattr(module, dtype) if module.__name__ == "torch" else dtype
        found = {"shape": shape, "dtype": kind, "value": _VALUE, "touch": touch}
        return {function: getattr(module, function), **found}

    return names


def _new() -> Iterator[Case]:
    for kind in ("full.float64", "full.float32", "full.complex128", "zeros.float64"):
        function, dtype = kind.split(".")
        filled = function == "full"
        shape = (*_SHAPE[:2], _SHAPE[2] * 8 // np.dtype(dtype).itemsize)
        # Without a write, the others' zeros are a promise of the system's.
        call = "full(shape, value, dtype=dtype)" if filled else "touch(zeros(shape, dtype=dtype))"
        written = "" if filled else " and a write to every page"
        title = f"{function} {'×'.join(map(str, shape))} {dtype}{written}, warm"
        work, names = Work(shape, dtype, _VALUE * filled), _names(function, shape, dtype)
        entries = (Entry(key, call, names) for key in ("gridbuf", "numpy", "torch"))
        yield _warm(kind, title, work, *entries, quick=kind == "full.float64")
    # A field as stencils want it, whose padding has zeros only.
    shape = (510, 512, 80)
    names, dense = uses("full", shape=shape, value=_VALUE), "rows without padding"
    yield _warm(
        "ifirst",
        "full 510×512×80 float64, gt:cpu_ifirst, warm",
        Work(shape, values=_VALUE, layout=(2, 1, 0)),
        Entry("gridbuf", "full(shape, value, backend='gt:cpu_ifirst')", names),
        Entry("numpy", "full(shape, value, order='F')", names, dense),
        note=f"{_WARM_NOTE} gridbuf pads the rows to lines and clears what they end with; NumPy's are dense.",
    )


CASES: tuple[Case, ...] = (*_fills(), *_new())
