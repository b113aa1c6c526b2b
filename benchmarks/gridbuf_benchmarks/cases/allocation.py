"""Allocation: from the cost of one call (small) to the cost of the pages (large)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from gridbuf_benchmarks.case import Case, Entry, Work
from gridbuf_benchmarks.work import view_of

__all__ = ["CASES"]

_SMALL = (8, 8, 8)
_MEDIUM = (64, 64, 80)
_LARGE = {"64MiB": (128, 256, 256), "256MiB": (512, 256, 256)}
_FILL = 1.5
_PAGE_ELEMENTS = 4096 // 8

_SMALL_NOTE = (
    "One call and the release of its result; every library is told float64 and C order. "
    "Each has just freed a block of this size, so all take the fastest way of their allocators. "
    "GT4Py is asked for its preset 'numpy'."
)
_LARGE_NOTE = (
    "Allocation, then the first write to every 4 KiB page (or the fill itself), then the release: memory "
    "that nobody touches costs nothing and compares nothing. The touch is the same NumPy loop for all. "
    "Whether the kernel hands out huge pages decides this row: see the policy in the header."
)
_TORCH_FILL = "PyTorch fills with all its threads; the others use one."


def touch(result: Any) -> npt.NDArray[Any]:
    """Writes one element of every page of a contiguous result, which makes the kernel commit it."""
    view = view_of(result)
    view.reshape(-1)[::_PAGE_ELEMENTS] = 0.0
    return view


def write_all(result: Any) -> npt.NDArray[Any]:
    """Writes every element, by one NumPy assignment."""
    view = view_of(result)
    view[...] = _FILL
    return view


def _call(function: str, shape: tuple[int, ...]) -> Mapping[str, Entry]:
    """The entries of one of empty, zeros, ones, full, for all libraries and without keywords but the needed."""
    value = ", value" if function == "full" else ""

    def plain(module: ModuleType) -> dict[str, Any]:
        return {
            function: getattr(module, function),
            "shape": shape,
            "value": _FILL,
            "touch": touch,
            "write_all": write_all,
        }

    def torch(module: ModuleType) -> dict[str, Any]:
        return {**plain(module), "float64": module.float64}

    return {
        "gridbuf": Entry("gridbuf", f"{function}(shape{value})", plain),
        "numpy": Entry("numpy", f"{function}(shape{value})", plain),
        "torch": Entry("torch", f"{function}(shape{value}, dtype=float64)", torch),
        "gt4py": Entry("gt4py", f"{function}(shape{value}, backend='numpy')", plain),
    }


_VALUES = {"empty": None, "zeros": 0.0, "ones": 1.0, "full": _FILL}


def _plain_cases(size: str, shape: tuple[int, ...], note: str) -> Iterator[Case]:
    for function, values in _VALUES.items():
        yield Case(
            id=f"allocate/{size}/{function}",
            title=f"{function} {'×'.join(map(str, shape))}",
            note=note,
            work=Work(shape, values=values),
            entries=tuple(_call(function, shape).values()),
            promises=("allocate-small",) if (size, function) == ("small", "empty") else (),
        )


def _buffer_case() -> Case:
    def allocate(gridbuf: ModuleType) -> dict[str, Any]:
        return {"allocate": gridbuf.allocate, "shape": _SMALL}

    return Case(
        id="allocate/small/allocate",
        title="gridbuf.allocate 8×8×8",
        note="A gridbuf.Buffer (memory, layout plan, dims, exports) against the peers' empty arrays.",
        work=Work(_SMALL),
        entries=(
            Entry("gridbuf", "allocate(shape)", allocate),
            *(entry for key, entry in _call("empty", _SMALL).items() if key != "gridbuf"),
        ),
    )


def _large_cases() -> Iterator[Case]:
    for size, shape in _LARGE.items():
        for function, values in _VALUES.items():
            if function == "ones":
                continue
            touched = function != "full"  # full writes every page by itself
            yield Case(
                id=f"allocate/{size}/{function}",
                title=f"{function} {size.removesuffix('MiB')} MiB"
                + (" + first touch" if touched else ""),
                note=_LARGE_NOTE if touched else f"{_LARGE_NOTE} {_TORCH_FILL}",
                work=Work(shape, values=values),
                entries=tuple(
                    Entry(
                        key,
                        f"touch({entry.statement})" if touched else entry.statement,
                        entry.names,
                    )
                    for key, entry in _call(function, shape).items()
                ),
                quick=size == "64MiB",
            )


_GIBIBYTE = (512, 512, 512)
_GIBIBYTE_NOTES = {
    False: "Warm: allocation, the write and the release in a loop; every library has just freed a block of this size.",
    True: "Cold: the first call of a fresh process, a new one for every sample. Where the hypervisor took memory back, "
    "getting it again is part of the sample.",
}
# What follows the allocation: (id, title, statement around the call, values, promise warm, promise cold).
_GIBIBYTE_WORK = (
    ("zeros", "zeros 1 GiB + a write to every page", "touch({})", 0.0, "zeros-large", "zeros-cold"),
    (
        "zeros-all",
        "zeros 1 GiB + a write to every element",
        "write_all({})",
        _FILL,
        "zeros-large",
        "zeros-cold",
    ),
    ("full", "full 1 GiB", "{}", _FILL, "full-large", None),
)


def _gibibyte_cases() -> Iterator[Case]:
    for fresh_process, note in _GIBIBYTE_NOTES.items():
        for name, title, statement, values, warm, cold in _GIBIBYTE_WORK:
            promise = cold if fresh_process else warm
            yield Case(
                id=f"allocate/1GiB{'-cold' if fresh_process else ''}/{name}",
                title=title + (", cold" if fresh_process else ""),
                note=f"{note} The write is the same NumPy statement for all.",
                work=Work(_GIBIBYTE, values=values),
                entries=tuple(
                    Entry(key, statement.format(entry.statement), entry.names)
                    for key, entry in _call(name.partition("-")[0], _GIBIBYTE).items()
                    if key != "gt4py"  # wraps at 32 bits for this length
                ),
                quick=False,
                promises=() if promise is None else (promise,),
                fresh_process=fresh_process,
            )


def _aligned_by_hand(
    shape: tuple[int, int, int], alignment_bytes: int, aligned_index: tuple[int, int, int]
) -> npt.NDArray[np.float64]:
    """The recipe NumPy users write: over-allocate bytes, skip to the alignment, view, drop the padding.

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


