"""Plans drawn with Hypothesis, and the order in which they shrink.

Four kinds of plans are drawn inside a producer's capabilities:

- `general_plans`: one to a few dimensions, small extents, every key varied together;
- `boundary_plans`: where libraries go wrong: extents 0, 1, primes and 2^k ± 1, alignments near the
  limits, chains of views with negative and zero strides;
- `rank_plans`: no dimensions, and very many;
- `huge_plans`: sizes, extents and strides around 2^31 and 2^32, where 32 bits wrap; their memory is
  asked for, never touched.

Two are lists. `declared_plans` has, for each declared capability, the simplest plan that uses it.
`huge_plans` has plans that differ in what they mean: so few draws would leave some out.

How it shrinks: the simplest plan is one dimension of extent 1, float64, row-major, unaligned. Each
axis is drawn as one tuple (extent, place in the layout, name, aligned index, halo), so that a whole
axis vanishes in one step; choices are listed simplest first. Bounds are computed from the parts
drawn before; nothing is ever drawn and then thrown away.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from math import lcm, prod
from random import Random
from typing import Any, NamedTuple

import hypothesis.errors
from hypothesis.internal.conjecture import providers as hypothesis_providers

from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from .plan import DTYPES, UNTOUCHED_FROM_BYTES, Plan
from .producer import Capabilities
from .views import ViewMap

_ELEMENT_LIMIT = 2048
"""Elements of a plan that is walked: few enough for a walk in pure Python."""
_PADDED_LIMIT_BYTES = 2**26
"""Padding of a plan that is walked: huge pages make every padded row as dear as its padding."""
_SMALL_EXTENTS = (1, 2, 3, 4, 5, 7, 6, 8)
_BOUNDARY_EXTENTS = (1, 0, 2, 3, 7, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 13, 61, 251, 257)
_RANK_EXTENTS = (1, 1, 1, 2, 1, 1, 0)
_ALIGNMENTS_BYTES = (
    *(1, 64, 2, 4, 8, 16, 32, 128, 256, 512, 1024, 4096),
    *(3, 5, 6, 7, 12, 20, 24, 48, 96, 100, 1000, 3000),
)
_BOUNDARY_ALIGNMENTS_BYTES = (
    *(1, 64, 63, 65, 128, 127, 129, 4096, 4095, 4097),
    *(2**16, 2**20 - 1, 2**20),
)
_HUGE_BYTES = (2**33, 2**31, 2**32, 2**31 - 2**12, 2**31 + 2**12, 2**32 - 2**12, 2**32 + 2**12)
_HUGE_BOUNDS = (2**31, 2**31 + 1, 2**32 - 2**13, 2**32, 2**32 + 1)
_HUGE_ALIGNMENTS_BYTES = (1, 32, 64, 128, 12)
_OTHER_NAMES = ("Cell", "Edge", "K", "Vertex", "time", "tracer", "E2V")
_MAX_FILL = 2**16
DRAWS_PER_PLAN = 3
"""How many draws `sample` makes for each plan it is to return."""
_CHANGES_OF_A_NEW_PLAN = 3


class _Axis(NamedTuple):
    """The drawn values of one axis; the plan brings the numbers into range."""

    extent: int
    place: int
    aligned: int
    name: int
    halo: tuple[int, int]


class _Asked(NamedTuple):
    """Which of the keys that say something of each axis one plan uses."""

    layout: bool
    aligned_index: bool
    dims: bool
    halo: bool


def general_plans(can: Capabilities) -> st.SearchStrategy[Plan]:
    """Plans of usual shapes."""
    most = max(can.min_ndim, min(can.max_ndim, 4))
    counts = range(min(max(can.min_ndim, 1), most), most + 1)
    return _plans(can, _SMALL_EXTENTS, counts, _alignments(can, _ALIGNMENTS_BYTES), most_views=2)


def boundary_plans(can: Capabilities) -> st.SearchStrategy[Plan]:
    """Plans of up to three dimensions at the limits of extents, alignments and views."""
    most = max(can.min_ndim, min(can.max_ndim, 3))
    counts = range(min(max(can.min_ndim, 1), most), most + 1)
    alignments = _alignments(can, _BOUNDARY_ALIGNMENTS_BYTES)
    return _plans(can, _BOUNDARY_EXTENTS, counts, alignments, most_views=3)


def rank_plans(can: Capabilities) -> st.SearchStrategy[Plan] | None:
    """Plans without dimensions and with very many; None if the capabilities allow neither."""
    counts = [n for n in (can.max_ndim, 0, 5, 8, 16, 32, 33) if can.min_ndim <= n <= can.max_ndim]
    counts = [n for n in dict.fromkeys(counts) if n > 4 or n == 0]
    if not counts:
        return None
    alignments = _alignments(can, _ALIGNMENTS_BYTES)
    return _plans(can, _RANK_EXTENTS, counts, alignments, most_views=1)


def huge_plans(can: Capabilities, count: int, seed: int) -> list[Plan]:
    """Up to `count` plans of 2 to 8 GiB, without content; none if the capabilities exclude all.

    Each next plan has the most pairs of properties (`_meaning`) that no plan before it has.
    """
    kinds: dict[tuple[Any, ...], Plan] = {}
    for plan in _huge_candidates(can, Random(seed)):
        kinds.setdefault(_meaning(plan), plan)
    plans: list[Plan] = []
    seen: set[Any] = set()
    while kinds and len(plans) < count:
        new = {kind: {*combinations(enumerate(kind), 2)} - seen for kind in kinds}
        kind = max(kinds, key=lambda kind: len(new[kind]))
        plans.append(kinds.pop(kind))
        seen |= new[kind]
    return plans


def simplest_plan(can: Capabilities) -> Plan:
    """The plan that every failure should come down to: `Plan()`, as far as it can be asked."""
    dtype = _dtypes(can)[0]
    return Plan(
        shape=(1,) * max(can.min_ndim, min(1, can.max_ndim)),
        dtype=dtype,
        device=can.asked_devices[0],
        byteorder=_byteorders(can, dtype)[0],
        alignment_size=can.alignment_range_bytes[0],
        readonly=(can.readonly or (False,))[0],
    )


class Declared(NamedTuple):
    """A declared capability: its name, the simplest plan that uses it, and which plans do."""

    name: str
    plan: Plan
    used_by: Callable[[Plan], bool]


def declared_plans(can: Capabilities) -> list[Declared]:
    """For each declared capability the simplest plan that uses it."""
    shape = (2, 3, 4)[: max(min(3, can.max_ndim), can.min_ndim)]
    shape += (1,) * (can.min_ndim - len(shape))
    if can.max_extent is not None:
        shape = tuple(min(extent, can.max_extent) for extent in shape)
    simplest = simplest_plan(can).replaced(shape=shape)
    changes: list[dict[str, Any]] = [{"dtype": name} for name in can.dtypes or ()]
    changes += [{"readonly": value} for value in can.readonly or ()]
    changes += [{"device": name} for name in can.devices or ()]
    swappable = [name for name in _dtypes(can) if "swapped" in _byteorders(can, name)]
    if can.byteorders and swappable:
        changes.append({"byteorder": "swapped", "dtype": swappable[0]})
    changes += _declared_changes(can, simplest)
    return [_declared(simplest, change) for change in changes]


def _declared(simplest: Plan, change: dict[str, Any]) -> Declared:
    """A plan uses the capability if it has the first changed key's value (for keys of the storage
    spec: if it asks for that key at all)."""
    key, value = next(iter(change.items()))
    default = getattr(Plan(), key)
    argument = key + ("s" if key in ("dtype", "device", "byteorder", "layout") else "")
    argument = "alignment_bytes" if key == "alignment_size" else argument
    plan = simplest.replaced(**change)
    if key in ("dtype", "readonly", "device", "byteorder"):
        return Declared(f"{argument}: {value}", plan, lambda plan: plan[key] == value)
    return Declared(argument, plan, lambda plan: plan[key] != default)


def _declared_changes(can: Capabilities, simplest: Plan) -> list[dict[str, Any]]:
    """The part of `declared_plans` for the keys of the storage spec: what each changes."""
    ndim = simplest.ndim
    most_bytes = can.alignment_range_bytes[1]
    fortran = tuple(reversed(range(ndim)))
    rotated = tuple((axis + 1) % ndim for axis in range(ndim))
    last = tuple(max(extent - 1, 0) for extent in simplest.shape)
    cases: dict[str, list[dict[str, Any]]] = {
        "layout": [{"layout": fortran}] + ([] if can.layouts == "CF" else [{"layout": rotated}]),
        "alignment_size": [{"alignment_size": most_bytes}],
        "aligned_index": [{"aligned_index": last, "alignment_size": most_bytes}],
        "dims": [{"dims": _names((key,) * ndim)} for key in (0, 1)],
        "halo": [{"halo": tuple((min(1, n), 0) for n in simplest.shape)}],
    }
    return [change for key, changes in cases.items() if key in can.asked_keys for change in changes]


# -- the parts of a plan ---------------------------------------------------------------


def _axes(
    can: Capabilities, extents: Sequence[int], counts: Sequence[int]
) -> st.SearchStrategy[list[_Axis]]:
    """Lists of as many axes as `counts` allows.

    An axis is made of three choices only, its smaller numbers being digits of one: Hypothesis is
    sure to find that an element of a list can go if the element is made of few choices.
    """
    possible = [n for n in extents if can.max_extent is None or n <= can.max_extent]
    axis = st.builds(
        _axis, st.sampled_from(possible), st.integers(0, 8**2 - 1), st.integers(0, 8**3 - 1)
    )
    if counts == range(counts[0], counts[-1] + 1):
        return st.lists(axis, min_size=counts[0], max_size=counts[-1])
    return st.sampled_from(counts).flatmap(lambda n: st.lists(axis, min_size=n, max_size=n))


def _axis(extent: int, placing: int, naming: int) -> _Axis:
    """An axis from an extent and two octal numbers; the name has four bits, one for the halo."""
    halo = (naming % 8, naming // 8 % 8)
    return _Axis(extent, place=placing % 8, aligned=placing // 8, name=naming // 32, halo=halo)


def _alignments(can: Capabilities, listed: Sequence[int]) -> st.SearchStrategy[int]:
    low, high = can.alignment_range_bytes
    possible = [bytes_ for bytes_ in listed if low <= bytes_ <= high] or [low, high]
    if high == 1:
        return st.just(1)
    return st.one_of(st.sampled_from(possible), st.integers(low, min(high, low + 4096)))


def _dtypes(can: Capabilities) -> list[str]:
    """The element types that can be asked, simplest first; uncommon ones only if declared."""
    most_bytes = can.max_nbytes or UNTOUCHED_FROM_BYTES
    return [
        name
        for name, dtype in DTYPES.items()
        if (dtype.is_common if can.dtypes is None else name in can.dtypes)
        and dtype.itemsize <= most_bytes
        and _byteorders(can, name)
    ]


def _byteorders(can: Capabilities, dtype: str) -> list[str]:
    """The byte orders that can be asked of an element type, the native one first."""
    possible = ("native", "swapped") if DTYPES[dtype].has_byteorder else ("native",)
    return [order for order in possible if order in (can.byteorders or possible)]


def _plans(
    can: Capabilities,
    extents: Sequence[int],
    counts: Sequence[int],
    alignments: st.SearchStrategy[int],
    *,
    most_views: int,
) -> st.SearchStrategy[Plan]:
    axes = _axes(can, extents, counts)
    dtypes = st.sampled_from(_dtypes(can))
    readonly = st.sampled_from(can.readonly or (False, True))

    @st.composite
    def draw_one(draw: st.DrawFn) -> Plan:
        drawn = draw(axes)
        dtype = draw(dtypes)
        orders = _byteorders(can, dtype)
        byteorder = orders[draw(st.integers(0, 1)) % len(orders)]
        shape = _bounded_shape([axis.extent for axis in drawn], _element_limit(can, dtype))
        asked = _draw_asked(draw, can)
        alignment_bytes = _affordable(draw(alignments), can, shape, DTYPES[dtype].itemsize)
        return Plan(
            shape=shape,
            dtype=dtype,
            byteorder=byteorder,
            alignment_size=alignment_bytes,
            readonly=draw(readonly),
            device=_draw_device(draw, can),
            fill=draw(st.integers(0, _MAX_FILL)),
            views=_draw_views(draw, shape, draw(st.integers(0, most_views))),
            **_placement(drawn, shape, asked, can, alignment_bytes),
        )

    return draw_one()


def _affordable(
    alignment_bytes: int, can: Capabilities, shape: Sequence[int], itemsize: int
) -> int:
    """The alignment, halved until the padding fits (each row may grow by the lcm)."""
    rows = prod(sorted(shape)[1:])
    lowest = can.alignment_range_bytes[0]
    while (
        alignment_bytes // 2 >= lowest
        and rows * lcm(alignment_bytes, itemsize) > _PADDED_LIMIT_BYTES
    ):
        alignment_bytes //= 2
    return alignment_bytes


def _draw_device(draw: st.DrawFn, can: Capabilities) -> str | None:
    """The kind of memory; where there is one only, nothing is drawn."""
    first, *others = can.asked_devices
    return draw(st.sampled_from(can.asked_devices)) if others else first


def _draw_asked(draw: st.DrawFn, can: Capabilities) -> _Asked:
    keys = can.asked_keys
    return _Asked(*(key in keys and draw(st.booleans()) for key in _Asked._fields))


def _placement(
    axes: Sequence[_Axis],
    shape: tuple[int, ...],
    asked: _Asked,
    can: Capabilities,
    alignment_bytes: int,
) -> dict[str, Any]:
    """The keys for the places of elements and the names of axes, from the axes' numbers."""
    placement: dict[str, Any] = {}
    if asked.layout:
        placement["layout"] = _layout_map([axis.place for axis in axes], can)
    if asked.aligned_index and alignment_bytes > 1:
        bounds = zip(axes, shape)
        placement["aligned_index"] = tuple(min(a.aligned, max(n - 1, 0)) for a, n in bounds)
    if asked.dims:
        placement["dims"] = _names([axis.name for axis in axes])
    if asked.halo:
        halos = zip((axis.halo for axis in axes), shape)
        placement["halo"] = tuple(
            (min(lower, n), min(upper, n - min(lower, n))) for (lower, upper), n in halos
        )
    return placement


