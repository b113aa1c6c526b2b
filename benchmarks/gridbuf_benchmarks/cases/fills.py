"""Fills: one element to all of an array, into memory that is there, and into memory that was just asked for."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Work
from gridbuf_benchmarks.cases.allocation import touch
from gridbuf_benchmarks.cases.shared import fill_entries, fill_yardsticks, needed_bytes
from gridbuf_benchmarks.placement import Placement

__all__ = ["CASES"]

_NOTE = (
    "copyto(dst, element) into the same array for all, touched before. The memory's ratio is to the faster of memset in halves "
    "on two threads and torch.fill_, of as many contiguous bytes. gridbuf and PyTorch use their threads, NumPy has one."
)
_WARM_NOTE = (
    "A new array, its fill and its release, in a loop: what gridbuf keeps of the last one is warm. The memory's ratio is to "
    "memset in halves or torch.fill_ of memory that is there and touched: neither asks for any. Some processors write zeros "
    "faster than other bytes; memset writes others."
)
_SHAPE = (512, 512, 256)
_VALUE = 1.5
_DTYPES = {"uint8": 7.0, "float32": _VALUE, "float64": _VALUE, "complex128": _VALUE}

_PLACEMENTS = {
    "dense": ((0, 1, 2), "dense", 1),
    "padded": ((0, 1, 2), "lines", 1),
    "padded.turned": ((2, 1, 0), "lines", 1),
    "strided": ((0, 1, 2), "dense", 2),
}


def _in_place() -> Iterator[Case]:
    for dtype, value in _DTYPES.items():
        for name, (layout, rows, step) in _PLACEMENTS.items():
            target = Placement(dtype, layout, "lines" if rows == "lines" else "dense", step)
            shape = (*_SHAPE[:2], _SHAPE[2] * 8 // np.dtype(dtype).itemsize // step)
            work = Work(shape, dtype=dtype, values=value, target=target)
            work = Work(**{**vars(work), "bytes_moved": work.array_bytes})
            yield Case(
                id=f"fill/{dtype}/{name}",
                title=f"fill {'×'.join(map(str, shape))} {dtype}, {name.replace('.', ' and ')}",
                note=_NOTE,
                work=work,
                entries=fill_entries(work),
                yardsticks=fill_yardsticks(work.array_bytes),
                quick=dtype == "float32" and name == "padded",
                memory_bytes=needed_bytes(work),
            )


_RECORD = [("id", "<i4"), ("wind", "<f4", (3,)), ("pressure", "<f8")]


def _record(module: ModuleType) -> dict[str, Any]:
    dtype = np.dtype(_RECORD)
    element = np.zeros((), dtype)
    element["id"], element["wind"], element["pressure"] = 7, (1.0, 2.0, 3.0), 1e5
    return {
        "full": module.full,
        "shape": (512, 512, 32),
        "dtype": dtype,
        "element": element,
        "pressure": lambda array: array["pressure"],
    }


def _structured() -> Case:
    """Records of 24 bytes; what is compared afterwards is one of their fields."""
    return Case(
        id="fill/warm/record",
        title="full 512×512×32 of records of 24 bytes",
        note=_WARM_NOTE,
        work=Work((512, 512, 32), values=1e5, bytes_moved=24 * 512 * 512 * 32),
        entries=tuple(
            Entry(key, "pressure(full(shape, element, dtype=dtype))", _record)
            for key in ("gridbuf", "numpy")
        ),
        yardsticks=fill_yardsticks(24 * 512 * 512 * 32, own=True),
        quick=False,
        memory_bytes=4 << 30,
    )


def _names(function: str, shape: tuple[int, ...], dtype: str) -> Any:
    def names(module: ModuleType) -> dict[str, Any]:
        kind = getattr(module, dtype) if module.__name__ == "torch" else dtype
        return {
            function: getattr(module, function),
            "shape": shape,
            "dtype": kind,
            "value": _VALUE,
            "touch": touch,
        }

    return names


def _warm() -> Iterator[Case]:
    for function, dtype in (
        ("full", "float64"),
        ("full", "float32"),
        ("full", "complex128"),
        ("zeros", "float64"),
    ):
        shape = (*_SHAPE[:2], _SHAPE[2] * 8 // np.dtype(dtype).itemsize)
        call = f"{function}(shape{', value' if function == 'full' else ''}, dtype=dtype)"
        if function == "zeros":  # without a write, the others' zeros are a promise of the system's
            call = f"touch({call})"
        work = Work(shape, dtype=dtype, values=_VALUE if function == "full" else 0.0)
        work = Work(**{**vars(work), "bytes_moved": work.array_bytes})
        yield Case(
            id=f"fill/warm/{function}.{dtype}",
            title=f"{function} {'×'.join(map(str, shape))} {dtype}"
            + (" and a write to every page, warm" if function == "zeros" else ", warm"),
            note=_WARM_NOTE,
            work=work,
            entries=tuple(
                Entry(key, call, _names(function, shape, dtype))
                for key in ("gridbuf", "numpy", "torch")
            ),
            yardsticks=fill_yardsticks(work.array_bytes, own=True),
            promises=("fill-full",) if function == "full" else (),
            quick=(function, dtype) == ("full", "float64"),
            memory_bytes=6 << 30,
        )


def _padded_by_preset() -> Case:
    """A field as stencils want it, in whose padding nothing is to be found but zeros."""
    shape = (510, 512, 80)

    def names(module: ModuleType) -> dict[str, Any]:
        return {"full": module.full, "shape": shape, "value": _VALUE}

    work = Work(shape, values=_VALUE, layout=(2, 1, 0), bytes_moved=8 * 510 * 512 * 80)
    return Case(
        id="fill/warm/ifirst",
        title="full 510×512×80 float64, gt:cpu_ifirst, warm",
        note=f"{_WARM_NOTE} gridbuf pads the rows to lines and clears what they end with; NumPy's are dense.",
        work=work,
        entries=(
            Entry("gridbuf", "full(shape, value, backend='gt:cpu_ifirst')", names),
            Entry("numpy", "full(shape, value, order='F')", names, "rows without padding"),
        ),
        yardsticks=fill_yardsticks(work.array_bytes, own=True),
        promises=("fill-full",),
        quick=False,
        memory_bytes=4 << 30,
    )


CASES: tuple[Case, ...] = (*_in_place(), *_warm(), _structured(), _padded_by_preset())
