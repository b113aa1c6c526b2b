"""Checks of GT4Py's conventions (GT-01 … GT-14) and of the storage spec (GT-15 … GT-28): did the producer give
what was asked?"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

from ..abi.dlpack import CUDA, CUDA_HOST, CUDA_MANAGED, ROCM
from ..descriptors import (
    Descriptor,
    Rejected,
    descriptors_of,
    of_array_interface,
    of_entry,
    sample_indices,
)
from ..elements import agree
from ..outcomes import Verdict
from .common import reach_verdict
from .dicts import shown
from .registry import check
from .subject import Subject, overlap
from .verdicts import advise, drawing_of, fail, ok, unsupported, untested

_NO_PLAN = "needs a producer: nobody asked for this object"
_NAMES = ("I", "J", "K")
_PAIR_LIMIT = 4096
_NOTHING = {"t": "none"}


def _arrays(s: Subject) -> dict[str, Descriptor]:
    """The descriptors that can be held against the plan; raw lending says nothing of shape and type."""
    return {name: a for name, a in s.arrays.items() if not a.is_raw and not a.is_copy}


def _placed(s: Subject) -> Descriptor | None:
    """The array whose placement is judged: the first interface that has the plan's shape."""
    shape = s.asked.shape
    return next((a for a in _arrays(s).values() if a.shape == shape and not a.is_indirect), None)


# -- the data interface --------------------------------------------------------------------------------


def _entries(s: Subject) -> dict[str, dict[str, Any]]:
    """The entries of the data interface by key, "None" or "gpu"."""
    entries: dict[str, dict[str, Any]] = s.facts["gt_data"]["entries"]
    return entries


def _described_arrays(s: Subject) -> dict[str, Descriptor]:
    """The entries that describe an array."""
    found = {}
    for key, entry in _entries(s).items():
        try:
            found[key] = of_entry(entry, key)
        except Rejected:
            continue
    return found


@check("GT-01", needs="GTD")
def data_interface_is_keyed_by_device(s: Subject) -> Verdict:
    facts = s.facts["gt_data"]
    if "error" in facts:
        return fail("a dict", f"the attribute raised {facts['error']['type']}")
    if "entries" not in facts:
        value = facts["value"]
        return fail("a dict", "a method" if value.get("callable") else shown(value))
    if not facts["keys"]:
        return fail("an entry for None or 'gpu'", "no entry")
    for key in facts["keys"]:
        if key["t"] != "none" and (key["t"], key.get("value")) != ("str", "gpu"):
            return fail("the keys None and 'gpu'", f"the key {shown(key)}")
    return ok()


@check("GT-02", needs="GTD")
def entries_describe_arrays(s: Subject) -> Verdict:
    for key, entry in _entries(s).items():
        try:
            array = of_entry(entry, key)
        except Rejected as rejection:
            return fail("shape, typestr, data and strides as in an array interface", str(rejection))
        interface = "CAI" if key == "gpu" else "AI"
        if interface in s.arrays and array.hull and not overlap(array, s.arrays[interface]):
            return fail(f"the memory that {interface} describes", f"other memory (entry {key})")
    return ok()


@check("GT-03", needs="GTD")
def hooks_take_no_argument(s: Subject) -> Verdict:
    for key, entry in _entries(s).items():
        for hook, facts in entry["hooks"].items():
            if not facts["callable"]:
                return fail(f"{hook} None or a function", f"no function (entry {key})")
            if "error" in facts.get("call", {}):
                raised = facts["call"]["error"]["type"]
                return fail(f"{hook}() without arguments", f"{raised} (entry {key})")
    return ok()


@check("GT-04", needs="GTD")
def dims_are_ndim_strings(s: Subject) -> Verdict:
    judged = False
    for key, entry in _entries(s).items():
        dims = entry["fields"].get("dims", {"t": "none"})
        ndim = len(entry["fields"]["shape"]["items"])
        if dims["t"] == "none":
            continue
        judged = True
        names = [{"t": "str"}] * len(dims["value"]) if dims["t"] == "str" else dims.get("items", [])
        if dims["t"] not in ("tuple", "list", "str") or any(n["t"] != "str" for n in names):
            return fail(f"a sequence of {ndim} strings", f"{shown(dims)} (entry {key})")
        if len(names) != ndim:
            return fail(f"{ndim} names", f"{len(names)} in {shown(dims)} (entry {key})")
    return ok() if judged else unsupported("no dims")


