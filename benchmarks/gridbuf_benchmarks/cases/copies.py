"""Copies between layouts: every 3-d permutation, some of more dimensions, over item sizes, shapes and paddings.

The source lies in C order. The target has the layout map that the case names, dense or with padded rows, and both
lie in memory that all contenders share. What the memory could do is measured beside each: see `shared`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Literal

import numpy as np

from gridbuf_benchmarks.case import Case, Work
from gridbuf_benchmarks.cases.shared import copy_entries, copy_yardsticks, needed_bytes
from gridbuf_benchmarks.placement import LINE_BYTES, Placement

__all__ = ["CASES", "KINDS", "copy_case"]

_NOTE = (
    "copyto(dst, src) between the same two arrays for all, touched before; the source in C order. The memory's ratio is to "
    "the faster of two copies of as many contiguous bytes: memcpy in halves on two threads, and torch.copy_ of flat arrays "
    "(memcpy on one thread up to 8 MiB). gridbuf and PyTorch use their threads, NumPy has one."
)

DTYPES = {1: "uint8", 2: "int16", 4: "float32", 8: "float64", 16: "complex128"}

KINDS: dict[str, dict[int, tuple[int, ...]]] = {
    # Rows of whole lines whichever dimension they are, no power of two.
    "lines": {1: (448, 384, 448), 2: (352,) * 3, 4: (304,) * 3, 8: (504,) * 3, 16: (204,) * 3},
    "pow2": {
        1: (512, 256, 512),
        2: (512, 256, 256),
        4: (512, 256, 512),
        8: (512,) * 3,
        16: (256, 128, 256),
    },
    "odd": {
        1: (447, 383, 445),
        2: (351, 349, 347),
        4: (303, 301, 299),
        8: (511, 509, 507),
        16: (203, 205, 201),
    },
    # What stencils compute on: wide, and few levels.
    "stencil": {
        1: (1024, 1024, 80),
        2: (1024, 512, 80),
        4: (512, 512, 80),
        8: (512, 512, 80),
        16: (512, 512, 80),
    },
    "tall": {
        1: (64, 64, 16384),
        2: (64, 64, 8192),
        4: (64, 64, 4096),
        8: (64, 64, 4096),
        16: (64, 64, 2048),
    },
}
"""Shapes of 64 MiB and more by kind and by bytes of an element."""

_LAYOUTS = tuple(permutations(range(3)))
_Rows = Literal["dense", "lines"]


def _promises(kind: str, target: Placement, large: bool) -> tuple[str, ...]:
    """What a copy bears on: all against NumPy, large ones that move the contiguous dimension against memory."""
    found = ["copy-numpy"]
    size = target.itemsize_bytes
    if large and not target.keeps_order:
        whole_lines = target.rows == "lines" or (kind == "lines" and not target.offset_bytes)
        if size == 2:
            found.append("copy-2")
        elif size in (4, 8):
            found.append(f"copy-{size}-{'lines' if whole_lines else 'other'}")
    return tuple(found)


def copy_case(
    id: str,
    shape: tuple[int, ...],
    target: Placement,
    *,
    source: Placement | None = None,
    promises: tuple[str, ...],
    quick: bool = False,
    note: str = _NOTE,
) -> Case:
    """A copy from C order, or from `source`, into `target`."""
    placed = source or Placement(target.dtype, tuple(range(len(shape))))
    moved = math.prod(shape) * (target.itemsize_bytes + placed.itemsize_bytes)
    work = Work(
        shape,
        dtype=target.dtype,
        values="source",
        layout=target.layout,
        bytes_moved=moved,
        source=placed,
        target=target,
    )
    return Case(
        id=id,
        title=_title(shape, placed, target),
        note=note,
        work=work,
        entries=copy_entries(work),
        yardsticks=copy_yardsticks(moved),
        promises=promises,
        quick=quick,
        memory_bytes=needed_bytes(work),
    )


def _title(shape: tuple[int, ...], source: Placement, target: Placement) -> str:
    extents = (
        "×".join(map(str, shape)) if len(set(shape)) > 1 else f"{shape[0]}" + _power(len(shape))
    )
    words = [extents, target.dtype, "to", f"({', '.join(map(str, target.layout))})"]
    if source.dtype != target.dtype:
        words[1] = f"{source.dtype} as {target.dtype}"
    if target.rows == "lines":
        words.append("padded" if source.rows == "dense" else "padded on both sides")
    if target.offset_bytes:
        words.append(f"{target.offset_bytes} bytes off a line")
    return " ".join(words)


def _power(ndim: int) -> str:
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(ndim))


_QUICK = {
    ("stencil", 8, "dense", (2, 1, 0)),
    ("stencil", 8, "lines", (2, 1, 0)),
    ("stencil", 8, "dense", (0, 2, 1)),
    ("stencil", 4, "dense", (2, 1, 0)),
}
"""A few of the matrix; those of --quick are arrays of 80 and 160 MiB."""


def _matrix() -> Iterator[Case]:
    for size, dtype in DTYPES.items():
        for kind, shapes in KINDS.items():
            for rows in _rows(kind, size):
                for layout in _LAYOUTS:
                    target = Placement(dtype, layout, rows)
                    name = "".join(map(str, layout))
                    promises = _promises(kind, target, large=True)
                    if (kind, size, rows, layout) == ("pow2", 8, "dense", (2, 1, 0)):
                        promises += ("reversed-numpy", "reversed-torch")
                    yield copy_case(
                        f"copy/{size}/{kind}.{rows}/{name}",
                        shapes[size],
                        target,
                        promises=promises,
                        quick=(kind, size, rows, layout) in _QUICK,
                    )


def _rows(kind: str, size: int) -> tuple[_Rows, ...]:
    """Rows of whole lines are not padded once more; of the less usual items, only some shapes are padded."""
    padded = kind in ("pow2", "odd") or (kind != "lines" and size in (4, 8))
    return ("dense", "lines") if padded else ("dense",)


def _unaligned() -> Iterator[Case]:
    """Where large arrays of NumPy's begin: 16 bytes behind a border of pages."""
    for size in (4, 8):
        for layout in _LAYOUTS[1:]:
            target = Placement(DTYPES[size], layout, offset_bytes=16)
            name = "".join(map(str, layout))
            yield copy_case(
                f"copy/{size}/lines.off/{name}",
                KINDS["lines"][size],
                target,
                promises=_promises("lines", target, large=True),
            )