def _layout_map(places: Sequence[int], can: Capabilities) -> tuple[int, ...]:
    """The rank of each axis when axes are ordered by place; equal places stay row-major."""
    ndim = len(places)
    if can.layouts == "CF":
        return tuple(reversed(range(ndim))) if any(places) else tuple(range(ndim))
    order = sorted(range(ndim), key=lambda axis: places[axis])
    return tuple(order.index(axis) for axis in range(ndim))


def _names(keys: Sequence[int]) -> tuple[str, ...]:
    """Different dimension names, picked by the keys; "10", which comes after "2", is one.

    An odd first key adds the names of unstructured grids and of tracers. They are not in every
    plan, because rules on the order of I, J, K and numbers do not judge them.
    """
    pool = [*"IJK", "0", "1", "2", "10", *map(str, range(3, 10)), *map(str, range(11, 65))]
    if keys and keys[0] % 2:
        pool = list(dict.fromkeys((*_OTHER_NAMES, *pool)))
    nearest = max(len(keys), 8)
    return tuple(pool.pop(key // 2 % (nearest - position)) for position, key in enumerate(keys))


def _bounded_shape(extents: Sequence[int], limit: int) -> tuple[int, ...]:
    """The extents, each cut to what the ones before it leave of `limit` elements."""
    shape: list[int] = []
    for extent in extents:
        shape.append(min(extent, limit))
        limit //= max(shape[-1], 1)
    return tuple(shape)


def _element_limit(can: Capabilities, dtype: str) -> int:
    if can.max_nbytes is None:
        return _ELEMENT_LIMIT
    return max(1, min(_ELEMENT_LIMIT, can.max_nbytes // DTYPES[dtype].itemsize))


# -- views -----------------------------------------------------------------------------


def _draw_views(draw: st.DrawFn, shape: tuple[int, ...], count: int) -> tuple[tuple[Any, ...], ...]:
    view, operations = ViewMap.of(shape, ()), []
    for _ in range(count):
        operation = _draw_operation(draw, view.shape)
        view = view.after(operation)
        operations.append(operation)
    return tuple(operations)


def _draw_operation(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """One operation that fits the shape."""
    ndim = len(shape)
    stretchable = [axis for axis in range(ndim) if shape[axis] == 1]
    possible = ["reverse", "slice", "transpose", "empty"] if ndim else []
    possible += ["newaxis"] if ndim < 60 else []
    possible += ["broadcast"] if stretchable else []
    name = draw(st.sampled_from(possible))
    if name == "newaxis":
        return (name, draw(st.integers(0, ndim)))
    if name == "broadcast":
        return (name, draw(st.sampled_from(stretchable)), draw(st.sampled_from((2, 3, 1, 0))))
    if name == "transpose":
        keys = draw(st.lists(st.integers(0, 7), min_size=ndim, max_size=ndim))
        return (name, tuple(sorted(range(ndim), key=lambda axis: keys[axis])))
    axis = draw(st.integers(0, ndim - 1))
    return (name, axis, *_draw_bounds(draw, shape[axis])) if name == "slice" else (name, axis)


def _draw_bounds(draw: st.DrawFn, extent: int) -> tuple[int, int | None, int]:
    """(start, stop, step) of a slice inside an extent, with steps of either sign."""
    step = draw(st.sampled_from((1, 2, -1, -2, 3, -3)))
    start = draw(st.integers(0, max(extent - 1, 0)))
    if step > 0:
        return (start, draw(st.integers(start, extent)), step)
    return (start, None, step)


# -- huge plans ------------------------------------------------------------------------


def _huge_candidates(can: Capabilities, random: Random) -> Iterator[Plan]:
    native = [name for name in _dtypes(can) if "native" in _byteorders(can, name)]
    single = [name for name in native[4:] if DTYPES[name].itemsize == 1][:1]  # most elements
    for name in native[:4] + single:
        itemsize = DTYPES[name].itemsize
        for shape in _huge_shapes(can, itemsize):
            axes = range(len(shape))
            places = [axes[::-1], random.sample(axes, len(axes))]
            maps = [_layout_map(keys, can) for keys in places if "layout" in can.asked_keys]
            for layout in (None, *maps) if _is_within(can, shape, itemsize) else ():
                yield Plan(
                    shape=shape,
                    dtype=name,
                    layout=layout,
                    alignment_size=random.choice(_huge_alignments(can, min(shape) * itemsize)),
                    device=random.choice(can.asked_devices),
                    readonly=(can.readonly or (False,))[0],
                    fill=None,
                )


def _huge_shapes(can: Capabilities, itemsize: int) -> Iterator[tuple[int, ...]]:
    """Shapes of one to four dimensions for each size, with ones up to the fewest dimensions."""
    for nbytes in _HUGE_BYTES:
        elements = nbytes // itemsize
        for shape in (
            (1024, 1024, elements // 2**20),
            (elements,),
            (2, elements // 2),
            (2**15 + 1, elements // 2**15),
            (2, 1024, elements // 2**11 + 1),
            (elements // 2**13, 16, 32, 16),
            (3, 1024, 1024, elements // (3 * 2**20) + 1),
        ):
            yield shape + (1,) * (can.min_ndim - len(shape))


def _huge_alignments(can: Capabilities, row_bytes: int) -> list[int]:
    """Alignments that pad the shortest rows by little; the lowest if there is none."""
    low, high = can.alignment_range_bytes
    possible = [n for n in _HUGE_ALIGNMENTS_BYTES if low <= n <= high and 64 * n <= row_bytes]
    return possible or [low]


def _meaning(plan: Plan) -> tuple[Any, ...]:
    """What a huge plan asks of a library: on which side of 2^31 and 2^32 its numbers are."""
    order = (*range(plan.ndim),)
    ranks = order if plan.layout is None else plan.layout
    slowest = min((axis for axis in order if plan.shape[axis] > 1), key=lambda axis: ranks[axis])
    stride_elements = plan.element_count // plan.shape[slowest]
    numbers = (plan.nbytes, max(plan.shape), stride_elements, stride_elements * plan.itemsize)
    sides = (bisect_right(_HUGE_BOUNDS, number) for number in numbers)
    is_other = (ranks != order) + (ranks not in (order, order[::-1]))
    return (*sides, plan.itemsize, plan.ndim, is_other, plan.alignment_size > 1)


def _is_within(can: Capabilities, shape: tuple[int, ...], itemsize: int) -> bool:
    return (
        can.min_ndim <= len(shape) <= can.max_ndim
        and (can.max_extent is None or max(shape) <= can.max_extent)
        and (can.max_nbytes is None or prod(shape) * itemsize <= can.max_nbytes)
    )


# -- running Hypothesis ----------------------------------------------------------------


def sample(strategy: st.SearchStrategy[Plan], count: int, seed: int) -> list[Plan]:
    """Up to `count` different plans, always the same for the same arguments, in the order drawn.

    Hypothesis spends part of its draws on small changes to the draw before. They help it to find
    rare failures of cheap tests; a plan is dear, so a draw that changes fewer than three keys is
    passed over.
    """
    kept: dict[Plan, None] = {}
    last = [Plan(shape=(0,), dtype="bytes5", fill=1)]

    def collect(plan: Plan) -> bool:
        changed = sum(plan[key] != last[0].get(key) for key in plan)
        if changed >= _CHANGES_OF_A_NEW_PLAN and len(kept) < count:
            kept[plan] = None
            last[0] = plan
        return False

    smallest(strategy, collect, DRAWS_PER_PLAN * count, seed)
    return list(kept)


def smallest(
    strategy: st.SearchStrategy[Plan], fails: Callable[[Plan], bool], draws: int, seed: int
) -> Plan | None:
    """The smallest plan for which `fails` holds, if one of `draws` plans does; else None.

    Draws what `sample(strategy, draws // DRAWS_PER_PLAN, seed)` drew until one fails, then shrinks
    that one.
    """
    with _reproducible():
        try:
            return hypothesis.find(
                strategy, fails, settings=_own_settings(draws), random=Random(seed)
            )
        except hypothesis.errors.NoSuchExample:
            return None


def _own_settings(draws: int) -> hypothesis_settings:
    """Every setting that matters is given: nothing comes from the profile of a user's tests."""
    return hypothesis_settings(
        max_examples=draws,
        derandomize=False,  # the seed is given to each search
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        backend="hypothesis",
    )


@contextmanager
def _reproducible() -> Iterator[None]:
    """Keeps the constants of other imported modules out of the drawn plans.

    Hypothesis (from 6.131 on) mixes integer literals of the local modules it finds imported into
    its draws. Plans would then depend on which modules happen to be loaded, and two runs in one
    process could differ.
    """
    name, cache = "_get_local_constants", "CONSTANTS_CACHE"
    if not (hasattr(hypothesis_providers, name) and hasattr(hypothesis_providers, cache)):
        yield
        return
    saved = {key: getattr(hypothesis_providers, key) for key in (name, cache)}
    nothing = type(hypothesis_providers.GLOBAL_CONSTANTS)()
    setattr(hypothesis_providers, name, lambda: nothing)
    setattr(hypothesis_providers, cache, type(saved[cache])(1024))
    try:
        yield
    finally:
        for key, value in saved.items():
            setattr(hypothesis_providers, key, value)