@check("GT-05", needs="GTD")
def halo_fits_the_shape(s: Subject) -> Verdict:
    judged = False
    for entry in _entries(s).values():
        halo = entry["fields"].get("halo", {"t": "none"})
        extents = [extent["value"] for extent in entry["fields"]["shape"]["items"]]
        if halo["t"] == "none":
            continue
        judged = True
        described = [_pair(entry_) for entry_ in halo.get("items", [])]
        pairs = [pair for pair in described if pair is not None]
        if halo["t"] not in ("tuple", "list") or not len(pairs) == len(described) == len(extents):
            return fail(f"{len(extents)} pairs of ints >= 0", shown(halo))
        for (lower, upper), extent in zip(pairs, extents):
            if lower + upper > extent:
                return fail(f"lower + upper <= {extent}, the extent", f"{lower} + {upper}")
    if not judged:
        return unsupported("no halo")
    return _asked_halo(s)


def _pair(value: dict[str, Any]) -> tuple[int, int] | None:
    items = value.get("items", [])
    if value["t"] not in ("tuple", "list") or len(items) != 2:
        return None
    if any(item["t"] != "int" or item["value"] < 0 for item in items):
        return None
    return items[0]["value"], items[1]["value"]


def _asked_halo(s: Subject) -> Verdict:
    """A halo that the plan asks for is the one that is shown."""
    if s.plan is None or s.plan.halo is None or s.is_view:
        return ok()
    for key, entry in _entries(s).items():
        halo = entry["fields"].get("halo", {"t": "none"})
        pairs = tuple(map(_pair, halo.get("items", ())))
        if halo["t"] != "none" and pairs != s.plan.halo:
            return fail(f"halo {s.plan.halo}, as asked", f"{shown(halo)} (entry {key})")
    return ok()


@check("GT-08", once=True)
def array_interfaces_stand_for_entries(s: Subject) -> Verdict:
    if s.offers("GTD"):
        return unsupported("the object has __gt_data_interface__")
    host, device = s.arrays.get("AI"), s.arrays.get("CAI")
    if host is None or device is None:
        return unsupported("fewer than two array interfaces, the host's and CUDA's")
    if host.is_raw or host.is_empty:
        return unsupported("no elements, or an array interface that lends plain bytes")
    if host.address == device.address:
        return ok("one memory for both sides")
    if s.no_driver:
        return untested(s.no_driver)
    passed_on = s.facts.get("standing", {})
    for direction, seen in passed_on.items():
        if seen is False:
            source, _, target = direction.partition(">")
            return fail(
                "two sides that stay equal without acquire and touch, for there are none",
                f"what was written through {_STANDS_FOR[source]} is not in {_STANDS_FOR[target]}",
            )
    return ok() if True in passed_on.values() else unsupported("memory that is not written")


_STANDS_FOR = {"None": "__array_interface__", "gpu": "__cuda_array_interface__"}


@check("GT-09", needs="GTD")
def mirrors_agree(s: Subject) -> Verdict:
    arrays = _described_arrays(s)
    if len(arrays) < 2:
        return unsupported("fewer than two entries")
    host, device = arrays["None"], arrays["gpu"]
    if host.shape != device.shape:
        return fail(f"shape {host.shape} in both entries", f"{device.shape} in the entry gpu")
    if not agree(host.element, device.element):
        return fail(f"{host.element} in both entries", f"{device.element} in the entry gpu")
    entries = _entries(s)
    for field in ("dims", "halo"):
        stated = [entries[key]["fields"].get(field, {"t": "none"}) for key in ("None", "gpu")]
        if shown(stated[0]) != shown(stated[1]):
            return fail(f"{field} {shown(stated[0])} in both entries", shown(stated[1]))
    return _currency_verdict(s, [entries[key].get("walk") for key in ("None", "gpu")])


