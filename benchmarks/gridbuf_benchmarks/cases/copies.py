"""Copies: the matrix of layouts, grid sizes, conversions, growing sizes, a few elements, in cache from C, and into new arrays.

The source is in C order, except where both sides have the same layout. The target has the layout map that the case names,
dense or with padded rows. Both are in the memory that all contenders share, and a copy of as many bytes is measured
next to each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks import memory
from gridbuf_benchmarks.case import Case, Entry, Work, uses
from gridbuf_benchmarks.memory import Placement

Layout = tuple[int, ...]

_NOTE = (
    "copyto(dst, src) between the same two arrays for all, touched before; the source in C order. The memory's ratio is to "
    "the fastest of copies of as many contiguous bytes: memcpy in halves on two threads, and torch.copy_ of flat arrays "
    "(memcpy on one thread up to 8 MiB and at grid sizes). gridbuf and PyTorch use their threads, NumPy has one."
)


# What copies and fills share


def needed_bytes(work: Work) -> int:
    """The memory of both blocks, and a gibibyte more."""
    spans = [one.span_bytes(work.shape) for one in work.placements]
    return len(spans) * max(spans) + (1 << 30)


def arrays(work: Work) -> dict[str, Any]:
    """`src` and `dst`, as NumPy arrays, where the work has them."""
    # With room for the yardsticks: a block that grows later is another block.
    spans = [one.span_bytes(work.shape) for one in work.placements]
    size_bytes = max([*spans, (work.bytes_moved or 0) // len(spans)])
    memory.block("target", size_bytes)
    found = {}
    if work.source is not None:
        memory.block("source", size_bytes)
        if work.source.dtype != work.dtype:
            memory.write_numbers(work.source.dtype, work.source.span_bytes(work.shape))
        found["src"] = memory.array("source", work.shape, work.source)
    if work.target is not None:
        found["dst"] = memory.array("target", work.shape, work.target)
    return found


def in_shared_memory(work: Work, element: Any = None) -> tuple[Entry, ...]:
    """Entries that copy `src`, or fill with the element, between the shared blocks."""

    def tensors(module: ModuleType) -> dict[str, Any]:
        found = arrays(work)
        return {key: module.from_numpy(one) for key, one in found.items()} | {"view": found["dst"]}

    own = uses("copyto", make=partial(arrays, work), element=element)
    copyto = f"copyto(dst, {'src' if element is None else 'element'})"
    torch = "dst.copy_(src)" if element is None else f"dst.fill_({element.item()})"
    return (
        Entry("gridbuf", copyto, own, result="dst"),
        Entry("numpy", copyto, own, result="dst"),
        Entry("torch", torch, tensors, result="view"),
    )


def _by_hptt(work: Work) -> Entry:
    """HPTT's copy between two dense arrays in C order: the target's dimensions sorted by rank. It plans each call, as the others do."""

    def names(module: ModuleType) -> dict[str, Any]:
        found = arrays(work)
        # It multiplies by one, which changes the bits of a not-a-number.
        memory.write_numbers(work.dtype, found["src"].nbytes)
        by_rank = tuple(map(int, np.argsort(work.layout or ())))
        threads = len(os.sched_getaffinity(0))
        own = {"update": module.tensorTransposeAndUpdate, "by_rank": by_rank, "threads": threads}
        return {**found, **own, "sorted": found["dst"].transpose(by_rank)}

    call = "update(by_rank, 1.0, src, 0.0, sorted, threads)"
    return Entry("hptt", call, names, result="dst")


def yardsticks(
    count: int, *, fill: bool = False, single: bool = False, separate: bool = False
) -> Iterator[Entry]:
    """memcpy (memset for a fill) of `count` contiguous bytes on one thread and in halves on two, and PyTorch's.

    `single` measures one thread at any size; otherwise only up to 8 MiB, above which it is never the fastest. With
    `separate`, the target is in separate memory, touched before.
    """
    byte = 0x3F

    def addresses(count: int = count) -> dict[str, Any]:
        dst = np.full(count, 1, np.uint8) if separate else memory.block("target", count)
        src = np.full(1, byte, np.uint8) if fill else memory.block("source", count)
        operand = byte if fill else src.ctypes.data
        return {"dst": dst, "src": src, "to": dst.ctypes.data, "operand": operand, "count": count}

    def flat(module: ModuleType) -> dict[str, Any]:
        # Words of 8 bytes, which PyTorch moves faster than single bytes; the last few do not matter.
        found = addresses(count // 8 * 8)
        words = int.from_bytes(bytes([byte] * 8), "big")
        other = words if fill else module.from_numpy(found["src"].view(np.int64))
        return {**found, "flat": module.from_numpy(found["dst"].view(np.int64)), "other": other}

    name, torch = ("memset", "fill") if fill else ("memcpy", "copy")
    names, result = uses(name, "wake_helper", make=addresses), "(src, dst)"
    if single or count <= 8 << 20:
        yield Entry(name, f"{name}(to, operand, count, 1)", names, result=result)
    if count >= 256 << 10:  # below, handing over half of the work takes longer than doing it
        halves, setup = f"{name}(to, operand, count, 2)", "wake_helper()"
        yield Entry(f"{name}_halves", halves, names, result=result, setup=setup)
        yield Entry(f"torch_{torch}", f"flat.{torch}_(other)", flat, result=result)


def copy_case(
    id: str,
    shape: tuple[int, ...],
    target: Placement,
    *,
    source: Placement | None = None,
    promises: tuple[str, ...] = (),
    quick: bool = False,
    single: bool = False,
    note: str = _NOTE,
) -> Case:
    """A copy from C order, or from `source`, into `target`."""
    source = source or Placement(target.dtype, tuple(range(len(shape))))
    # Read and written. For a conversion, the yardstick copies the mean of both arrays' bytes.
    moved = math.prod(shape) * (target.itemsize_bytes + source.itemsize_bytes)
    extents = "×".join(map(str, shape))
    if len(set(shape)) == 1:
        extents = f"{shape[0]}{'⁰¹²³⁴⁵⁶⁷⁸⁹'[len(shape)]}"
    converted = "" if source.dtype == target.dtype else f"{source.dtype} as "
    title = f"{extents} {converted}{target.dtype} to {target.layout}"
    if target.rows == "lines":
        title += " padded" if source.rows == "dense" else " padded on both sides"
    if target.offset_bytes:
        title += f" {target.offset_bytes} bytes off a line"
    work = Work(shape, target.dtype, "source", target.layout, 1, None, moved, source, target)
    return Case(
        id=id,
        title=title,
        note=note,
        work=work,
        entries=in_shared_memory(work),
        yardsticks=tuple(yardsticks(moved // 2, single=single)),
        promises=(*_moved(work), *promises),
        quick=quick,
        memory_bytes=needed_bytes(work),
    )


def _moved(work: Work) -> tuple[str, ...]:
    """What is promised of a copy whose contiguous dimension moves."""
    source, target = work.source, work.target
    assert source and target
    if target.keeps_order or source.layout == target.layout or work.array_bytes < 64 << 10:
        return ()
    found: tuple[str, ...] = ("moved-numpy", "moved-torch", "moved-numpy-most", "moved-torch-most")
    if len(work.shape) == 3 and work.array_bytes >= 64 << 20 and source.dtype == target.dtype:
        found += {8: ("moved-8",), 4: ("moved-4-2",), 2: ("moved-4-2",)}.get(
            target.itemsize_bytes, ()
        )
    return found


# The matrix

DTYPES = {1: "uint8", 2: "int16", 4: "float32", 8: "float64", 16: "complex128"}

_SHAPES = """
lines   448×384×448   352×352×352  304×304×304  504×504×504  204×204×204
pow2    512×256×512   512×256×256  512×256×512  512×512×512  256×128×256
odd     447×383×445   351×349×347  303×301×299  511×509×507  203×205×201
stencil 1024×1024×80  1024×512×80  512×512×80   512×512×80   512×512×80
tall    64×64×16384   64×64×8192   64×64×4096   64×64×4096   64×64×2048
"""
KINDS: dict[str, dict[int, tuple[int, ...]]] = {
    kind: {size: tuple(map(int, one.split("×"))) for size, one in zip(DTYPES, shapes)}
    for kind, *shapes in map(str.split, _SHAPES.strip().splitlines())
}
"""Shapes of 64 MiB and more by kind and by bytes of an element, a column for each size.

