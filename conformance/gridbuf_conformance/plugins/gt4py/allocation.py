"""Checks of the storage spec, GT-15 … GT-28: does the array have the requested properties?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import gcd
from typing import Any

from ...abi.descriptors import Descriptor, Rejected, sample_indices
from ...interfaces.descriptors import descriptors_of
from ...interfaces.array_interface.descriptor import of_array_interface
from ...interfaces.dlpack_structs.structs import CUDA, CUDA_HOST, CUDA_MANAGED, ROCM
from ...abi.elements import agree
from ...info import NONE, CapsuleInfo, Value
from ...outcomes import Verdict
from ...plan import Plan
from ...plan.plan import is_data_dimension
from ...rules.common import reach_verdict
from ...interfaces.array_interface.dicts import shown
from ...rules.registry import check
from ...rules.scope import speaks_gt4py
from ...rules.subject import Subject, overlap
from ...rules.verdicts import advise, drawing_of, fail, ok, unsupported
from .protocol import arrays_of, entries_of, is_cartesian, names_of, names_of_entries, pair_of

_NO_PLAN = "needs a producer: this object has no plan"
_PAIR_LIMIT = 4096


def _placed(s: Subject) -> Descriptor | None:
    """The array whose placement is judged: the first interface that has the plan's shape."""
    shape = s.asked.shape
    return next((a for a in arrays_of(s).values() if a.shape == shape and not a.is_indirect), None)


@check("GT-15", once=True)
def numpy_gets_a_view(s: Subject) -> Verdict:
    if any(name in s.arrays for name in ("AI", "AS", "PB", "CAI")):
        return ok()
    info = s.observation.array_attribute
    held = s.arrays.get("DL")
    if info is None or info.error is not None or held is None or held.is_empty:
        return unsupported("numpy.asarray has no way to this object's memory")
    try:
        array = of_array_interface(info, None)
    except Rejected:
        return unsupported("__array__ returns something without array interface")
    if overlap(array, held):
        return ok()
    result = fail if speaks_gt4py(s.observation) else advise
    return result("a view from numpy.asarray", "__array__() returns a copy")


@check("GT-16", once=True)
def aligned_element_is_aligned(s: Subject) -> Verdict:
    array, reason = _alignment_subject(s)
    if array is None:
        return unsupported(reason)
    index, alignment = s.asked.aligned_element, s.asked.alignment_size
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
    if s.plan.aligned_index is None and _has_no_domain(s.plan):
        return None, "the halo leaves no domain, and the plan names no aligned index"
    array = _placed(s)
    if array is None or array.is_empty:
        return None, "no elements, or no interface has the plan's shape"
    return array, ""


def _has_no_domain(plan: Plan) -> bool:
    """Whether the halo of a plan covers a dimension."""
    return any(lower + upper >= n for (lower, upper), n in zip(plan.halo or (), plan.shape))


@check("GT-17", once=True)
def strides_follow_the_layout(s: Subject) -> Verdict:
    if s.plan is None or s.plan.layout is None:
        return unsupported(_NO_PLAN if s.plan is None else "the plan asks for no layout")
    array = _placed(s)
    if array is None or array.is_empty:
        return unsupported("no elements, or no interface has the plan's shape")
    axes = [axis for axis, extent in enumerate(array.shape) if extent > 1]
    layout = s.plan.layout
    by_rank = sorted(axes, key=lambda axis: layout[axis])
    strides = [abs(array.strides[axis]) for axis in by_rank]
    if strides == sorted(strides, reverse=True):
        return ok()
    return fail(
        f"layout {layout}: strides falling over axes {tuple(by_rank)}",
        f"byte strides {array.strides}",
        drawing=drawing_of(array),
    )