def _currency_verdict(s: Subject, walks: list[str | None]) -> Verdict:
    """After `acquire`, does a side show what the other one holds, also after a write there?"""
    if None in walks:
        if s.no_driver:
            return untested(s.no_driver)
        return ok() if s.is_view else unsupported("memory that is not touched")
    if walks[0] != walks[1]:
        return fail("equal content after acquire", "the two entries show different content")
    for direction, seen in s.facts["gt_data"].get("passed_on", {}).items():
        if seen is False:
            source, _, target = direction.partition(">")
            return fail(
                f"the entry {target} current after its acquire",
                f"what was written through the entry {source}, and touched, is not there",
            )
    return ok()


@check("GT-11", needs="GTD", once=True)
def accessor_fills_in_the_names(s: Subject) -> Verdict:
    facts = s.observation.get("naming")
    if facts is None:
        return unsupported("no named array (xarray's DataArray) with an accessor")
    wanted = _names_of(facts["dims"])
    for key, entry in _entries(s).items():
        dims = entry["fields"].get("dims", {"t": "none"})
        if _names_of(dims) != wanted:
            return fail(f"dims {shown(facts['dims'])} of the array", f"{shown(dims)} (entry {key})")
    renamed = facts.get("renamed", {})
    if facts["data_has_names"]:
        if renamed and "error" not in renamed:
            return fail(
                "an error where the data names its dimensions otherwise", "the entries are shown"
            )
        return ok()
    for dims in renamed.get("shown", ()):
        if _names_of(dims) != _names_of(renamed["wanted"]):
            return fail(f"dims {shown(renamed['wanted'])} after renaming", shown(dims))
    return ok()


@check("GT-12", needs="GTD")
def entries_agree_with_the_interfaces(s: Subject) -> Verdict:
    judged = False
    for key, array in _described_arrays(s).items():
        name = "CAI" if key == "gpu" else "AI"
        other = s.arrays.get(name)
        if other is None or other.is_raw:
            continue
        judged = True
        for field, one, two in (
            ("shape", other.shape, array.shape),
            ("byte strides", other.meaningful_strides, array.meaningful_strides),
            ("elements of", str(other.element), str(array.element)),
        ):
            if one != two:
                return fail(f"{field} {one} ({name})", f"{two} (entry {key})")
        if not array.is_empty and array.address != other.address:
            return fail(f"the address of {name}", f"another address (entry {key})")
    verdict = _dims_verdict(s)
    return verdict if verdict.failed or judged else unsupported("no interface beside it")


def _dims_verdict(s: Subject) -> Verdict:
    """`dims` of the entries and `__gt_dims__` are the same names."""
    stated = s.observation.get("gt4py", {}).get("__gt_dims__", {"t": "none"})
    if s.is_view or _names_of(stated) is None:
        return ok()
    for key, entry in _entries(s).items():
        names = _names_of(entry["fields"].get("dims", {"t": "none"}))
        if names is not None and names != _names_of(stated):
            return fail(f"dims {shown(stated)}, as __gt_dims__", f"{names} (entry {key})")
    return ok()


# -- dimensions and origin -----------------------------------------------------------------------------


def _names_of(value: dict[str, Any]) -> list[Any] | None:
    """The names in a described sequence, or None for anything else."""
    if value.get("t") == "str":
        return list(value["value"])
    if value.get("t") in ("tuple", "list"):
        return [entry.get("value") for entry in value["items"]]
    return None


@check("GT-13", once=True)
def dimension_names_are_a_sequence(s: Subject) -> Verdict:
    value = s.observation.get("gt4py", {}).get("__gt_dims__", {"t": "none"})
    if value.get("t") == "none":
        return unsupported("no __gt_dims__")
    if "error" in value:
        return fail("a sequence of names", f"the attribute raised {value['error']['type']}")
    if value.get("callable"):
        return advise(
            "an attribute, as GT4Py's code reads it", "a method, as the proposal shows it"
        )
    names, ndim = _names_of(value), _ndim(s)
    if names is None or any(not isinstance(name, str) for name in names):
        return fail("a sequence of strings", shown(value))
    if ndim is not None and len(names) != ndim:
        return fail(f"{ndim} names", f"{len(names)} in {shown(value)}")
    if len(set(names)) != len(names):
        return fail("names without repeats", shown(value))
    return ok()


def _ndim(s: Subject) -> int | None:
    return next((array.ndim for array in _arrays(s).values()), None)


