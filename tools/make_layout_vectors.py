"""Writes the layout vectors: requests and their results by the storage specification.

The vectors are for every implementation, in any language. So this script shares no code with any of them. It follows
section 1 of docs/spec.md with Python's integers, which do not overflow, and enumerates where a formula could hide a
mistake. A view is a table of its elements, sliced by Python's slices. Its strides, hull, contiguity and halo are then
read from the table.

    python tools/make_layout_vectors.py FOLDER
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

LIMIT_BYTES = 2**63 - 1
MAX_ALIGNMENT_BYTES = 2**20

Json = dict[str, Any]


# -- plans ------------------------------------------------------------------------------------------------------------


def plan_request(
    shape: Sequence[int],
    itemsize_bytes: int = 8,
    layout: Sequence[int] | None = None,
    alignment_bytes: int = 1,
    aligned_index: Sequence[int] | None = None,
) -> Json:
    """A request as the vectors spell it; `None` means "not given"."""
    return {
        "shape": list(shape),
        "itemsize_bytes": itemsize_bytes,
        "layout": None if layout is None else list(layout),
        "alignment_bytes": alignment_bytes,
        "aligned_index": None if aligned_index is None else list(aligned_index),
    }


def plan_answer(request: Json) -> Json:
    """The plan of a request. Raises OverflowError where 64 bits are not enough."""
    shape, itemsize = request["shape"], request["itemsize_bytes"]
    ndim = len(shape)
    rank = request["layout"] if request["layout"] is not None else list(range(ndim))
    aligned_index = request["aligned_index"] or [0] * ndim
    padded = list(shape)
    if ndim > 1 and itemsize > 0:
        contiguous = rank.index(ndim - 1)
        row_bytes = math.lcm(request["alignment_bytes"], itemsize)
        padded[contiguous] = -(-shape[contiguous] * itemsize // row_bytes) * row_bytes // itemsize
    # A stride is the volume of everything that varies faster. An extent of 0 counts as 1 there.
    strides = [
        itemsize * math.prod(max(n, 1) for n, r in zip(padded, rank) if r > rank[axis])
        for axis in range(ndim)
    ]
    volume = math.prod(max(n, 1) for n in padded)
    if max(volume, volume * itemsize) > LIMIT_BYTES:
        raise OverflowError(f"{volume} elements of {itemsize} bytes")
    count = math.prod(shape)
    return {
        "strides_bytes": strides,
        "padded_shape": padded,
        "element_count": count,
        "nbytes": count * itemsize,
        "total_bytes": volume * itemsize if count else 0,
        "aligned_offset_bytes": sum(i * s for i, s in zip(aligned_index, strides)),
    }


def plan_case(name: str, request: Json, **given: Any) -> Json:
    """A case. `given` are answers written by hand, which must agree with the computed ones."""
    expected = plan_answer(request)
    for key, value in given.items():
        assert expected[key] == list(value), (name, key, expected[key], value)
    return {"name": name, "request": request, "expected": expected}


def named_plans() -> Iterator[Json]:
    """The examples of the specification, the 3-cycles among them, and the corners."""
    shape = (3, 4, 5)
    for layout, strides in [
        ((2, 0, 1), (8, 120, 24)),
        ((1, 2, 0), (32, 8, 96)),
        ((0, 2, 1), (160, 8, 32)),
        ((0, 1, 2), (160, 40, 8)),
        ((2, 1, 0), (8, 24, 96)),
        ((1, 0, 2), (40, 120, 8)),
    ]:
        yield plan_case(f"layout_{layout}", plan_request(shape, 8, layout), strides_bytes=strides)
    yield plan_case("c_order_is_the_default", plan_request(shape, 8))
    yield plan_case(
        "rows_of_whole_alignments",
        plan_request(shape, 8, (2, 0, 1), 64, (1, 2, 3)),
        padded_shape=(8, 4, 5),
        strides_bytes=(8, 320, 64),
    )
    yield plan_case(
        "alignment_that_the_itemsize_does_not_divide",
        plan_request((5, 7), 12, (0, 1), 64),
        padded_shape=(5, 16),
    )
    yield plan_case(
        "alignment_that_is_no_power_of_two",
        plan_request((5, 7), 8, (1, 0), 24, (2, 3)),
        padded_shape=(6, 7),
    )
    yield plan_case("alignment_below_the_itemsize", plan_request((5, 7), 16, (0, 1), 4))
    yield plan_case(
        "one_dimension_is_not_padded", plan_request((5,), 8, (0,), 64, (3,)), padded_shape=(5,)
    )
    yield plan_case("no_dimensions", plan_request((), 8, (), 64, ()))
    yield plan_case("largest_alignment", plan_request((2, 3), 8, (0, 1), MAX_ALIGNMENT_BYTES))
    yield plan_case(
        "odd_largest_alignment", plan_request((2, 3), 7, (0, 1), MAX_ALIGNMENT_BYTES - 1)
    )
    yield plan_case("extent_zero_in_the_contiguous_dimension", plan_request((3, 0), 8, (0, 1), 64))
    yield plan_case("extent_zero_in_another_dimension", plan_request((0, 3), 8, (0, 1), 64, (0, 2)))
    yield plan_case("extents_of_one", plan_request((1, 1, 1), 8, (1, 2, 0), 32))
    yield plan_case("items_without_bytes", plan_request((3, 4), 0, (1, 0), 64))
    yield plan_case("most_dimensions", plan_request((1,) * 62 + (3, 2), 4, None, 16))
    yield plan_case("3_gib", plan_request((1024, 1024, 384), 8, (2, 0, 1), 128, (3, 0, 0)))
    yield plan_case("more_than_2_to_the_31", plan_request((1024, 1024, 1024), 8, (1, 2, 0)))
    yield plan_case("more_than_2_to_the_32_elements", plan_request((65537, 65537), 1, (1, 0)))
    yield plan_case("largest_extent", plan_request((LIMIT_BYTES,), 1))
    yield plan_case("largest_total", plan_request((2, 2**61 - 1), 2, (0, 1)))
    yield plan_case("empty_and_vast", plan_request((0, 2**59), 8, (0, 1)))


def random_plans(rng: random.Random, count: int) -> Iterator[Json]:
    for number in range(count):
        ndim = rng.choice([0, 1, 2, 2, 3, 3, 3, 3, 4, 5, 7])
        shape = [rng.choice([0, 1, 2, 3, 5, 7, 8, 9, 16, 31, 33, 64, 127]) for _ in range(ndim)]
        if rng.random() < 0.7:
            shape = [max(n, 1) for n in shape]
        layout = list(range(ndim))
        rng.shuffle(layout)
        alignment = rng.choice([1, 2, 3, 4, 8, 12, 16, 24, 32, 48, 64, 100, 128, 4096, 1000003])
        index = [rng.randrange(max(n, 1)) for n in shape] if rng.random() < 0.8 else None
        itemsize = rng.choice([1, 2, 3, 4, 6, 8, 8, 12, 16, 24, 32, 100])
        request = plan_request(shape, itemsize, layout, min(alignment, MAX_ALIGNMENT_BYTES), index)
        yield plan_case(f"random_{number}", request)


# -- dimension names and presets --------------------------------------------------------------------------------------

_IJK_COLUMNS = ["I,J,K", "K,J,I", "J,K,I", "I,K", "K,I", "I,J,K,0", "0,K,J,I", "I,0,J,1"]
_TABLE = {  # The specification's table, row by row.
    (0, 1, 2): [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 1), (1, 0), (1, 2, 3, 0), (0, 3, 2, 1), (2, 0, 3, 1)],
    (2, 1, 0): [(2, 1, 0), (0, 1, 2), (1, 0, 2), (1, 0), (0, 1), (3, 2, 1, 0), (0, 1, 2, 3), (3, 0, 2, 1)],
    (2, 0, 1): [(2, 0, 1), (1, 0, 2), (0, 1, 2), (1, 0), (0, 1), (3, 1, 2, 0), (0, 2, 1, 3), (3, 0, 2, 1)],
    (1, 2, 0): [(1, 2, 0), (0, 2, 1), (2, 0, 1), (1, 0), (0, 1), (2, 3, 1, 0), (0, 1, 3, 2), (2, 0, 3, 1)],
}  # fmt: skip

_PRESETS: list[tuple[str, str, int, tuple[int, int, int] | str]] = [
    ("debug", "host", 1, (0, 1, 2)),
    ("numpy", "host", 1, (0, 1, 2)),
    ("gt:cpu_kfirst", "host", 1, (0, 1, 2)),
    ("gtx86", "host", 1, (0, 1, 2)),
    ("gt:cpu_ifirst", "host", 64, (2, 1, 0)),
    ("gtmc", "host", 64, (2, 0, 1)),
    ("gt:gpu", "gpu", 128, (2, 1, 0)),
    ("gtcuda", "gpu", 128, (2, 1, 0)),
    ("dace:cpu", "host", 1, (1, 2, 0)),
    ("dace:cpu_kfirst", "host", 1, (0, 1, 2)),
    ("dace:cpu_KJI", "host", 1, (2, 1, 0)),
    ("dace:gpu", "gpu", 1, (2, 1, 0)),
    ("dace:gpu_IJK", "gpu", 1, (0, 1, 2)),
    ("C", "host", 1, "row_major"),
    ("F", "host", 1, "column_major"),
]


def layout_by_name(base_ranks: Sequence[int], dims: Sequence[str]) -> list[int]:
    """Data dimensions outermost by number, then I, J, K by base rank; compressed to 0..ndim-1."""
    data = sorted((d for d in dims if d not in "IJK"), key=int)
    spatial = sorted((d for d in dims if d in "IJK"), key=lambda d: base_ranks["IJK".index(d)])
    outermost_first = data + spatial
    return [outermost_first.index(d) for d in dims]


def preset_layout(order: Sequence[int] | str, dims: Sequence[str]) -> list[int]:
    if order == "row_major":
        return list(range(len(dims)))
    if order == "column_major":
        return list(reversed(range(len(dims))))
    assert not isinstance(order, str)
    return layout_by_name(order, dims)


# Names of every kind; the same ones in another order must keep their order in memory.
_KINDS = [
    [("Cell", "horizontal"), ("K", "vertical")],
    [("K", "vertical"), ("Edge", "horizontal"), ("Cell", "horizontal")],
    [("Edge", "horizontal"), ("E2V", "local"), ("K", "vertical")],
    [("V2E", "local"), ("K", "vertical"), ("Vertex", "horizontal")],
    [("time", "data"), ("lat", "horizontal"), ("lon", "horizontal"), ("level", "vertical")],
    [("a", "horizontal"), ("b", "horizontal"), ("c", "horizontal"), ("K", "vertical")],
    [("J", "horizontal"), ("x", "horizontal"), ("K", "vertical")],
    [("I", "horizontal"), ("A", "horizontal"), ("K", "vertical")],
    [("J", "horizontal"), ("K", "vertical"), ("E2V", "local")],
    [("half", "vertical"), ("K", "vertical"), ("I", "horizontal"), ("J", "horizontal")],
    [("tracer", "data"), ("10", "data"), ("2", "data"), ("Cell", "horizontal")],
    [("C2E2C", "local"), ("C2E", "local"), ("Cell", "horizontal")],
    [("depth", "horizontal"), ("across", "vertical")],
]


def layout_by_kind(base_ranks: Sequence[int], dims: Sequence[tuple[str, str]]) -> list[int]:
    """As above, for any names: three groups stand for I, J and K."""
    of_kind = {
        kind: sorted(d for d, k in dims if k == kind)
        for kind in ("horizontal", "local", "vertical", "data")
    }
    horizontal = of_kind["horizontal"]
    others = [d for d in horizontal if d != "J"]
    first = ["I"] if "I" in horizontal else others[:1]
    rest = [d for d in horizontal if d not in first]
    if base_ranks[1] < base_ranks[0]:
        rest.reverse()
    groups = [first + of_kind["local"], rest, of_kind["vertical"]]
    numbers = sorted((d for d in of_kind["data"] if d.isdecimal()), key=int)
    names = [d for d in of_kind["data"] if not d.isdecimal()]
    spatial = [d for rank in range(3) for d in groups[list(base_ranks).index(rank)]]
    outermost_first = numbers + names + spatial
    return [outermost_first.index(d) for d, _ in dims]


def kind_layouts(order: Sequence[int] | str) -> Iterator[Json]:
    for dims in _KINDS:
        for given in (dims, dims[::-1], dims[1:] + dims[:1]):
            if isinstance(order, str):
                layout = preset_layout(order, [name for name, _ in given])
            else:
                layout = layout_by_kind(order, given)
            yield {"dims": [list(dim) for dim in given], "layout": layout}


def preset_cases() -> Iterator[Json]:
    for base, row in _TABLE.items():
        for column, layout in zip(_IJK_COLUMNS, row):
            assert layout_by_name(base, column.split(",")) == list(layout), (base, column)
    names = ["I", "J", "K", "0", "2", "10"]
    dims_lists = [column.split(",") for column in _IJK_COLUMNS]
    dims_lists += [list(p) for n in range(4) for p in itertools.permutations("IJK", n)]
    dims_lists += [list(p) for p in itertools.permutations(names, 2)]
    dims_lists += [["10", "2", "I"], ["2", "K", "10", "I"], ["J", "1", "I", "0", "K"], ["7"]]
    unique = [list(d) for d in dict.fromkeys(tuple(d) for d in dims_lists)]
    for name, device, alignment_bytes, order in _PRESETS:
        layouts = [{"dims": dims, "layout": preset_layout(order, dims)} for dims in unique]
        yield {
            "name": name,
            "device": device,
            "alignment_bytes": alignment_bytes,
            "base_ranks": None if isinstance(order, str) else list(order),
            "layouts": layouts,
            "kinds": list(kind_layouts(order)),
        }


def default_dims(ndim: int) -> list[str]:
    return [*"IJK"[:ndim], *(str(n) for n in range(ndim - 3))]


def dims_cases() -> Iterator[Json]:
    for ndim in (0, 1, 2, 3, 4, 6, 64):
        yield {
            "name": f"default_{ndim}",
            "ndim": ndim,
            "given": None,
            "expected": default_dims(ndim),
        }
    for text in ("", "I", "IJK", "KJI", "KI0", "01", "9J", "JIK012"):
        yield {"name": f"text_{text}", "ndim": len(text), "given": text, "expected": list(text)}
    for names in (
        ["I"],
        ["10", "2"],
        ["K", "2147483647", "0"],
        ["0", "I", "11"],
        ["Cell", "K"],
        ["time", "lat", "lon", "level"],
        ["_", "x" * 63, "E2V_1"],
    ):
        label = "_".join(names)
        yield {"name": f"list_{label}", "ndim": len(names), "given": names, "expected": names}


# -- views ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """One dimension of a view: the source coordinates it shows, or a repetition of a single point."""

    points: tuple[
        int, ...
    ]  # The source coordinate of each view point; zeros if there is no source.
    source: int | None = None  # The plan's dimension; None for a new one.
    name: str | None = None  # None until it is known which names are taken.
    halo: tuple[bool, ...] = ()  # For each point, whether it is in the halo ...
    lower: tuple[bool, ...] = ()  # ... and whether that is before the domain, in the view's order.


@dataclass(frozen=True)
class View:
    """A view as a table: which coordinates each dimension shows, and those of the dropped dimensions."""

    strides: tuple[int, ...]  # Of the plan.
    fixed: tuple[tuple[int, int], ...]  # (source dimension, coordinate) of dropped dimensions.
    axes: tuple[Axis, ...]
    aligned: tuple[int, ...]
    alignment_bytes: int

    @property
    def shape(self) -> list[int]:
        return [len(axis.points) for axis in self.axes]

    def offset(self, index: Sequence[int]) -> int:
        total = sum(coordinate * self.strides[source] for source, coordinate in self.fixed)
        for axis, position in zip(self.axes, index):
            if axis.source is not None:
                total += axis.points[position] * self.strides[axis.source]
        return total


def whole(request: Json, dims: Sequence[str], halo: Sequence[Sequence[int]]) -> View:
    axes = []
    for source, extent in enumerate(request["shape"]):
        lower, upper = halo[source]
        before = tuple(i < lower for i in range(extent))
        after = tuple(i >= extent - upper for i in range(extent))
        either = tuple(b or a for b, a in zip(before, after))
        axes.append(Axis(tuple(range(extent)), source, dims[source], either, before))
    return View(
        strides=tuple(plan_answer(request)["strides_bytes"]),
        fixed=(),
        axes=tuple(axes),
        aligned=tuple(request["aligned_index"] or [0] * len(axes)),
        alignment_bytes=request["alignment_bytes"],
    )


def sliced(axis: Axis, key: slice) -> Axis:
    """Python slices the table; a reversed slice swaps the parts before and after the domain."""
    halo, lower = axis.halo[key], axis.lower[key]
    if (key.step or 1) < 0:
        lower = tuple(h and not low for h, low in zip(halo, lower))
    return replace(axis, points=axis.points[key], halo=halo, lower=lower)


def followed(axis: Axis, key: slice, aligned: int) -> int:
    """The aligned position after slicing: the last kept position that is not past the aligned one."""
    kept = range(len(axis.points))[key]
    sign = 1 if (key.step or 1) > 0 else -1
    not_past = [k for k, position in enumerate(kept) if sign * position <= sign * aligned]
    return max(not_past, default=0)


def op_index(view: View, axis: int, position: int) -> View:
    position = range(len(view.axes[axis].points))[position]
    dropped = view.axes[axis]
    fixed = view.fixed
    if dropped.source is not None:
        fixed += ((dropped.source, dropped.points[position]),)
    return replace(
        view, fixed=fixed, axes=without(view.axes, axis), aligned=without(view.aligned, axis)
    )


def op_slice(view: View, axis: int, start: int | None, stop: int | None, step: int) -> View:
    key = slice(start, stop, step)
    aligned = followed(view.axes[axis], key, view.aligned[axis])
    axes = with_item(view.axes, axis, sliced(view.axes[axis], key))
    return replace(view, axes=axes, aligned=with_item(view.aligned, axis, aligned))


def op_reverse(view: View, axis: int) -> View:
    return op_slice(view, axis, None, None, -1)


def op_transpose(view: View, order: Sequence[int]) -> View:
    order = [range(len(view.axes))[a] for a in order] or [*reversed(range(len(view.axes)))]
    return replace(
        view,
        axes=tuple(view.axes[a] for a in order),
        aligned=tuple(view.aligned[a] for a in order),
    )


def op_newaxis(view: View, position: int) -> View:
    position = range(len(view.axes) + 1)[position]
    axis = Axis((0,), None, None, (False,), (False,))
    return replace(
        view,
        axes=(*view.axes[:position], axis, *view.axes[position:]),
        aligned=(*view.aligned[:position], 0, *view.aligned[position:]),
    )


def op_broadcast_to(view: View, target: Sequence[int]) -> View:
    for _ in range(len(target) - len(view.axes)):
        view = op_newaxis(view, 0)
    for position, extent in enumerate(target):
        axis = view.axes[position]
        if len(axis.points) == extent:
            continue
        assert len(axis.points) == 1
        no = (False,) * extent
        stretched = replace(axis, points=axis.points * extent, halo=no, lower=no)
        view = replace(
            view,
            axes=with_item(view.axes, position, stretched),
            aligned=with_item(view.aligned, position, 0),
        )
    return named(view)


def op_subscript(view: View, items: Sequence[Any]) -> View:
    """a[items]: an integer, {"slice": [start, stop, step]}, "..." or null (a new axis)."""
    axis = 0
    for item in items:
        if isinstance(item, int):
            view = op_index(view, axis, item)
        elif isinstance(item, dict):
            view = op_slice(view, axis, *item["slice"])
            axis += 1
        elif item == "...":
            axis += len(view.axes) - axis - remaining(items, item)
        else:
            view = op_newaxis(view, axis)
            axis += 1
    return named(view)


def remaining(items: Sequence[Any], ellipsis: Any) -> int:
    """Dimensions that the items after the ellipsis consume."""
    after = items[items.index(ellipsis) + 1 :]
    return sum(isinstance(item, (int, dict)) for item in after)


OPERATIONS: dict[str, Callable[..., View]] = {
    "index": op_index,
    "slice": op_slice,
    "reverse": op_reverse,
    "transpose": op_transpose,
    "newaxis": op_newaxis,
    "broadcast_to": op_broadcast_to,
    "subscript": op_subscript,
}


def without(items: tuple[Any, ...], position: int) -> tuple[Any, ...]:
    position = range(len(items))[position]  # May count from the end.
    return items[:position] + items[position + 1 :]


def with_item(items: tuple[Any, ...], position: int, item: Any) -> tuple[Any, ...]:
    position = range(len(items))[position]
    return (*items[:position], item, *items[position + 1 :])


def named(view: View) -> View:
    """New axes get the lowest data numbers that are free, from the first dimension to the last."""
    taken = {axis.name for axis in view.axes}
    free = (str(n) for n in itertools.count() if str(n) not in taken)
    axes = tuple(replace(a, name=a.name or next(free)) for a in view.axes)
    return replace(view, axes=axes)


def apply(view: View, operation: Sequence[Any]) -> View:
    """One operation. The alignment that still holds is what divides the way the aligned element moved."""
    name, *arguments = operation
    after = named(OPERATIONS[name](view, *arguments))
    if 0 in after.shape:
        return after
    moved = after.offset(after.aligned) - view.offset(view.aligned)
    return replace(after, alignment_bytes=math.gcd(view.alignment_bytes, moved))


def indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


def unit(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(int(a == axis) for a in range(ndim))


def view_answer(view: View, itemsize: int) -> Json:
    """Everything about a view, read off its table. Strides without meaning are null."""
    shape = view.shape
    ndim = len(shape)
    offsets = [view.offset(index) for index in indices(shape)]
    origin = offsets[0] if offsets else None
    strides = [
        view.offset(unit(axis, ndim)) - offsets[0] if offsets and shape[axis] > 1 else None
        for axis in range(ndim)
    ]
    in_f_order = [view.offset(index[::-1]) for index in indices(shape[::-1])]

    def dense(order: list[int]) -> bool:
        return all(o == order[0] + i * itemsize for i, o in enumerate(order))

    halo = [
        [sum(a.lower), sum(h and not low for h, low in zip(a.halo, a.lower))] for a in view.axes
    ]
    return {
        "shape": shape,
        "strides_bytes": strides,
        "offset_bytes": origin,
        "hull_bytes": [min(offsets), max(offsets) + itemsize] if offsets else None,
        "c_contiguous": dense(offsets),
        "f_contiguous": dense(in_f_order),
        "dims": [axis.name for axis in view.axes],
        "halo": halo,
        "aligned_index": list(view.aligned),
        "alignment_bytes": view.alignment_bytes,
    }


def view_case(
    name: str,
    request: Json,
    operations: Sequence[Sequence[Any]],
    halo: Sequence[Sequence[int]] | None = None,
    dims: Sequence[str] | None = None,
) -> Json:
    ndim = len(request["shape"])
    dims = list(dims or default_dims(ndim))
    halo = [list(pair) for pair in halo] if halo else [[0, 0]] * ndim
    view = whole(request, dims, halo)
    for operation in operations:
        view = apply(view, operation)
    return {
        "name": name,
        "request": request,
        "dims": dims,
        "halo": halo,
        "operations": [list(o) for o in operations],
        "expected": view_answer(view, request["itemsize_bytes"]),
    }


def named_views() -> Iterator[Json]:
    field = plan_request((6, 7, 8), 8, (2, 0, 1), 64, (2, 1, 3))
    halo = [(2, 2), (1, 0), (3, 1)]
    table: list[tuple[str, list[list[Any]]]] = [
        ("nothing", []),
        ("index_first", [["index", 0, 2]]),
        ("index_negative", [["index", 1, -1]]),
        ("index_contiguous_off_the_aligned_point", [["index", 0, 3]]),
        ("index_all", [["index", 0, 5], ["index", 0, 0], ["index", -1, 7]]),
        ("slice_inside_the_halo", [["slice", 0, 1, -1, 1]]),
        ("slice_to_the_domain", [["slice", 0, 2, -2, 1], ["slice", 1, 1, None, 1], ["slice", 2, 3, 7, 1]]),
        ("slice_past_the_aligned_point", [["slice", 0, 3, None, 1]]),
        ("slice_before_the_aligned_point", [["slice", 0, None, 2, 1]]),
        ("slice_every_second", [["slice", 2, None, None, 2]]),
        ("slice_every_third_from_one", [["slice", 2, 1, None, 3]]),
        ("slice_backwards", [["slice", 0, None, None, -1]]),
        ("slice_backwards_by_two", [["slice", 2, -2, None, -2]]),
        ("slice_backwards_past_the_aligned_point", [["slice", 2, None, 4, -1]]),
        ("slice_of_one_point", [["slice", 1, 3, 4, 5]]),
        ("slice_of_no_points", [["slice", 1, 4, 4, 1]]),
        ("slice_far_out_of_bounds", [["slice", 1, -100, 100, 3]]),
        ("slice_with_a_huge_step", [["slice", 1, None, None, 2**62]]),
        ("slice_with_a_huge_negative_step", [["slice", 1, None, None, -(2**63)]]),
        ("slice_of_the_extremes", [["slice", 1, -(2**63), 2**63 - 1, 1]]),
        ("reverse_twice", [["reverse", 2], ["reverse", 2]]),
        ("reverse_all", [["reverse", 0], ["reverse", 1], ["reverse", 2]]),
        ("transpose_cycle", [["transpose", [2, 0, 1]]]),
        ("transpose_other_cycle", [["transpose", [1, 2, 0]]]),
        ("transpose_reverses_by_default", [["transpose", []]]),
        ("transpose_negative_axes", [["transpose", [-1, 0, -2]]]),
        ("newaxis_first", [["newaxis", 0]]),
        ("newaxis_last", [["newaxis", -1]]),
        ("newaxis_twice", [["newaxis", 1], ["newaxis", 0]]),
        ("broadcast_new_dimension", [["broadcast_to", [3, 6, 7, 8]]]),
        ("broadcast_stretches_a_kept_point", [["slice", 0, 4, 5, 1], ["broadcast_to", [9, 7, 8]]]),
        ("broadcast_to_nothing", [["slice", 0, 4, 5, 1], ["broadcast_to", [0, 7, 8]]]),
        ("broadcast_then_slice", [["newaxis", 0], ["broadcast_to", [5, 6, 7, 8]], ["slice", 0, 3, None, -1]]),
        ("subscript_mixed", [["subscript", [{"slice": [1, None, 2]}, None, -1, "..."]]]),
        ("subscript_ellipsis_first", [["subscript", ["...", 0]]]),
        ("subscript_ellipsis_middle", [["subscript", [3, "...", None, {"slice": [None, None, -3]}]]]),
        ("subscript_nothing", [["subscript", []]]),
        ("subscript_only_new_axes", [["subscript", [None, "...", None, None]]]),
        ("subscript_scalar", [["subscript", [1, 2, 3]]]),
        ("empty_then_more", [["slice", 0, 5, 2, 1], ["reverse", 0], ["slice", 1, 2, 6, 3], ["index", 2, 4]]),
        ("cycle_slice_reverse", [["transpose", [2, 0, 1]], ["slice", 1, 1, 5, 2], ["reverse", 0], ["index", 2, 4]]),
    ]  # fmt: skip
    for name, operations in table:
        yield view_case(name, field, operations, halo)
    names = ["K", "0", "I"]
    yield view_case("names_follow", field, [["transpose", [1, 2, 0]], ["newaxis", 1]], halo, names)
    yield view_case(
        "all_halo", plan_request((4,), 4, None, 16, (1,)), [["slice", 0, 1, None, 2]], [(1, 3)]
    )
    dense = plan_request((3, 4, 5), 8, (0, 1, 2))
    yield view_case("contiguous", dense, [])
    yield view_case("contiguous_without_an_extent_of_one", dense, [["slice", 0, 1, 2, 1]])
    yield view_case("fortran", plan_request((3, 4, 5), 8, (2, 1, 0)), [])
    yield view_case(
        "fortran_transposed", plan_request((3, 4, 5), 8, (2, 1, 0)), [["transpose", []]]
    )
    yield view_case("scalar_broadcast", plan_request((), 8), [["broadcast_to", [2, 3]]])
    yield view_case(
        "empty_plan", plan_request((0, 3), 8, (1, 0), 32), [["index", 1, 2], ["reverse", 0]]
    )


def random_operation(rng: random.Random, shape: Sequence[int]) -> list[Any]:
    """Some operation that `shape` admits."""
    ndim = len(shape)
    choices = ["newaxis"] if ndim < 6 else []
    if ndim:
        choices += ["slice", "slice", "slice", "reverse", "transpose"]
        choices += ["index"] if max(shape) > 0 and ndim > 1 else []
        choices += ["broadcast_to"] if 1 in shape and ndim < 6 else []
    name = rng.choice(choices)
    if name == "newaxis":
        return [name, rng.randrange(-ndim - 1, ndim + 1)]
    if name == "transpose":
        return [name, rng.sample(range(ndim), ndim)]
    if name == "broadcast_to":
        target = [rng.randrange(1, 4) if n == 1 else n for n in shape]
        return [name, [2] * rng.randrange(2) + target]
    axis = rng.randrange(ndim)
    if name == "index":
        axis = rng.choice([a for a in range(ndim) if shape[a] > 0])
        return [name, axis, rng.randrange(-shape[axis], shape[axis])]
    if name == "reverse":
        return [name, axis - ndim if rng.random() < 0.3 else axis]
    ends = [None, *range(-shape[axis] - 1, shape[axis] + 2)]
    step = rng.choice([1, 1, 1, 2, 3, -1, -2, -3])
    return [name, axis, rng.choice(ends), rng.choice(ends), step]


def random_views(rng: random.Random, count: int) -> Iterator[Json]:
    for number in range(count):
        ndim = rng.choice([1, 2, 3, 3, 4])
        shape = [rng.randrange(1, 8) for _ in range(ndim)]
        layout = rng.sample(range(ndim), ndim)
        index = [rng.randrange(n) for n in shape]
        alignment = rng.choice([1, 8, 12, 32, 64])
        request = plan_request(shape, rng.choice([1, 4, 8, 12]), layout, alignment, index)
        lower = [rng.randrange(n + 1) for n in shape]
        halo = [(low, rng.randrange(n - low + 1)) for low, n in zip(lower, shape)]
        view = whole(request, default_dims(ndim), halo)
        operations: list[list[Any]] = []
        for _ in range(rng.randrange(1, 5)):
            operations.append(random_operation(rng, view.shape))
            view = apply(view, operations[-1])
        yield view_case(f"random_{number}", request, operations, halo)


# -- errors -----------------------------------------------------------------------------------------------------------


def error_cases() -> Iterator[Json]:
    def plan(name: str, request: Json, *mentions: str) -> Json:
        return {
            "kind": "plan",
            "name": name,
            "request": request,
            "error": "ValueError",
            "mentions": mentions,
        }

    def view(name: str, operation: list[Any], error: str, *mentions: str) -> Json:
        request = plan_request((3, 4, 0), 8)
        return {
            "kind": "view", "name": name, "request": request, "operation": operation, "error": error, "mentions": mentions,
        }  # fmt: skip

    def dims(name: str, given: Any, ndim: int, *mentions: str) -> Json:
        return {
            "kind": "dims",
            "name": name,
            "given": given,
            "ndim": ndim,
            "error": "ValueError",
            "mentions": mentions,
        }

    def halo(name: str, given: list[list[int]], shape: list[int], *mentions: str) -> Json:
        return {
            "kind": "halo",
            "name": name,
            "given": given,
            "shape": shape,
            "error": "ValueError",
            "mentions": mentions,
        }

    limit = str(LIMIT_BYTES)
    overflows = {
        "product_past_2_to_the_63": plan_request((2**21, 2**21, 2**21), 8),
        "product_of_exactly_2_to_the_63": plan_request((2**32, 2**31), 1),
        "product_past_2_to_the_64": plan_request((2**32, 2**32, 2), 1),
        "count_without_bytes": plan_request((2**32, 2**32), 0),
        "itemsize": plan_request((2**40,), 2**40),
        "rounding_up": plan_request((1, LIMIT_BYTES - 3), 1, (0, 1), 64),
        "rounding_up_and_rows": plan_request((2**44, 1), 1, (0, 1), 2**20),
        "extent_zero_does_not_hide_it": plan_request((2**62, 0, 2**62), 8),
    }
    for name, request in overflows.items():
        try:
            plan_answer(request)
        except OverflowError:
            pass
        else:
            raise AssertionError(f"{name} does fit")
        shape = (
            "("
            + ", ".join(map(str, request["shape"]))
            + ("," if len(request["shape"]) == 1 else "")
            + ")"
        )
        yield plan(f"overflow_{name}", request, shape, str(request["itemsize_bytes"]), limit)

    yield plan("extent_negative", plan_request((3, -1), 8), "shape[1]", "-1")
    yield plan("extent_most_negative", plan_request((-(2**63),), 8), "shape[0]", str(-(2**63)))
    yield plan("itemsize_negative", plan_request((3,), -8), "itemsize_bytes", "-8")
    yield plan("alignment_zero", plan_request((3,), 8, None, 0), "alignment_bytes", "0", "1048576")
    yield plan("alignment_negative", plan_request((3,), 8, None, -64), "alignment_bytes", "-64")
    yield plan("alignment_too_large", plan_request((3,), 8, None, 2**20 + 1), "1048577", "1048576")
    yield plan("layout_repeats", plan_request((3, 4, 5), 8, (0, 0, 1)), "layout", "(0, 0, 1)")
    yield plan("layout_too_short", plan_request((3, 4, 5), 8, (0, 1)), "layout", "(0, 1)")
    yield plan("layout_too_long", plan_request((3, 4), 8, (2, 0, 1)), "layout", "(2, 0, 1)")
    yield plan("layout_rank_too_large", plan_request((3, 4), 8, (0, 2)), "layout", "(0, 2)")
    yield plan("layout_rank_negative", plan_request((3, 4), 8, (0, -1)), "layout", "(0, -1)")
    yield plan("layout_of_no_dimensions", plan_request((), 8, (0,)), "layout", "(0,)")
    yield plan(
        "aligned_index_past_the_end",
        plan_request((3, 4), 8, None, 8, (0, 4)),
        "aligned_index[1]",
        "4",
    )
    yield plan(
        "aligned_index_negative",
        plan_request((3, 4), 8, None, 8, (-1, 0)),
        "aligned_index[0]",
        "-1",
    )
    yield plan(
        "aligned_index_in_nothing",
        plan_request((3, 0), 8, None, 8, (0, 1)),
        "aligned_index[1]",
        "1",
    )
    yield plan(
        "aligned_index_too_short", plan_request((3, 4), 8, None, 8, (0,)), "aligned_index", "1", "2"
    )
    yield plan(
        "aligned_index_too_long", plan_request((3,), 8, None, 8, (0, 0)), "aligned_index", "2", "1"
    )

    yield dims("sign", "IJ-", 3, '"-"')
    yield dims("blank", ["a b"], 1, '"a b"')
    yield dims("digit_first", ["1st"], 1, '"1st"')
    yield dims("too_long_a_name", ["x" * 64], 1, "63")
    yield dims("repeated_axis", "IJI", 3, '"I"', "dims[2]", "dims[0]")
    yield dims("repeated_number", ["10", "I", "10"], 3, '"10"')
    yield dims("leading_zero", ["I", "01"], 2, '"01"')
    yield dims("negative_number", ["-1"], 1, '"-1"')
    yield dims("signed_number", ["+1"], 1, '"+1"')
    yield dims("space", ["I", " 1"], 2, '" 1"')
    yield dims("empty_name", ["I", ""], 2, '""')
    yield dims("hyphen", ["I-J"], 1, '"I-J"')
    yield dims("too_large_a_number", ["2147483648"], 1, '"2147483648"', "2147483647")
    yield dims("vast_number", ["9" * 30], 1, "9" * 30)
    yield dims("too_few", "IJ", 3, "2", "3")
    yield dims("too_many", ["I", "J", "K"], 2, "3", "2")
    yield dims("far_too_many", [str(n) for n in range(65)], 64, "65", "64")

    yield halo("negative_lower", [[-1, 0]], [3], "halo[0]", "(-1, 0)")
    yield halo("negative_upper", [[0, 0], [0, -2]], [3, 4], "halo[1]", "(0, -2)")
    yield halo("wider_than_the_extent", [[2, 2]], [3], "halo[0]", "(2, 2)", "3")
    yield halo("sum_past_2_to_the_63", [[2**63 - 1, 2**63 - 1]], [3], "halo[0]", "3")
    yield halo("too_short", [[0, 0]], [3, 4], "1", "2")
    yield halo("too_long", [[0, 0], [0, 0]], [3], "2", "1")

    yield {"kind": "preset", "name": "one_letter_wrong", "given": "gt:cpu_kfrist", "error": "ValueError",
           "mentions": ["gt:cpu_kfrist", 'did you mean "gt:cpu_kfirst"']}  # fmt: skip
    yield {"kind": "preset", "name": "case", "given": "Numpy", "error": "ValueError",
           "mentions": ['did you mean "numpy"']}  # fmt: skip
    yield {"kind": "preset", "name": "part_of_a_name", "given": "ifirst", "error": "ValueError",
           "mentions": ["gt:cpu_ifirst"]}  # fmt: skip
    yield {"kind": "preset", "name": "nothing_like_it", "given": "zzzzzzzzzz", "error": "ValueError",
           "mentions": ["zzzzzzzzzz", "gt:gpu"]}  # fmt: skip

    yield view("index_past_the_end", ["index", 0, 3], "IndexError", "3", "dimension 0")
    yield view("index_before_the_start", ["index", 1, -5], "IndexError", "-5", "dimension 1")
    yield view("index_into_nothing", ["index", 2, 0], "IndexError", "extent is 0")
    yield view("axis_past_the_end", ["index", 3, 0], "IndexError", "axis", "3")
    yield view("axis_before_the_start", ["reverse", -4], "IndexError", "axis", "-4")
    yield view("step_zero", ["slice", 0, None, None, 0], "ValueError", "step")
    yield view("transpose_repeats", ["transpose", [0, 0, 1]], "ValueError", "(0, 0, 1)")
    yield view("transpose_too_short", ["transpose", [0, 1]], "ValueError", "(0, 1)")
    yield view("transpose_axis", ["transpose", [0, 1, 3]], "IndexError", "3")
    yield view("newaxis_position", ["newaxis", 5], "IndexError", "5")
    yield view(
        "broadcast_extent", ["broadcast_to", [3, 5, 0]], "ValueError", "(3, 5, 0)", "from 4 to 5"
    )
    yield view("broadcast_loses_dimensions", ["broadcast_to", [4, 0]], "ValueError", "(4, 0)")
    yield view("broadcast_negative", ["broadcast_to", [-1, 3, 4, 0]], "ValueError", "(-1, 3, 4, 0)")
    yield view("broadcast_too_large", ["broadcast_to", [2**60, 3, 4, 0]], "ValueError", limit)
    yield view(
        "subscript_too_many",
        ["subscript", [0, 0, {"slice": [None, None, 1]}, 0]],
        "IndexError",
        "4",
        "3",
    )
    yield view("subscript_two_ellipses", ["subscript", ["...", "..."]], "IndexError", "2")
    yield view(
        "subscript_index",
        ["subscript", ["...", 4, {"slice": [None, None, 1]}]],
        "IndexError",
        "dimension 1",
        "4",
    )
    yield view("subscript_too_many_new_axes", ["subscript", [None] * 62], "IndexError", "65", "64")


# -- files ------------------------------------------------------------------------------------------------------------


def files() -> dict[str, str]:
    """The text of each file by name."""
    rng = random.Random(20260821)  # noqa: S311 (reproducible on purpose)
    cases = {
        "layout_plans.json": [*named_plans(), *random_plans(rng, 300)],
        "layout_dims.json": [*dims_cases()],
        "layout_presets.json": [*preset_cases()],
        "layout_views.json": [*named_views(), *random_views(rng, 300)],
        "layout_errors.json": [*error_cases()],
    }
    return {name: as_text(name, rows) for name, rows in cases.items()}


def as_text(name: str, cases: list[Json]) -> str:
    """One case per line, so that a change is a line in a diff."""
    kind = name.removeprefix("layout_").removesuffix(".json")
    lines = ",\n".join("    " + json.dumps(case, ensure_ascii=True) for case in cases)
    return f'{{\n  "$schema": "layout.schema.json",\n  "kind": "{kind}",\n  "cases": [\n{lines}\n  ]\n}}\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
