"""Copies so small that the call is what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks import memory
from gridbuf_benchmarks.case import Case, Entry, Work
from gridbuf_benchmarks.cases.shared import needed_bytes
from gridbuf_benchmarks.placement import Placement

__all__ = ["CASES"]

_NOTE = "One call of copyto(dst, src) with arrays of a few elements: finding out what they are takes longer than copying them."
_LOOP_NOTE = (
    "{count} copies in a loop of C, by the engine's own function, beside {count} calls of memcpy with as many bytes: what "
    "a copy in cache costs without Python. Source and target stay in the cache; and as in a model, which copies between the same "
    "layouts at every step, what the engine found out about them at the first copy is known at the next ones."
)
_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "scalar": ((), ()),
    "row": ((3,), (0,)),
    "square": ((8, 8), (0, 1)),
    "square.turned": ((8, 8), (1, 0)),
    "box.turned": ((2, 3, 4), (2, 1, 0)),
}


def _work(shape: tuple[int, ...], layout: tuple[int, ...], count: int = 0) -> Work:
    """`count` copies of a float64 array, or one whose speed is no bandwidth."""
    return Work(
        shape,
        values="source",
        layout=layout or None,
        bytes_moved=count * 2 * 8 * math.prod(shape) or None,
        source=Placement("float64", tuple(range(len(shape)))),
        target=Placement("float64", layout),
    )


def _arrays(work: Work) -> dict[str, Any]:
    assert work.source is not None and work.target is not None
    return {
        "src": memory.array("source", work.shape, work.source),
        "dst": memory.array("target", work.shape, work.target),
    }


def _tiny() -> Iterator[Case]:
    for name, (shape, layout) in _SHAPES.items():
        work = _work(shape, layout)

        def names(module: ModuleType, work: Work = work) -> dict[str, Any]:
            return {"copyto": module.copyto, **_arrays(work)}

        def tensors(module: ModuleType, work: Work = work) -> dict[str, Any]:
            arrays = _arrays(work)
            return {
                "src": module.from_numpy(arrays["src"]),
                "dst": module.from_numpy(arrays["dst"]),
                "view": arrays["dst"],
            }

        extents = "×".join(map(str, shape)) or "one element"
        yield Case(
            id=f"tiny/{name}",
            title=f"copyto {extents}" + (f" to {layout}" if "turned" in name else ""),
            note=_NOTE,
            work=work,
            entries=(
                Entry("gridbuf", "copyto(dst, src)", names, result="dst"),
                Entry("numpy", "copyto(dst, src)", names, result="dst"),
                Entry("torch", "dst.copy_(src)", tensors, result="view"),
            ),
            promises=("copyto-tiny",),
            memory_bytes=needed_bytes(work),
        )


_IN_CACHE = {"4KiB": 8, "32KiB": 16, "256KiB": 32}


def _loops() -> Iterator[Case]:
    for name, extent in _IN_CACHE.items():
        for layout in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            count = (1 << 20) // extent**3  # 8 MiB in all
            work = _work((extent,) * 3, layout, count)

            def own(_: ModuleType, work: Work = work) -> dict[str, Any]:
                from gridbuf_benchmarks import _loops as loops

                return {"copy_loop": loops.copy_loop, **_arrays(work)}

            def memcpy(module: ModuleType, work: Work = work) -> dict[str, Any]:
                arrays = _arrays(work)
                flat = {key: np.ravel(value, order="K") for key, value in arrays.items()}
                assert all(np.shares_memory(flat[key], arrays[key]) for key in flat)
                return {"memcpy_loop": module.memcpy_loop, **flat}

            yield Case(
                id=f"cache/{name}/{''.join(map(str, layout))}",
                title=f"in cache, {extent}³ float64 to ({', '.join(map(str, layout))})",
                note=_LOOP_NOTE.format(count=count),
                work=work,
                entries=(Entry("gridbuf", f"copy_loop(dst, src, {count})", own, result="dst"),),
                yardsticks=(
                    Entry(
                        "memcpy_loop",
                        f"memcpy_loop(dst, src, {count})",
                        memcpy,
                        result="(src, dst)",
                    ),
                ),
                promises=("copy-cache",),
                memory_bytes=needed_bytes(work),
                quick=name == "32KiB" and layout in ((0, 1, 2), (2, 1, 0)),
            )


CASES: tuple[Case, ...] = (*_tiny(), *_loops())