@check("GT-14", once=True)
def origin_is_ndim_ints(s: Subject) -> Verdict:
    judged = False
    for name in ("__gt_origin__", "default_origin"):
        value = s.observation.get("gt4py", {}).get(name, {"t": "none"})
        if "error" in value:
            return fail(f"{name} a tuple of ints", f"the attribute raised {value['error']['type']}")
        if value.get("t") == "none" or value.get("callable"):
            continue
        judged = True
        entries, ndim = value.get("items", []), _ndim(s)
        if value["t"] not in ("tuple", "list") or any(entry["t"] != "int" for entry in entries):
            return fail(f"{name} a tuple of ints", shown(value))
        if ndim is not None and len(entries) != ndim:
            return fail(f"{ndim} ints in {name}", f"{len(entries)} in {shown(value)}")
    return ok() if judged else unsupported("no __gt_origin__ and no default_origin")


# -- what was asked ------------------------------------------------------------------------------------


@check("GT-15", once=True)
def numpy_gets_a_view(s: Subject) -> Verdict:
    if any(name in s.arrays for name in ("AI", "AS", "PB", "CAI")):
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
    convict = fail if _speaks_gt4py(s) else advise
    return convict("a view from numpy.asarray", "__array__() returns a copy")


def _speaks_gt4py(s: Subject) -> bool:
    """Whether the object says anything by GT4Py's attributes; NumPy's protocol allows the others a copy."""
    stated = s.observation.get("gt4py", {})
    names = ("__gt_dims__", "__gt_origin__")
    return s.offers("GTD") or any(stated.get(name, _NOTHING) != _NOTHING for name in names)


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
        return _narrow_plan_verdict(s)
    for expected, actual, met in _asked_and_given(s, arrays):
        if not met:
            return fail(expected, actual)
    return ok()


def _narrow_plan_verdict(s: Subject) -> Verdict:
    """Elements of less than a byte are in no descriptor; the tensor itself says what they are."""
    facts, plan = s.facts.get("main", {}), s.asked
    if "DL" not in s.rejected or s.rejected["DL"] is not None:
        return unsupported("no interface describes this array")
    code, bits, lanes = facts["dtype"]
    asked = (*(plan.dtype_info.dlpack or (None, None)), 1)
    given = (
        code,
        asked[1] if code == asked[0] and code > 1 else bits,
        lanes,
    )  # a float's bits are DL-26's
    if given != asked:
        return fail(f"type {asked}: code, bits, lanes", f"{given}")
    if tuple(facts["shape"] or ()) != plan.shape:
        return fail(f"shape {plan.shape}", f"shape {tuple(facts['shape'] or ())}")
    return ok()


def _asked_and_given(s: Subject, arrays: dict[str, Descriptor]) -> Iterator[tuple[str, str, bool]]:
    """(asked, given, whether any interface gives it): what no interface gives was substituted."""
    plan, every = s.asked, list(arrays.values())
    first = every[0]
    yield f"shape {plan.shape}", f"shape {first.shape}", any(a.shape == plan.shape for a in every)
    asked = s.asked_element
    yield f"elements of {asked}", f"{first.element}", any(agree(a.element, asked) for a in every)
    yield _asked_kind(plan.device), *_given_kind(s, plan.device, every)
    claims = [a.readonly for a in every if a.readonly is not None]
    words = {True: "read-only", False: "writable"}
    given = words[claims[0]] if claims else ""
    yield words[plan.readonly], given, not claims or plan.readonly in claims


_KINDS = {"gpu": (CUDA, ROCM), "pinned": (CUDA_HOST,), "managed": (CUDA_MANAGED,)}
_KIND_NAMES = {None: "host memory", "gpu": "device memory"}


def _asked_kind(device: str | None) -> str:
    return _KIND_NAMES.get(device, f"{device} memory")