`lines`: rows of whole cache lines whichever dimension they are, not a power of two. `stencil`: wide, with few levels.
"""

_LAYOUTS = tuple(permutations(range(3)))


def _name(layout: Layout) -> str:
    return "".join(map(str, layout))


_QUICK = {f"copy/{one}" for one in ("8/stencil.dense/210", "8/stencil.lines/210")}
_QUICK |= {f"copy/{one}" for one in ("8/stencil.dense/021", "4/stencil.dense/210")}
"""Those of --quick: arrays of 80 and 160 MiB."""


def _matrix() -> Iterator[Case]:
    for size, dtype in DTYPES.items():
        for kind, shapes in KINDS.items():
            usual = size in (4, 8)
            if not usual and kind in ("stencil", "tall"):
                continue
            # Rows of whole lines are not padded again.
            for rows in ("dense",) if kind == "lines" else ("dense", "lines"):
                for layout in _LAYOUTS:
                    target = Placement(dtype, layout, rows)  # type: ignore[arg-type]
                    id = f"copy/{size}/{kind}.{rows}/{_name(layout)}"
                    yield copy_case(id, shapes[size], target, quick=id in _QUICK)


_MORE: dict[tuple[int, ...], tuple[Layout, ...]] = {
    (52, 50, 48, 72): ((3, 2, 1, 0), (0, 1, 3, 2), (0, 3, 2, 1), (2, 3, 0, 1), (1, 0, 2, 3)),
    (64, 64, 64, 64): ((3, 2, 1, 0), (0, 3, 2, 1), (2, 3, 0, 1)),
    (24, 20, 28, 26, 32): ((4, 3, 2, 1, 0), (0, 1, 2, 4, 3), (2, 3, 4, 0, 1), (0, 4, 1, 3, 2)),
}
_SMALL_EXTENTS = {"4KiB": 8, "32KiB": 16, "256KiB": 32, "2MiB": 64, "16MiB": 128}
_PADDED_NOTE = f"{_NOTE} Source and target have the same layout; the rows of both are padded."


def _beyond_the_matrix() -> Iterator[Case]:
    for size in (4, 8):
        # Where large arrays of NumPy's begin: 16 bytes behind a border of pages.
        for layout in _LAYOUTS[1:]:
            target = Placement(DTYPES[size], layout, offset_bytes=16)
            id, shape = f"copy/{size}/lines.off/{_name(layout)}", KINDS["lines"][size]
            yield copy_case(id, shape, target)
        for shape, layouts in _MORE.items():
            for layout in layouts:
                # Half the item size, twice the first extent: as many bytes.
                extents = (shape[0] * 8 // size, *shape[1:])
                target = Placement(DTYPES[size], layout)
                kind = "pow2" if len(set(shape)) == 1 else "mixed"
                id = f"copy/{size}/{len(shape)}d.{kind}/{_name(layout)}"
                yield copy_case(id, extents, target)
    for size, layout in ((8, (0, 1, 2)), (8, (2, 1, 0)), (4, (0, 1, 2))):
        both = Placement(DTYPES[size], layout, "lines")
        for kind in ("pow2", "stencil"):
            yield copy_case(
                f"copy/{size}/same.{kind}/{_name(layout)}",
                KINDS[kind][size],
                both,
                source=both,
                promises=("copy-padded",),
                quick=(size, layout, kind) == (8, (0, 1, 2), "stencil"),
                note=_PADDED_NOTE,
            )
    for size in (8, 4, 1):
        for name, extent in _SMALL_EXTENTS.items():
            for layout in _LAYOUTS if size == 8 else ((0, 1, 2), (0, 2, 1), (2, 1, 0)):
                usual = size == 8 and layout in ((0, 1, 2), (2, 1, 0))
                yield copy_case(
                    f"copy/{size}/{name}/{_name(layout)}",
                    (extent, extent, extent * 8 // size),
                    Placement(DTYPES[size], layout),
                    quick=usual and name in ("4KiB", "256KiB"),
                )


GRIDS = (
    (64, 64, 80),
    (104, 104, 104),
    (128, 128, 80),
    (134, 134, 80),
    (192, 192, 80),
    (256, 256, 80),
    (360, 360, 91),
)
"""Domains of weather and climate models on one process, with and without halos: 1 to 90 MiB."""


def _grids() -> Iterator[Case]:
    for dtype in ("float64", "float32"):
        for shape in GRIDS:
            for layout in ((2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1)):
                case = copy_case(
                    f"grid/{dtype}/{'x'.join(map(str, shape))}/{_name(layout)}",
                    shape,
                    Placement(dtype, layout),
                    quick=shape in GRIDS[:4],
                    single=True,
                )
                yield replace(case, entries=(*case.entries, _by_hptt(case.work)))


_CAST_NOTE = (
    "copyto(dst, src) between numbers of two types. The memory's ratio is to a contiguous copy that reads and writes as many "
    "bytes as the conversion does, in halves on two threads or by torch.copy_, whichever is faster."
)


def _casts() -> Iterator[Case]:
    for pair in ("float64 float32", "float32 float64", "int32 float64", "float16 float32"):
        source, target = pair.split()
        for layout in ((0, 1, 2), (2, 1, 0)):
            promised = layout == (0, 1, 2) and {source, target} == {"float32", "float64"}
            yield copy_case(
                f"cast/{source}.{target}.{_name(layout)}",
                (400, 400, 400),
                Placement(target, layout),
                source=Placement(source, (0, 1, 2)),
                promises=("cast",) if promised else (),
                quick=promised,
                note=_CAST_NOTE,
            )


# Sizes

SIZES_NOTE = (
    "The same work at growing sizes; sizes for which the memory does not suffice are left out. Above 512 MiB gridbuf "
    "is measured next to the memory alone."
)
CUBES = dict(
    zip(
        ["4KiB", "32KiB", "256KiB", *(f"{1 << n}MiB" for n in range(13))],
        (8, 16, 32, 48, 64, 80, 104, 136, 168, 200, 248, 328, 408, 520, 648, 808),
    )
)
"""Extents of cubes of float64, by their size."""


def without_slow_peers(case: Case) -> Case:
    """Without NumPy, which takes half a minute for a copy of 4 GiB."""
    large = case.work.array_bytes > 512 << 20
    return replace(case, entries=case.entries[:1]) if large else case


def _sizes() -> Iterator[Case]:
    shapes = [("cube", name, (extent,) * 3) for name, extent in CUBES.items()]
    # Powers of two above the caches.
    shapes += [
        ("pow2", f"{1 << n}MiB", (1 << (17 + n) // 3, 1 << (18 + n) // 3, 1 << (19 + n) // 3))
        for n in range(7, 13)
    ]
    for line, name, shape in shapes:
        case = copy_case(
            f"sizes/{line}/{name}",
            shape,
            Placement("float64", (2, 1, 0)),
            quick=line == "cube" and name in ("1MiB", "16MiB"),
            note=SIZES_NOTE,
        )
        yield without_slow_peers(case)


# Small arrays

_TINY_NOTE = "One call of copyto(dst, src) with arrays of a few elements: finding out what they are takes longer than copying them."
_CACHE_NOTE = (
    "{count} copies in a loop of C, by the engine's own function, next to {count} calls of memcpy with as many bytes: what "
    "a copy in cache costs without Python. Source and target stay in the cache."
)
_TINY: dict[str, tuple[tuple[int, ...], Layout]] = {
    "scalar": ((), ()),
    "row": ((3,), (0,)),
    "square": ((8, 8), (0, 1)),
    "square.turned": ((8, 8), (1, 0)),
    "box.turned": ((2, 3, 4), (2, 1, 0)),
}


def _small_work(shape: tuple[int, ...], layout: Layout, count: int = 0) -> Work:
    """`count` copies of a float64 array; with none, the speed is not a bandwidth."""
    source, target = Placement("float64", tuple(range(len(shape)))), Placement("float64", layout)
    moved = count * 2 * 8 * math.prod(shape) or None
    return Work(shape, "float64", "source", layout or None, 1, None, moved, source, target)


def _tiny() -> Iterator[Case]:
    for name, (shape, layout) in _TINY.items():
        work = _small_work(shape, layout)
        extents = "×".join(map(str, shape)) + " elements" if shape else "one element"
        yield Case(
            id=f"tiny/{name}",
            title=f"copyto {extents}" + (f" to {layout}" if "turned" in name else ""),
            note=_TINY_NOTE,
            work=work,
            entries=in_shared_memory(work),
            promises=("copyto-tiny",),
            memory_bytes=needed_bytes(work),
        )


def _in_cache() -> Iterator[Case]:
    for name, extent in list(_SMALL_EXTENTS.items())[:3]:
        for layout in _LAYOUTS:
            count = (1 << 20) // extent**3  # 8 MiB in all
            work = _small_work((extent,) * 3, layout, count)

            def own(_: ModuleType, work: Work = work) -> dict[str, Any]:
                from gridbuf_benchmarks._loops import copy_loop

                return {"copy_loop": copy_loop, **arrays(work)}

            def flat(work: Work = work) -> dict[str, Any]:
                # Views: the arrays are contiguous.
                return {key: np.ravel(one, order="K") for key, one in arrays(work).items()}

            memcpy = uses("memcpy_loop", make=flat)
            stick = f"memcpy_loop(dst, src, {count})"
            yield Case(
                id=f"cache/{name}/{_name(layout)}",
                title=f"in cache, {extent}³ float64 to {layout}",
                note=_CACHE_NOTE.format(count=count),
                work=work,
                entries=(Entry("gridbuf", f"copy_loop(dst, src, {count})", own, result="dst"),),
                yardsticks=(Entry("memcpy_loop", stick, memcpy, result="(src, dst)"),),
                memory_bytes=needed_bytes(work),
                quick=name == "32KiB" and layout in ((0, 1, 2), (2, 1, 0)),
            )


# New arrays

_NEW_NOTE = (
    "A new array of the given layout from one in C order, allocation included. gridbuf and PyTorch copy with their "
    "threads, the others with one."
)
_GT4PY_PRESETS = {(0, 1, 2): "numpy", (2, 1, 0): "gt:cpu_ifirst", (1, 2, 0): "dace:cpu"}
"""The layouts of GT4Py's presets; it has no others."""


