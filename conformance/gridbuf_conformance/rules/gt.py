"""Checks of GT4Py's conventions and of the storage spec, GT-15 … GT-24: did the producer give what was asked?"""

from __future__ import annotations

from ..descriptors import (
    Descriptor,
    Rejected,
    descriptors_of,
    of_array_interface,
    sample_indices,
)
from ..elements import agree
from ..outcomes import Verdict
from .ai import shown
from .common import reach_verdict
from .registry import check
from .subject import Subject, overlap
from .verdicts import drawing_of, fail, ok, unsupported, untested

_NO_PLAN = "needs a producer: nobody asked for this object"
_NAMES = ("I", "J", "K")
_PAIR_LIMIT = 4096


def _arrays(s: Subject) -> dict[str, Descriptor]:
    """The descriptors that can be held against the plan; raw lending says nothing of shape and type."""
    return {name: a for name, a in s.arrays.items() if not a.is_raw and not a.is_copy}


def _placed(s: Subject) -> Descriptor | None:
    """The array whose placement is judged: the first interface that has the plan's shape."""
    shape = s.plan.shape
    return next((a for a in _arrays(s).values() if a.shape == shape and not a.is_indirect), None)


@check("GT-15", once=True)
def numpy_gets_a_view(s: Subject) -> Verdict:
    if any(name in s.arrays for name in ("AI", "AS", "PB")):
        return ok()
    facts = s.observation.get("array_attribute")
    held = s.arrays.get("DL")
    if facts is None or "error" in facts or held is None or held.is_empty:
        return unsupported("numpy.asarray has no way to this object's memory")
    try:
        array = of_array_interface(facts, None)
    except Rejected:
        return unsupported("__array__ returns something without array interface")
    if overlap(array, held):
        return ok()
    return fail("a view from numpy.asarray", "__array__() returns a copy")


@check("GT-16", once=True)
def aligned_element_is_aligned(s: Subject) -> Verdict:
    array, reason = _alignment_subject(s)
    if array is None:
        return unsupported(reason)
    index, alignment = s.plan.aligned_element, s.plan.alignment_size
    remainder = (array.address + array.offset_of(index)) % alignment
    if not remainder:
        return ok()
    return fail(
        f"element {index} on a multiple of {alignment} bytes",
        f"{remainder} bytes past one",
        drawing=drawing_of(array, (index, "aligned")),
    )


def _alignment_subject(s: Subject) -> tuple[Descriptor | None, str]:
    if s.plan is None:
        return None, _NO_PLAN
    if s.plan.alignment_size == 1:
        return None, "the plan asks for no alignment"
    array = _placed(s)
    if array is None or array.is_empty:
        return None, "no elements, or no interface has the plan's shape"
    return array, ""


@check("GT-17", once=True)
def strides_follow_the_layout(s: Subject) -> Verdict:
    if s.plan is None or s.plan.layout is None:
        return unsupported(_NO_PLAN if s.plan is None else "the plan asks for no layout")
    array = _placed(s)
    if array is None or array.is_empty:
        return unsupported("no elements, or no interface has the plan's shape")
    axes = [axis for axis, extent in enumerate(array.shape) if extent > 1]
    by_rank = sorted(axes, key=lambda axis: s.plan.layout[axis])
    strides = [abs(array.strides[axis]) for axis in by_rank]
    if strides == sorted(strides, reverse=True):
        return ok()
    return fail(
        f"layout {s.plan.layout}: strides falling over axes {tuple(by_rank)}",
        f"byte strides {array.strides}",
        drawing=drawing_of(array),
    )


@check("GT-18", once=True)
def dimension_names_are_the_plans(s: Subject) -> Verdict:
    value = s.observation.get("gt4py", {}).get("__gt_dims__", {"t": "none"})
    if value.get("t") not in ("tuple", "list", "str"):
        return unsupported("no __gt_dims__")
    names = (
        list(value["value"]) if value["t"] == "str" else [e.get("value") for e in value["items"]]
    )
    for name in names:
        decimal = (
            isinstance(name, str) and name.isascii() and name.isdigit() and str(int(name)) == name
        )
        if name not in _NAMES and not decimal:
            return fail("I, J, K and decimal integers", shown(value))
    asked = s.plan.dims if s.plan is not None else None
    if asked is not None and list(asked) != names:
        return fail(f"names {asked}", shown(value))
    return ok()


@check("GT-19", once=True)
def origin_is_the_negated_start(s: Subject) -> Verdict:
    facts = s.observation.get("gt4py", {})
    starts, origin = facts.get("domain_starts"), facts.get("__gt_origin__", {"t": "none"})
    if not starts or any(start["t"] != "int" for start in starts):
        return unsupported("no domain with bounded ranges")
    if origin.get("t") != "tuple":
        return unsupported("no __gt_origin__")
    wanted = [-start["value"] for start in starts]
    if [entry.get("value") for entry in origin["items"]] == wanted:
        return ok()
    return fail(f"origin {tuple(wanted)}", shown(origin))


@check("GT-20", once=True)
def the_plan_is_met(s: Subject) -> Verdict:
    if s.plan is None:
        return unsupported(_NO_PLAN)
    arrays = _arrays(s)
    if not arrays:
        return unsupported("no interface describes this array")
    for expected, actual, met in _asked_and_given(s, arrays):
        if not met:
            return fail(expected, actual)
    return ok()