_HALO_INDEX = (3, 3, 0)


def _preset_case(size: str, shape: tuple[int, int, int]) -> Case:
    def names(module: ModuleType) -> dict[str, Any]:
        return {"empty": module.empty, "shape": shape, "index": _HALO_INDEX}

    call = "empty(shape, backend='gt:cpu_ifirst', aligned_index=index)"
    return Case(
        id=f"allocate/preset/{size}",
        title=f"gt:cpu_ifirst {'×'.join(map(str, shape))}",
        note=(
            "The same call with the preset gt:cpu_ifirst, aligned at the first interior point of a halo of 3. "
            "gridbuf aligns to 64 bytes and pads the rows as GridTools does; GT4Py's CPU presets align to one "
            "element and pad nothing, so gridbuf does more here. NumPy knows no presets: Fortran order."
        ),
        work=Work(shape, layout=(2, 1, 0)),
        entries=(
            Entry("gridbuf", call, names),
            Entry("numpy", "empty(shape, order='F')", names, "no alignment"),
            Entry("gt4py", call, names, "aligned to one element only"),
        ),
    )


def _alignment_case(size: str, shape: tuple[int, int, int]) -> Case:
    def gridbuf(module: ModuleType) -> dict[str, Any]:
        return {"empty": module.empty, "shape": shape, "layout": (2, 1, 0), "index": _HALO_INDEX}

    def numpy(_: ModuleType) -> dict[str, Any]:
        return {"aligned_by_hand": _aligned_by_hand, "shape": shape, "index": _HALO_INDEX}

    def gt4py(_: ModuleType) -> dict[str, Any]:
        from gt4py.storage.cartesian.utils import allocate_cpu

        return {
            "allocate_cpu": allocate_cpu,
            "shape": shape,
            "layout": (2, 1, 0),
            "float64": np.dtype(np.float64),
            "index": _HALO_INDEX,
        }

    return Case(
        id=f"allocate/aligned/{size}",
        title=f"aligned to 64 B {'×'.join(map(str, shape))}",
        note=(
            "The same memory for all: first dimension contiguous, its rows padded, the element (3, 3, 0) on a "
            "64-byte border. NumPy has no such call: its entry is the recipe its users write by hand, without any "
            "checks. GT4Py's is the allocator below its presets, which is not part of its public interface."
        ),
        work=Work(shape, layout=(2, 1, 0), alignment_bytes=64, aligned_index=_HALO_INDEX),
        entries=(
            Entry(
                "gridbuf",
                "empty(shape, layout=layout, alignment_size=64, aligned_index=index)",
                gridbuf,
            ),
            Entry("numpy", "aligned_by_hand(shape, 64, index)", numpy, "written by hand"),
            Entry(
                "gt4py",
                "allocate_cpu(shape, layout, float64, 64, index)[1]",
                gt4py,
                "internal function",
            ),
        ),
    )


CASES: tuple[Case, ...] = (
    *_plain_cases("small", _SMALL, _SMALL_NOTE),
    _buffer_case(),
    *_plain_cases(
        "medium",
        _MEDIUM,
        f"{_SMALL_NOTE} 2.5 MiB: below every library's huge-page threshold. {_TORCH_FILL}",
    ),
    _preset_case("small", _SMALL),
    _preset_case("medium", _MEDIUM),
    _alignment_case("small", _SMALL),
    _alignment_case("medium", _MEDIUM),
    *_large_cases(),
    *_gibibyte_cases(),
)