@check("GT-18", once=True)
def dimension_names_are_the_plans(s: Subject) -> Verdict:
    value = s.observation.gt4py.get("__gt_dims__", NONE)
    names = names_of(value)
    if names is None:
        return unsupported("no __gt_dims__")
    if not all(map(_is_name, names)):
        return fail("text, with numbers in decimal digits", shown(value))
    asked = s.plan.dims if s.plan is not None else None
    if asked is not None and list(asked) != names:
        return fail(f"names {asked}", shown(value))
    return ok()


def _is_name(name: Any) -> bool:
    """Whether a value is text; a number must be written as data dimensions are."""
    is_number = isinstance(name, str) and re.fullmatch(r"[+-]?\d+", name) is not None
    return is_data_dimension(name) if is_number else isinstance(name, str)


@check("GT-19", once=True)
def origin_is_the_negated_start(s: Subject) -> Verdict:
    starts = s.observation.domain_starts
    origin = s.observation.gt4py.get("__gt_origin__", NONE)
    if not starts or any(start.t != "int" for start in starts):
        return unsupported("no domain with bounded ranges")
    if origin.t != "tuple":
        return unsupported("no __gt_origin__")
    wanted = [-start.value for start in starts]
    if [entry.value for entry in origin.items] == wanted:
        return ok()
    return fail(f"origin {tuple(wanted)}", shown(origin))


@check("GT-20", once=True)
def the_plan_is_met(s: Subject) -> Verdict:
    if s.plan is None:
        return unsupported(_NO_PLAN)
    arrays = {name: array for name, array in s.arrays.items() if not array.is_copy}
    if not arrays:
        return _narrow_plan_verdict(s)
    for expected, actual, met in _asked_and_given(s, arrays):
        if not met:
            return fail(expected, actual)
    return ok()


def _narrow_plan_verdict(s: Subject) -> Verdict:
    """Elements of less than a byte are in no descriptor; the tensor itself says what they are."""
    info, plan = s.info.main or CapsuleInfo(), s.asked
    if "DL" not in s.rejected or s.rejected["DL"] is not None:
        return unsupported("no interface describes this array")
    code, bits, lanes = info.dtype
    asked = (*(plan.dtype_info.dlpack or (None, None)), 1)
    given = (
        code,
        asked[1] if code == asked[0] and code > 1 else bits,
        lanes,
    )  # a float's bits are DL-26's
    if given != asked:
        return fail(f"type {asked}: code, bits, lanes", f"{given}")
    if tuple(info.shape or ()) != plan.shape:
        return fail(f"shape {plan.shape}", f"shape {tuple(info.shape or ())}")
    return ok()


def _asked_and_given(s: Subject, arrays: dict[str, Descriptor]) -> Iterator[tuple[str, str, bool]]:
    """(asked, given, whether any interface gives it): what no interface gives was substituted."""
    plan, every = s.asked, list(arrays.values())
    first = every[0]
    yield f"shape {plan.shape}", f"shape {first.shape}", any(a.shape == plan.shape for a in every)
    asked = s.asked_element
    narrower = "or Capabilities that exclude them"
    elements = f"elements of {asked}, {narrower} (dtypes, byteorders)"
    yield elements, f"{first.element}", any(agree(a.element, asked) for a in every)
    yield _asked_kind(plan.device), *_given_kind(s, plan.device, every)
    claims = [a.readonly for a in every if a.readonly is not None]
    words = {True: "read-only", False: "writable"}
    given = words[claims[0]] if claims else ""
    yield (
        f"{words[plan.readonly]} elements, {narrower} (readonly)",
        given,
        not claims or plan.readonly in claims,
    )


_KINDS = {"gpu": (CUDA, ROCM), "pinned": (CUDA_HOST,), "managed": (CUDA_MANAGED,)}
_KIND_NAMES = {None: "host memory", "gpu": "device memory"}


def _asked_kind(device: str | None) -> str:
    return _KIND_NAMES.get(device, f"{device} memory")