def _from_array(extent: int, layout: Layout) -> Iterator[Entry]:
    """Each library's way: NumPy and PyTorch copy a permuted view and permute the result back."""
    shared = {"layout": layout, "by_rank": tuple(map(int, np.argsort(layout)))}

    def source() -> dict[str, Any]:
        return {"a": np.arange(float(extent**3)).reshape((extent,) * 3), **shared}

    def torch(module: ModuleType) -> dict[str, Any]:
        # clone is what `contiguous` does for a permuted tensor; it also copies one that is contiguous already.
        t = module.from_numpy(source()["a"])
        return {"t": t, "memory_format": module.contiguous_format, **shared}

    yield Entry("gridbuf", "from_array(a, layout=layout)", uses("from_array", make=source))
    by_hand = "array(a.transpose(by_rank), order='C').transpose(layout)"
    yield Entry("numpy", by_hand, uses("array", make=source))
    clone = "t.permute(by_rank).clone(memory_format=memory_format).permute(layout)"
    yield Entry("torch", clone, torch)
    if layout in _GT4PY_PRESETS:
        preset = uses("from_array", make=source, preset=_GT4PY_PRESETS[layout])
        yield Entry("gt4py", "from_array(a, backend=preset)", preset)


def _new() -> Iterator[Case]:
    for extent in (128, 256):
        for layout in _LAYOUTS:
            yield Case(
                id=f"from_array/{extent}/{_name(layout)}",
                title=f"from_array {extent}³ to {layout}",
                note=_NEW_NOTE,
                work=Work(
                    (extent,) * 3, values="arange", layout=layout, bytes_moved=16 * extent**3
                ),
                entries=tuple(_from_array(extent, layout)),
                quick=extent == 128,
            )


CASES: tuple[Case, ...] = (
    *_new(),
    *_tiny(),
    *_in_cache(),
    *_matrix(),
    *_beyond_the_matrix(),
    *_grids(),
    *_casts(),
    *_sizes(),
)