_MORE = {
    (52, 50, 48, 72): ((3, 2, 1, 0), (0, 1, 3, 2), (0, 3, 2, 1), (2, 3, 0, 1), (1, 0, 2, 3)),
    (64, 64, 64, 64): ((3, 2, 1, 0), (0, 3, 2, 1), (2, 3, 0, 1)),
    (24, 20, 28, 26, 32): (
        (4, 3, 2, 1, 0),
        (0, 1, 2, 4, 3),
        (2, 3, 4, 0, 1),
        (0, 4, 1, 3, 2),
    ),
}


def _more_dimensions() -> Iterator[Case]:
    for size in (4, 8):
        for shape, layouts in _MORE.items():
            for layout in layouts:
                # Half the item size, twice the first extent: as many bytes.
                extents = (shape[0] * 8 // size, *shape[1:])
                target = Placement(DTYPES[size], layout)
                kind = "pow2" if len(set(shape)) == 1 else "odd"
                name = "".join(map(str, layout))
                yield copy_case(
                    f"copy/{size}/{len(shape)}d.{'pow2' if kind == 'pow2' else 'mixed'}/{name}",
                    extents,
                    target,
                    promises=_promises(kind, target, large=True),
                )


_SMALL_EXTENTS = {"4KiB": 8, "32KiB": 16, "256KiB": 32, "2MiB": 64, "16MiB": 128}


def _small() -> Iterator[Case]:
    for size in (8, 4, 1):
        for name, extent in _SMALL_EXTENTS.items():
            for layout in _LAYOUTS if size == 8 else ((0, 1, 2), (0, 2, 1), (2, 1, 0)):
                shape = (extent, extent, extent * 8 // size)
                target = Placement(DTYPES[size], layout)
                yield copy_case(
                    f"copy/{size}/{name}/{''.join(map(str, layout))}",
                    shape,
                    target,
                    promises=("copy-numpy",),
                    quick=size == 8
                    and name in ("4KiB", "256KiB")
                    and layout in ((0, 1, 2), (2, 1, 0)),
                )


_PADDED_NOTE = f"{_NOTE} Source and target have the same layout; the rows of both are padded."


def _same_layout() -> Iterator[Case]:
    """Both sides padded alike, in C order and reversed."""
    for size, layout, quick in ((8, (0, 1, 2), True), (8, (2, 1, 0), False), (4, (0, 1, 2), False)):
        placement = Placement(DTYPES[size], layout, "lines")
        for kind in ("pow2", "stencil"):
            yield copy_case(
                f"copy/{size}/same.{kind}/{''.join(map(str, layout))}",
                KINDS[kind][size],
                placement,
                source=placement,
                promises=("copy-numpy", "copy-padded"),
                quick=quick and kind == "stencil",
                note=_PADDED_NOTE,
            )


assert all(
    extent * size % LINE_BYTES == 0
    for size, extents in KINDS["lines"].items()
    for extent in extents
), "rows of whole lines"
assert all(np.dtype(name).itemsize == size for size, name in DTYPES.items())

CASES: tuple[Case, ...] = (
    *_matrix(),
    *_unaligned(),
    *_more_dimensions(),
    *_same_layout(),
    *_small(),
)