def _given_kind(s: Subject, device: str | None, every: list[Descriptor]) -> tuple[str, bool]:
    """(the kind of memory, whether it is the requested one), by DLPack's and the driver's word."""
    if device is None:
        return f"device {every[0].device}", any(array.is_host for array in every)
    stated = {array.device[0] for array in every if array.interface == "DL"}
    stated |= {one.pointer.type for one in s.mapping.values() if one.pointer is not None}
    if all(array.is_empty for array in every):
        return "no memory at all", True
    if not stated:  # CUDA's interface alone says only that the device reaches the memory
        return "host memory", any(array.interface == "CAI" for array in every)
    return f"device type {min(stated)}", bool(stated & set(_KINDS[device]))


@check("GT-21", once=True)
def results_share_no_memory(s: Subject) -> Verdict:
    if s.plan is None or s.observation.second is None:
        return unsupported(_NO_PLAN)
    if s.plan.readonly:
        return unsupported("read-only memory may be shared")
    for name, other in _second(s).items():
        array = s.arrays.get(name)
        if array is None or array.readonly or array.is_copy or not overlap(array, other):
            continue
        if _share_an_element(array, other):
            return fail("separate memory for each result", f"two results share elements ({name})")
    return ok()


def _second(s: Subject) -> dict[str, Descriptor]:
    second = s.observation.second
    return {} if second is None else descriptors_of(second)