def _given_kind(s: Subject, device: str | None, every: list[Descriptor]) -> tuple[str, bool]:
    """(what kind of memory it is, whether it is the one that was asked), by DLPack's and the driver's word."""
    if device is None:
        return f"device {every[0].device}", any(array.is_host for array in every)
    stated = {array.device[0] for array in every if array.interface == "DL"}
    stated |= {facts["info"]["type"] for facts in s.mapping.values() if "info" in facts}
    if all(array.is_empty for array in every):
        return "no memory at all", True
    if not stated:  # CUDA's interface alone says only that the device reaches the memory
        return "host memory", any(array.interface == "CAI" for array in every)
    return f"device type {min(stated)}", bool(stated & set(_KINDS[device]))


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
    """The storage spec's byte strides: the contiguous extent is the next multiple of the alignment's unit."""
    unit = alignment_bytes // gcd(alignment_bytes, array.itemsize)
    strides, step_bytes = [0] * array.ndim, array.itemsize
    for axis in sorted(range(array.ndim), key=lambda axis: -layout[axis]):
        strides[axis] = step_bytes
        is_padded = layout[axis] == array.ndim - 1 and array.ndim > 1
        step_bytes *= -(-array.shape[axis] // unit) * unit if is_padded else array.shape[axis]
    return tuple(strides)


# -- names, origins and halos ---------------------------------------------------------------------------


@check("GT-26", needs="GTD", once=True)
def entries_name_the_asked_dimensions(s: Subject) -> Verdict:
    if s.plan is None or s.plan.dims is None:
        return unsupported(_NO_PLAN if s.plan is None else "the plan asks for no names")
    judged = False
    for key, entry in _entries(s).items():
        dims = entry["fields"].get("dims", {"t": "none"})
        if dims["t"] == "none":
            continue
        judged = True
        if _names_of(dims) != list(s.plan.dims):
            return fail(f"dims {s.plan.dims}, as asked", f"{shown(dims)} (entry {key})")
    return ok() if judged else unsupported("no entry has dims")


@check("GT-27", once=True)
def origin_is_the_lower_halo(s: Subject) -> Verdict:
    if s.plan is None or s.plan.halo is None:
        return unsupported(_NO_PLAN if s.plan is None else "the plan asks for no halo")
    if any(lower + upper >= n for (lower, upper), n in zip(s.plan.halo, s.plan.shape)):
        return unsupported("the halo leaves no domain that could have an origin")
    names = s.plan.dims or tuple(map(str, range(s.plan.ndim)))
    order = sorted(range(s.plan.ndim), key=lambda axis: _annotation_rank(names[axis]))
    wanted = tuple(s.plan.halo[axis][0] for axis in order)
    judged = False
    for name in ("__gt_origin__", "default_origin"):
        value = s.observation.get("gt4py", {}).get(name, {"t": "none"})
        if value.get("t") not in ("tuple", "list"):
            continue
        judged = True
        if tuple(entry.get("value") for entry in value["items"]) != wanted:
            return fail(f"{name} {wanted}: the lower halos, I, J, K first", shown(value))
    return ok() if judged else unsupported("no __gt_origin__ and no default_origin")


def _annotation_rank(name: str) -> int:
    """The place of a dimension in annotations: I, J, K, then data dimensions by number."""
    return _NAMES.index(name) if name in _NAMES else len(_NAMES) + int(name)


@check("GT-28", needs="GTD")
def views_carry_names_and_halos(s: Subject) -> Verdict:
    operations = {operation[0] for operation in s.plan.views} if s.plan is not None else set()
    if not s.is_view or not operations <= {"transpose", "reverse", "slice", "empty"}:
        return unsupported("judged on transposed and sliced views")
    fields = ("dims", "halo") if operations == {"transpose"} else ("dims",)
    judged = False
    for key, entry in _entries(s).items():
        before = _entries(s.root).get(key)
        for field in fields if before else ():
            old, new = (e["fields"].get(field, {"t": "none"}) for e in (before, entry) if e)
            stated, followed = _parts(old), _parts(new)
            if stated is None or followed is None or len(stated) != s.asked.ndim:
                continue
            judged = True
            if followed != [stated[axis] for axis in s.asked.view_map.axes if axis is not None]:
                expected = f"{field} of {shown(old)} in the order of the view's dimensions"
                return fail(expected, f"{shown(new)} (entry {key})")
    return ok() if judged else unsupported("the view's entries have neither dims nor halo")


def _parts(value: dict[str, Any]) -> list[Any] | None:
    """The names or the pairs in a described sequence, or None for anything else."""
    pairs = [_pair(item) for item in value.get("items", ())]
    return pairs if pairs and None not in pairs else _names_of(value)
