"""Copies that change the type of numbers on the way."""

from __future__ import annotations

from collections.abc import Iterator

from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.cases.copies import copy_case
from gridbuf_benchmarks.placement import Placement

__all__ = ["CASES"]

_NOTE = (
    "copyto(dst, src) between numbers of two types. The memory's ratio is to a contiguous copy that reads and writes as many "
    "bytes as the conversion does, in halves on two threads or by torch.copy_, whichever is faster."
)
_SHAPE = (400, 400, 400)
_PAIRS = (
    ("float64", "float32"),
    ("float32", "float64"),
    ("int32", "float64"),
    ("float16", "float32"),
)


def _cases() -> Iterator[Case]:
    for source, target in _PAIRS:
        for layout in ((0, 1, 2), (2, 1, 0)):
            promised = layout == (0, 1, 2) and {source, target} == {"float32", "float64"}
            yield copy_case(
                f"cast/{source}.{target}.{''.join(map(str, layout))}",
                _SHAPE,
                Placement(target, layout),
                source=Placement(source, (0, 1, 2)),
                promises=("copy-numpy", *(("cast",) if promised else ())),
                quick=promised,
                note=_NOTE,
            )


CASES: tuple[Case, ...] = tuple(_cases())