def _share_an_element(one: Descriptor, other: Descriptor) -> bool:
    """Whether two arrays with overlapping hulls have a byte of an element in common.

    Interleaved arrays do not. Small arrays are compared byte by byte; of large ones only those
    count whose sampled elements meet.
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
    alignment = s.asked.alignment_size
    for axis, (stride, extent) in enumerate(zip(array.strides, array.shape)):
        if axis != contiguous and extent > 1 and stride % alignment:
            index = list(s.asked.aligned_element)
            index[axis] = index[axis] + 1 if index[axis] + 1 < extent else index[axis] - 1
            return fail(
                f"every element with index {index[contiguous]} in dimension {contiguous} on a "
                f"multiple of {alignment} bytes",
                f"the stride of dimension {axis} is {stride} bytes: element {tuple(index)} is not",
                drawing=drawing_of(
                    array, (s.asked.aligned_element, "aligned"), (tuple(index), "not")
                ),
            )
    return ok()


def _contiguous_axis(s: Subject, array: Descriptor) -> int | None:
    """The dimension that the layout makes contiguous, else the one with the smallest stride."""
    if s.asked.layout is not None:
        return s.asked.layout.index(array.ndim - 1) if array.ndim else None
    axes = [axis for axis, extent in enumerate(array.shape) if extent > 1]
    return min(axes, key=lambda axis: abs(array.strides[axis]), default=None)


@check("GT-23", once=True)
def same_request_same_plan(s: Subject) -> Verdict:
    if s.plan is None or s.observation.second is None:
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
    names = [name for name in ("PB", "AI", "AS", "DL", "CAI") if name in s.arrays]
    if not names:
        return unsupported("no interface describes this array")
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


@check("GT-25", once=True)
def only_the_contiguous_dimension_is_padded(s: Subject) -> Verdict:
    array, reason = _alignment_subject(s)
    if array is None:
        return unsupported(reason)
    layout = s.asked.layout or tuple(range(array.ndim))
    if s.asked.layout is None and not _is_row_major(array):
        return unsupported("no layout was asked, and the order is the producer's own")
    wanted = _padded_strides(array, layout, s.asked.alignment_size)
    for axis, extent in enumerate(array.shape):
        if extent > 1 and array.strides[axis] != wanted[axis]:
            return fail(
                f"byte strides {wanted}: the contiguous extent rounded up, no other",
                f"{array.strides}",
                drawing=drawing_of(array),
            )
    return ok()


def _is_row_major(array: Descriptor) -> bool:
    strides = [stride for stride, extent in zip(array.strides, array.shape) if extent > 1]
    return strides == sorted(strides, reverse=True)


def _padded_strides(
    array: Descriptor, layout: tuple[int, ...], alignment_bytes: int
) -> tuple[int, ...]:
    """The storage spec's byte strides: the contiguous extent is padded to the alignment's unit."""
    unit = alignment_bytes // gcd(alignment_bytes, array.itemsize)
    strides, step_bytes = [0] * array.ndim, array.itemsize
    for axis in sorted(range(array.ndim), key=lambda axis: -layout[axis]):
        strides[axis] = step_bytes
        is_padded = layout[axis] == array.ndim - 1 and array.ndim > 1
        step_bytes *= -(-array.shape[axis] // unit) * unit if is_padded else array.shape[axis]
    return tuple(strides)


@check("GT-26", needs="GTD", once=True)
def entries_name_the_asked_dimensions(s: Subject) -> Verdict:
    if s.plan is None or s.plan.dims is None:
        return unsupported(_NO_PLAN if s.plan is None else "the plan asks for no names")
    stated = names_of_entries(s)
    for key, names in stated.items():
        if names != list(s.plan.dims):
            return fail(f"dims {s.plan.dims}, as asked", f"{tuple(names)} (entry {key})")
    return ok() if stated else unsupported("no entry has dims")


@check("GT-27", once=True)
def origin_is_the_lower_halo(s: Subject) -> Verdict:
    if s.plan is None or s.plan.halo is None:
        return unsupported(_NO_PLAN if s.plan is None else "the plan asks for no halo")
    if _has_no_domain(s.plan):
        return unsupported("the halo leaves no domain that could have an origin")
    names = s.plan.dims or tuple(map(str, range(s.plan.ndim)))
    if not all(map(is_cartesian, names)):
        return unsupported("no text orders other names than I, J, K and numbers")
    order = sorted(range(s.plan.ndim), key=lambda axis: _annotation_rank(names[axis]))
    wanted = tuple(s.plan.halo[axis][0] for axis in order)
    judged = False
    for name in ("__gt_origin__", "default_origin"):
        value = s.observation.gt4py.get(name, NONE)
        if value.t not in ("tuple", "list"):
            continue
        judged = True
        if tuple(entry.value for entry in value.items) != wanted:
            return fail(f"{name} {wanted}: the lower halos, I, J, K first", shown(value))
    return ok() if judged else unsupported("no __gt_origin__ and no default_origin")


def _annotation_rank(name: str) -> tuple[int, str]:
    """The place of a dimension in annotations: I, J, K, then data dimensions by number."""
    return (int(name), "") if is_data_dimension(name) else (-1, name)


@check("GT-28", needs="GTD")
def views_carry_names_and_halos(s: Subject) -> Verdict:
    operations = {operation[0] for operation in s.plan.views} if s.plan is not None else set()
    if not s.is_view or not operations <= {"transpose", "reverse", "slice", "empty"}:
        return unsupported("judged on transposed and sliced views")
    fields = ("dims", "halo") if operations == {"transpose"} else ("dims",)
    judged = False
    for key, entry in entries_of(s).items():
        before = entries_of(s.root).get(key)
        for field in fields if before else ():
            old, new = (e.item(field) for e in (before, entry) if e)
            stated, followed = _parts(old), _parts(new)
            if stated is None or followed is None or len(stated) != s.asked.ndim:
                continue
            judged = True
            if followed != [stated[axis] for axis in s.asked.view_map.axes if axis is not None]:
                expected = f"{field} of {shown(old)} in the order of the view's dimensions"
                return fail(expected, f"{shown(new)} (entry {key})")
    return ok() if judged else unsupported("the view's entries have neither dims nor halo")


def _parts(value: Value) -> list[Any] | None:
    """The names or the pairs in a described sequence, or None for anything else."""
    pairs = [pair_of(item) for item in value.items]
    return pairs if pairs and None not in pairs else names_of(value)