def _asked_and_given(s: Subject, arrays: dict[str, Descriptor]):
    """(asked, given, whether any interface gives it): what no interface gives was substituted."""
    plan, every = s.plan, list(arrays.values())
    first = every[0]
    yield f"shape {plan.shape}", f"shape {first.shape}", any(a.shape == plan.shape for a in every)
    asked = s.asked_element
    yield f"elements of {asked}", f"{first.element}", any(agree(a.element, asked) for a in every)
    yield "host memory", f"device {first.device}", any(a.is_host for a in every)
    claims = [a.readonly for a in every if a.readonly is not None]
    words = {True: "read-only", False: "writable"}
    given = words[claims[0]] if claims else ""
    yield words[plan.readonly], given, not claims or plan.readonly in claims


@check("GT-21", once=True)
def results_share_no_memory(s: Subject) -> Verdict:
    if s.plan is None or "second" not in s.observation:
        return unsupported(_NO_PLAN)
    if s.plan.readonly:
        return unsupported("what nobody can write may be shared")
    for name, other in _second(s).items():
        array = s.arrays.get(name)
        if array is None or array.readonly or array.is_copy or not overlap(array, other):
            continue
        if _share_an_element(array, other):
            return fail("memory of its own for each result", f"two results share elements ({name})")
    return ok()


def _second(s: Subject) -> dict[str, Descriptor]:
    second = s.observation["second"]
    return descriptors_of(second) if "pb" in second else {}


def _share_an_element(one: Descriptor, other: Descriptor) -> bool:
    """Whether two arrays with overlapping hulls have a byte of an element in common.

    Interleaved arrays do not. Small arrays are compared byte by byte; of large ones only those count whose
    sampled elements meet.
    """
    bytes_of = [
        {
            a.address + a.offset_of(index) + k
            for index in sample_indices(a.shape, _PAIR_LIMIT)
            for k in range(a.itemsize)
        }
        for a in (one, other)
    ]
    return not bytes_of[0].isdisjoint(bytes_of[1])


@check("GT-22", once=True)
def the_whole_slab_is_aligned(s: Subject) -> Verdict:
    array, reason = _alignment_subject(s)
    if array is None:
        return unsupported(reason)
    contiguous = _contiguous_axis(s, array)
    if array.ndim < 2 or contiguous is None:
        return unsupported("fewer than two dimensions, or no contiguous one")
    alignment = s.plan.alignment_size
    for axis, (stride, extent) in enumerate(zip(array.strides, array.shape)):
        if axis != contiguous and extent > 1 and stride % alignment:
            index = list(s.plan.aligned_element)
            index[axis] = index[axis] + 1 if index[axis] + 1 < extent else index[axis] - 1
            return fail(
                f"every element with index {index[contiguous]} in dimension {contiguous} on a "
                f"multiple of {alignment} bytes",
                f"the stride of dimension {axis} is {stride} bytes: element {tuple(index)} is not",
                drawing=drawing_of(
                    array, (s.plan.aligned_element, "aligned"), (tuple(index), "not")
                ),
            )
    return ok()


def _contiguous_axis(s: Subject, array: Descriptor) -> int | None:
    """The dimension that the layout makes contiguous, else the one with the smallest stride."""
    if s.plan.layout is not None:
        return s.plan.layout.index(array.ndim - 1) if array.ndim else None
    axes = [axis for axis, extent in enumerate(array.shape) if extent > 1]
    return min(axes, key=lambda axis: abs(array.strides[axis]), default=None)


@check("GT-23", once=True)
def same_request_same_plan(s: Subject) -> Verdict:
    if s.plan is None or "second" not in s.observation:
        return unsupported(_NO_PLAN)
    alignment = s.plan.alignment_size
    index = s.plan.aligned_element
    judged = False
    for name, other in _second(s).items():
        array = s.arrays.get(name)
        if array is None or array.is_raw or array.is_copy or array.shape != s.plan.shape:
            continue
        judged = True
        if other.shape != array.shape or other.meaningful_strides != array.meaningful_strides:
            return fail(f"strides {array.strides} again", f"strides {other.strides} ({name})")
        if array.is_empty:
            continue
        places = [(a.address + a.offset_of(index)) % alignment for a in (array, other)]
        if places[0] != places[1]:
            return fail(
                f"{places[0]} bytes past a multiple of {alignment} again", f"{places[1]} ({name})"
            )
    return ok() if judged else unsupported("no interface describes both results")


@check("GT-24", once=True)
def hull_is_mapped_memory(s: Subject) -> Verdict:
    if s.plan is None:
        return unsupported(_NO_PLAN)
    names = [name for name in ("PB", "AI", "AS", "DL") if name in s.arrays]
    if not names:
        return unsupported("no interface describes this array")
    if not s.observation["map_known"]:
        return untested("this system does not tell what is mapped")
    verdict = reach_verdict(s, names[0])
    if verdict.failed:
        size = s.plan.nbytes
        return fail(
            f"{size} bytes of mapped memory",
            verdict.actual,
            note="2^31 or 2^32 bytes and more are asked for on purpose" if size >= 2**30 else "",
            drawing=verdict.drawing,
        )
    return verdict
