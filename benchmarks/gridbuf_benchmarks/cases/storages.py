"""Storages: what their views and hand-overs cost beside those of plain arrays."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Work

__all__ = ["CASES"]

_SHAPE = (64, 64, 80)
_VALUE = 2.5
_INDEX_NOTE = (
    "A view, made and dropped. A storage's view carries the names of its dimensions, a halo and an aligned index along; "
    "NumPy's has none of them."
)
_EXPORT_NOTE = "No bytes are copied. The storage is one of the host, so there is nothing to bring up to date; it asks all the same."


def _names(module: ModuleType) -> dict[str, Any]:
    if module.__name__ == "gridbuf":
        from gridbuf.storage import full

        x = full(_SHAPE, _VALUE, halo=(3, 3, 0))
    else:
        x = module.full(_SHAPE, _VALUE)
    return {"x": x, "from_dlpack": np.from_dlpack, "inner": np.s_[3:-3, 3:-3, :]}


def _case(
    name: str, title: str, statement: str, note: str, shape: tuple[int, ...], promise: str
) -> Case:
    return Case(
        id=f"storage/{name}",
        title=title,
        note=note,
        work=Work(shape, values=_VALUE),
        entries=tuple(Entry(library, statement, _names) for library in ("gridbuf", "numpy")),
        promises=(promise,),
    )


CASES: tuple[Case, ...] = (
    _case("index/inner", "s[3:-3, 3:-3, :]", "x[inner]", _INDEX_NOTE, (58, 58, 80), "index"),
    _case("index/plane", "s[5]", "x[5]", _INDEX_NOTE, (64, 80), "index"),
    _case("memoryview", "memoryview(s)", "memoryview(x)", _EXPORT_NOTE, _SHAPE, "storage-export"),
    _case(
        "from_dlpack", "np.from_dlpack(s)", "from_dlpack(x)", _EXPORT_NOTE, _SHAPE, "storage-export"
    ),
)
