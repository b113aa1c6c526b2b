"""What a call of a stencil costs before and after it computes: `gridbuf.stencil` beside a call of GT4Py's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Names, Work
from gridbuf_benchmarks.kernels import FIVE, five

__all__ = ["CASES"]

_SHAPE = (4, 4, 4)
_BACKEND = "gt:cpu_kfirst"
_NOTE = (
    "A call with five fields of 4³ elements, 1 everywhere; the same objects for both. gridbuf's stencil is a Python function that "
    "does nothing, so all of its time is the call's. GT4Py's is a compiled stencil, whose 64 points take about a microsecond of it; "
    "it keeps its checks by shapes and origins, and gridbuf makes its own at every call. "
)
_WRAPPED_NOTE = (
    "The same compiled stencil of GT4Py with five fields of 4³ elements, called by gridbuf.stencil, which makes its own checks "
    "at every call and then runs it with GT4Py's freeze, and by itself. Both include what is below a microsecond of computing."
)


def _fields(make: Callable[[], Any]) -> list[Any]:
    return [make() for _ in FIVE]


def _ndarrays() -> list[Any]:
    return _fields(lambda: np.ones(_SHAPE))


def _storages() -> list[Any]:
    from gridbuf.storage import ones

    return _fields(lambda: ones(_SHAPE, defaults=_BACKEND))


def _nothing(fields: Callable[[], list[Any]]) -> Names:
    def names(module: ModuleType) -> dict[str, Any]:
        kind = module.Field[np.float64]

        def nothing(a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
            """Computes nothing."""

        nothing.__annotations__ = dict.fromkeys(FIVE, kind)
        called = module.stencil(nothing, backend=_BACKEND, writes=FIVE[-1])
        return {"call": called, "fields": fields(), "asarray": np.asarray}

    return names


def _wrapped(fields: Callable[[], list[Any]]) -> Names:
    def names(module: ModuleType) -> dict[str, Any]:
        return {
            "call": module.stencil(five(_BACKEND)),
            "fields": fields(),
            "asarray": np.asarray,
        }

    return names


def _gt4py(fields: Callable[[], list[Any]]) -> Names:
    def names(_: ModuleType) -> dict[str, Any]:
        return {"call": five(_BACKEND), "fields": fields(), "asarray": np.asarray}

    return names


def _case(
    name: str, title: str, ours: Names, theirs: Names, note: str, promises: tuple[str, ...]
) -> Case:
    return Case(
        id=f"call/{name}",
        title=title,
        note=note,
        work=Work(_SHAPE, values=1.0),
        entries=tuple(
            Entry(library, "call(*fields)", names, result="asarray(fields[-1])")
            for library, names in (("gridbuf", ours), ("gt4py", theirs))
        ),
        promises=promises,
        consumer="gt4py",
    )


def _cases() -> Iterator[Case]:
    kinds = {"ndarrays": _ndarrays, "storages": _storages}
    for kind, fields in kinds.items():
        yield _case(
            f"empty/{kind}",
            f"a call with five {kind}",
            _nothing(fields),
            _gt4py(fields),
            _NOTE,
            ("call",),
        )
    for kind, fields in kinds.items():
        yield _case(
            f"compiled/{kind}",
            f"GT4Py's stencil called with five {kind}",
            _wrapped(fields),
            _gt4py(fields),
            _WRAPPED_NOTE,
            (),
        )


CASES: tuple[Case, ...] = tuple(_cases())
