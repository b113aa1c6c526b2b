"""Allocation: the cost of one call (small arrays) and of the pages (large arrays)."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from gridbuf_benchmarks.case import Case, Entry, Names, Work, uses, view_of

_SMALL = (8, 8, 8)
_MEDIUM = (64, 64, 80)
_LARGE = {"64MiB": (128, 256, 256), "256MiB": (512, 256, 256)}
_GIBIBYTE = (512, 512, 512)
_FILL = 1.5
_VALUES = {"empty": None, "zeros": 0.0, "ones": 1.0, "full": _FILL}

_SMALL_NOTE = (
    "One call and the release of its result; every library is told float64 and C order. "
    "Each has just freed a block of this size, so all take the fastest way of their allocators. "
    "GT4Py is asked for its preset 'numpy'."
)
_TORCH_FILL = "PyTorch fills with all its threads; the others use one."
_LARGE_NOTE = (
    "Allocation, then the first write to every 4 KiB page (or the fill itself), then the release: memory "
    "that is not touched costs nothing and compares nothing. The touch is the same NumPy loop for all. "
    "Whether the kernel provides huge pages decides this row: see the policy in the header."
)
_WARM_NOTE = (
    "Warm: allocation, the write and the release in a loop; every library has just freed a block of this size. "
    "The write is the same NumPy statement for all."
)
_COLD_NOTE = (
    "Cold: the first call of a fresh process, a new one for every sample. Where the hypervisor took memory back, "
    "getting it again is part of the sample. The write is the same NumPy statement for all."
)


def touch(result: Any) -> npt.NDArray[Any]:
    """Writes one element of every page of a contiguous result: the kernel commits it."""
    view = view_of(result)
    view.reshape(-1)[:: 4096 // 8] = 0.0
    return view


def write_all(result: Any) -> npt.NDArray[Any]:
    """Writes every element, by one NumPy assignment."""
    view = view_of(result)
    view[...] = _FILL
    return view


def _entries(function: str, shape: tuple[int, ...], around: str = "{}") -> tuple[Entry, ...]:
    """One of empty, zeros, ones, full in all libraries; `around` uses the result."""
    value = ", value" if function == "full" else ""
    further = {"torch": ", dtype=float64", "gt4py": ", backend='numpy'"}
    names = {"shape": shape, "value": _FILL, "touch": touch, "write_all": write_all}
    return tuple(
        Entry(
            library,
            around.format(f"{function}(shape{value}{further.get(library, '')})"),
            uses(function, *(["float64"] if library == "torch" else []), **names),
        )
        for library in ("gridbuf", "numpy", "torch", "gt4py")
        # GT4Py's sizes wrap at 32 bits for the largest shape.
        if (library, shape) != ("gt4py", _GIBIBYTE)
    )


_CREATE = ("create-numpy", "create-torch", "create-gt4py")


def _plain() -> Iterator[Case]:
    for size, shape, note in (
        ("small", _SMALL, _SMALL_NOTE),
        (
            "medium",
            _MEDIUM,
            f"{_SMALL_NOTE} 2.5 MiB: below every library's huge-page threshold. {_TORCH_FILL}",
        ),
    ):
        for function, values in _VALUES.items():
            yield Case(
                id=f"allocate/{size}/{function}",
                title=f"{function} {'×'.join(map(str, shape))}",
                note=note,
                work=Work(shape, values=values),
                entries=_entries(function, shape),
                promises=_CREATE if (size, function) == ("small", "empty") else (),
            )
    yield Case(
        id="allocate/small/allocate",
        title="gridbuf.allocate 8×8×8",
        note="A gridbuf.Buffer (memory, layout plan, dims, exports) against the peers' empty arrays.",
        work=Work(_SMALL),
        entries=(
            Entry("gridbuf", "allocate(shape)", uses("allocate", shape=_SMALL)),
            *_entries("empty", _SMALL)[1:],
        ),
    )


_LIKE_NOTE = "The result has the shape and layout of an array of its library."
_STORAGE_NOTE = (
    "A storage has names of dimensions, a halo and two sides; NumPy's array has none of them."
)


def _makers(storage: bool) -> Names:
    """The functions that make arrays, or storages, and an array or a storage for those that end in `_like`."""

    def names(module: ModuleType) -> dict[str, Any]:
        if storage and module.__name__ == "gridbuf":
            import gridbuf.storage

            module = gridbuf.storage
        functions = {name: getattr(module, name) for name in _VALUES}
        like = {f"{name}_like": getattr(module, f"{name}_like") for name in _VALUES}
        return {**functions, **like, "shape": _SMALL, "x": module.empty(_SMALL), "value": _FILL}

    return names


def _further() -> Iterator[Case]:
    """Small arrays like another one, and small storages."""
    for kind, suffix, first in (
        ("small", "_like", "x"),
        ("storage", "", "shape"),
        ("storage", "_like", "x"),
    ):
        note = f"{_LIKE_NOTE if suffix else ''} {_STORAGE_NOTE if kind == 'storage' else ''}"
        for name, values in _VALUES.items():
            statement = f"{name}{suffix}({first}{', value' if name == 'full' else ''})"
            promised = (kind, name, suffix) == ("storage", "empty", "")
            yield Case(
                id=f"allocate/{kind}/{name}{suffix}",
                title=f"{'storage.' if kind == 'storage' else ''}{name}{suffix} 8×8×8",
                note=note.strip(),
                work=Work(_SMALL, values=values),
                entries=(
                    *(
                        Entry(library, statement, _makers(kind == "storage"))
                        for library in ("gridbuf", "numpy")
                    ),
                    *(_entries("empty", _SMALL)[2:] if promised else ()),
                ),
                promises=_CREATE if promised else (),
            )


def _large() -> Iterator[Case]:
    for size, shape in _LARGE.items():
        for function in ("empty", "zeros", "full"):
            touched = function != "full"  # full writes every page anyway
            yield Case(
                id=f"allocate/{size}/{function}",
                title=f"{function} {size[:-3]} MiB{' + first touch' if touched else ''}",
                note=_LARGE_NOTE if touched else f"{_LARGE_NOTE} {_TORCH_FILL}",
                work=Work(shape, values=_VALUES[function]),
                entries=_entries(function, shape, "touch({})" if touched else "{}"),
                quick=size == "64MiB",
            )
    for cold in (False, True):
        for name, title, around, values in (
            ("zeros", "zeros {} + a write to every page", "touch({})", 0.0),
            ("zeros-all", "zeros {} + a write to every element", "write_all({})", _FILL),
            ("full", "full {}", "{}", _FILL),
        ):
            function = name.partition("-")[0]
            promised = f"{function}-{'cold' if cold else 'large'}"
            for size, shape in {**_LARGE, "1GiB": _GIBIBYTE}.items():
                if size != "1GiB" and name != "zeros-all":
                    continue
                yield Case(
                    id=f"allocate/{size}{'-cold' if cold else ''}/{name}",
                    title=title.format(f"{size[:-3]} {size[-3:]}") + (", cold" if cold else ""),
                    note=_COLD_NOTE if cold else _WARM_NOTE,
                    work=Work(shape, values=values),
                    entries=_entries(function, shape, around),
                    quick=False,
                    promises=(promised,) if size == "1GiB" and promised != "full-cold" else (),
                    fresh_process=cold,
                )


def _aligned_by_hand(
    shape: tuple[int, int, int], alignment_bytes: int, aligned_index: tuple[int, int, int]
) -> npt.NDArray[np.float64]:
    """What users of NumPy write: over-allocate bytes, skip to the alignment, view, drop the padding.

    First dimension contiguous and padded, as `gt:cpu_ifirst` has it.
    """
    multiple = alignment_bytes // 8
    padded = -(-shape[0] // multiple) * multiple
    count = padded * shape[1] * shape[2]
    raw = np.empty(count * 8 + alignment_bytes, dtype=np.uint8)
    start = raw.ctypes.data + 8 * aligned_index[0]
    skip = -start % alignment_bytes
    flat = raw[skip : skip + count * 8].view(np.float64)
    return flat.reshape((padded, shape[1], shape[2]), order="F")[: shape[0]]


def _gt4py_allocator() -> dict[str, Any]:
    from gt4py.storage.cartesian.utils import allocate_cpu

    return {"allocate_cpu": allocate_cpu, "float64": np.dtype(np.float64)}


def _aligned() -> Iterator[Case]:
    index = (3, 3, 0)
    for size, shape in (("small", _SMALL), ("medium", _MEDIUM)):
        names = {"shape": shape, "index": index, "layout": (2, 1, 0)}
        call = "empty(shape, backend='gt:cpu_ifirst', aligned_index=index)"
        yield Case(
            id=f"allocate/preset/{size}",
            title=f"gt:cpu_ifirst {'×'.join(map(str, shape))}",
            note=(
                "The same call with the preset gt:cpu_ifirst, aligned at the first interior point of a halo of 3. "
                "gridbuf aligns to 64 bytes and pads the rows as GridTools does; GT4Py's CPU presets align to one "
                "element and pad nothing, so gridbuf does more here. NumPy knows no presets: Fortran order."
            ),
            work=Work(shape, layout=(2, 1, 0)),
            entries=(
                Entry("gridbuf", call, uses("empty", **names)),
                Entry("numpy", "empty(shape, order='F')", uses("empty", **names), "no alignment"),
                Entry("gt4py", call, uses("empty", **names), "aligned to one element only"),
            ),
        )
        internal = uses(make=_gt4py_allocator, **names)
        by_hand = uses(aligned_by_hand=_aligned_by_hand, **names)
        ours = "empty(shape, layout=layout, alignment_size=64, aligned_index=index)"
        theirs = "allocate_cpu(shape, layout, float64, 64, index)[1]"
        yield Case(
            id=f"allocate/aligned/{size}",
            title=f"aligned to 64 B {'×'.join(map(str, shape))}",
            note=(
                "The same memory for all: first dimension contiguous, its rows padded, the element (3, 3, 0) on a "
                "64-byte border. NumPy has no such call: its entry is the recipe its users write by hand, without any "
                "checks. GT4Py's is the allocator below its presets, which is not part of its public interface."
            ),
            work=Work(shape, layout=(2, 1, 0), alignment_bytes=64, aligned_index=index),
            entries=(
                Entry("gridbuf", ours, uses("empty", **names)),
                Entry("numpy", "aligned_by_hand(shape, 64, index)", by_hand, "written by hand"),
                Entry("gt4py", theirs, internal, "internal function"),
            ),
        )


CASES: tuple[Case, ...] = (*_plain(), *_further(), *_aligned(), *_large())
