"""Checks of GT4Py's conventions, GT-01 … GT-14: the data interface, dimension names and origin."""

from __future__ import annotations

from typing import Any

from ...abi.descriptors import Descriptor, Rejected
from .descriptor import of_entry
from ...abi.elements import agree
from ...info import NONE, EntryInfo, Value
from ...outcomes import Verdict
from ...plan.plan import is_data_dimension
from ...interfaces.array_interface.dicts import shown
from ...rules.registry import check
from ...rules.subject import Subject, overlap
from ...rules.verdicts import advise, fail, ok, unsupported, untested


def arrays_of(s: Subject) -> dict[str, Descriptor]:
    """The descriptors whose place and layout can be held against the plan; a buffer of bytes may be
    a fresh one each time.
    """
    return {name: a for name, a in s.arrays.items() if not a.is_raw and not a.is_copy}


# -- the data interface --------------------------------------------------------------------------


def entries_of(s: Subject) -> dict[str, EntryInfo]:
    """The entries of the data interface by key, "None" or "gpu"."""
    return s.gt_data.entries or {}


def _described_arrays(s: Subject) -> dict[str, Descriptor]:
    """The entries that describe an array."""
    found = {}
    for key, entry in entries_of(s).items():
        try:
            found[key] = of_entry(entry, key)
        except Rejected:
            continue
    return found


@check("GT-01", needs="GTD")
def data_interface_is_keyed_by_device(s: Subject) -> Verdict:
    info = s.gt_data
    if info.error is not None:
        return fail("a dict", f"the attribute raised {info.error.type}")
    if info.entries is None:
        value = info.value
        return fail("a dict", "a method" if value.callable else shown(value))
    if not info.keys:
        return fail("an entry for None or 'gpu'", "no entry")
    for key in info.keys:
        if key.t != "none" and (key.t, key.value) != ("str", "gpu"):
            return fail("the keys None and 'gpu'", f"the key {shown(key)}")
    return ok()


@check("GT-02", needs="GTD")
def entries_describe_arrays(s: Subject) -> Verdict:
    for key, entry in entries_of(s).items():
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
    for key, entry in entries_of(s).items():
        for hook, info in entry.hooks.items():
            if not info.callable:
                return fail(f"{hook} None or a function", f"no function (entry {key})")
            if info.error is not None:
                raised = info.error.type
                return fail(f"{hook}() without arguments", f"{raised} (entry {key})")
    return ok()


@check("GT-04", needs="GTD")
def dims_are_ndim_strings(s: Subject) -> Verdict:
    judged = False
    for key, entry in entries_of(s).items():
        dims = entry.item("dims")
        ndim = len(entry.item("shape").items)
        if dims.t == "none":
            continue
        judged = True
        names = names_of(dims)
        if names is None or not all(isinstance(name, str) for name in names):
            return fail(f"a sequence of {ndim} strings", f"{shown(dims)} (entry {key})")
        if len(names) != ndim:
            return fail(f"{ndim} names", f"{len(names)} in {shown(dims)} (entry {key})")
    return ok() if judged else unsupported("no dims")


@check("GT-05", needs="GTD")
def halo_fits_the_shape(s: Subject) -> Verdict:
    judged = False
    for entry in entries_of(s).values():
        halo = entry.item("halo")
        extents = [extent.value for extent in entry.item("shape").items]
        if halo.t == "none":
            continue
        judged = True
        described = [pair_of(entry_) for entry_ in halo.items]
        pairs = [pair for pair in described if pair is not None]
        if halo.t not in ("tuple", "list") or not len(pairs) == len(described) == len(extents):
            return fail(f"{len(extents)} pairs of ints >= 0", shown(halo))
        for (lower, upper), extent in zip(pairs, extents):
            if lower + upper > extent:
                return fail(f"lower + upper <= {extent}, the extent", f"{lower} + {upper}")
    if not judged:
        return unsupported("no halo")
    return _asked_halo(s)


def pair_of(value: Value) -> tuple[int, int] | None:
    items = value.items
    if value.t not in ("tuple", "list") or len(items) != 2:
        return None
    if any(item.t != "int" or item.value < 0 for item in items):
        return None
    return items[0].value, items[1].value


def _asked_halo(s: Subject) -> Verdict:
    """A halo that the plan asks for is the one that is shown."""
    if s.plan is None or s.plan.halo is None or s.is_view:
        return ok()
    for key, entry in entries_of(s).items():
        halo = entry.item("halo")
        pairs = tuple(map(pair_of, halo.items))
        if halo.t != "none" and pairs != s.plan.halo:
            return fail(f"halo {s.plan.halo}, as asked", f"{shown(halo)} (entry {key})")
    return ok()


@check("GT-08", once=True)
def array_interfaces_stand_for_entries(s: Subject) -> Verdict:
    if s.has("GTD"):
        return unsupported("the object has __gt_data_interface__")
    host, device = s.arrays.get("AI"), s.arrays.get("CAI")
    if host is None or device is None:
        return unsupported("fewer than two array interfaces, the host's and CUDA's")
    if host.is_raw or host.is_empty:
        return unsupported("no elements, or an array interface that exports plain bytes")
    if host.address == device.address:
        return ok("one memory for both sides")
    if s.no_driver:
        return untested(s.no_driver)
    passed_on = s.info.standing
    for direction, seen in passed_on.items():
        if seen is False:
            source, _, target = direction.partition(">")
            return fail(
                "two sides that stay equal without acquire and touch, which are absent",
                f"the values written through {_STANDS_FOR[source]} "
                f"are not in {_STANDS_FOR[target]}",
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
    entries = entries_of(s)
    for field in ("dims", "halo"):
        stated = [entries[key].item(field) for key in ("None", "gpu")]
        if shown(stated[0]) != shown(stated[1]):
            return fail(f"{field} {shown(stated[0])} in both entries", shown(stated[1]))
    return _currency_verdict(s, [entries[key].walk for key in ("None", "gpu")])


def _currency_verdict(s: Subject, walks: list[str | None]) -> Verdict:
    """After `acquire`, does a side show what the other one holds, also after a write there?"""
    if None in walks:
        if s.no_driver:
            return untested(s.no_driver)
        return ok() if s.is_view else unsupported("memory that is not touched")
    if walks[0] != walks[1]:
        return fail("equal content after acquire", "the two entries show different content")
    for direction, seen in s.gt_data.passed_on.items():
        if seen is False:
            source, _, target = direction.partition(">")
            return fail(
                f"the entry {target} current after its acquire",
                f"the values written through the entry {source}, and touched, are not there",
            )
    return ok()


@check("GT-11", needs="GTD", once=True)
def accessor_fills_in_the_names(s: Subject) -> Verdict:
    info = s.observation.naming
    if info is None:
        return unsupported("no named array (xarray's DataArray) with an accessor")
    wanted = names_of(info.dims)
    for key, entry in entries_of(s).items():
        dims = entry.item("dims")
        if names_of(dims) != wanted:
            return fail(f"dims {shown(info.dims)} of the array", f"{shown(dims)} (entry {key})")
    renamed = info.renamed
    if info.data_has_names:
        if renamed and renamed.error is None:
            return fail(
                "an error where the data names its dimensions otherwise", "the entries are shown"
            )
        return ok()
    if renamed is None:
        return ok()
    for dims in renamed.shown:
        if names_of(dims) != names_of(renamed.wanted):
            return fail(f"dims {shown(renamed.wanted)} after renaming", shown(dims))
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
    return verdict if verdict.failed or judged else unsupported("no interface next to it")


def _dims_verdict(s: Subject) -> Verdict:
    """`dims` of the entries and `__gt_dims__` are the same names."""
    stated = s.observation.gt4py.get("__gt_dims__", NONE)
    if s.is_view or names_of(stated) is None:
        return ok()
    for key, names in names_of_entries(s).items():
        if names != names_of(stated):
            return fail(f"dims {shown(stated)}, as __gt_dims__", f"{names} (entry {key})")
    return ok()


# -- dimensions and origin -----------------------------------------------------------------------


def names_of(value: Value) -> list[Any] | None:
    """The names in a described sequence, or None for anything else. Bytes are not a name."""
    if value.t == "str":
        return list(value.value)
    if value.t in ("tuple", "list"):
        return [None if entry.t == "bytes" else entry.value for entry in value.items]
    return None


def names_of_entries(s: Subject) -> dict[str, list[Any]]:
    """The names in each entry that has them."""
    stated = {key: names_of(entry.item("dims")) for key, entry in entries_of(s).items()}
    return {key: names for key, names in stated.items() if names is not None}


@check("GT-13", once=True)
def dimension_names_are_a_sequence(s: Subject) -> Verdict:
    value = s.observation.gt4py.get("__gt_dims__", NONE)
    if value.t == "none":
        return unsupported("no __gt_dims__")
    if value.error is not None:
        return fail("a sequence of names", f"the attribute raised {value.error.type}")
    if value.callable:
        return advise(
            "an attribute, as GT4Py's code reads it", "a method, as the proposal shows it"
        )
    names, ndim = names_of(value), _ndim(s)
    if names is None or any(not isinstance(name, str) for name in names):
        return fail("a sequence of strings", shown(value))
    if ndim is not None and len(names) != ndim:
        return fail(f"{ndim} names", f"{len(names)} in {shown(value)}")
    if len(set(names)) != len(names):
        return fail("names without repeats", shown(value))
    if _are_its_own(s) and not all(map(is_cartesian, names)):
        return advise("I, J, K and decimal numbers, for cartesian stencils", shown(value))
    return ok()


def _are_its_own(s: Subject) -> bool:
    """Whether the object chose its names: not the plan, and not a text (fields and named arrays
    have any).
    """
    is_asked = s.plan is not None and s.plan.dims is not None
    return not is_asked and s.observation.domain_starts is None and s.observation.naming is None


def is_cartesian(name: str) -> bool:
    """Whether the stencils of GT4Py cartesian know a name."""
    return name in ("I", "J", "K") or is_data_dimension(name)


def _ndim(s: Subject) -> int | None:
    return next((array.ndim for array in arrays_of(s).values()), None)


@check("GT-14", once=True)
def origin_is_ndim_ints(s: Subject) -> Verdict:
    judged = False
    for name in ("__gt_origin__", "default_origin"):
        value = s.observation.gt4py.get(name, NONE)
        if value.error is not None:
            return fail(f"{name} a tuple of ints", f"the attribute raised {value.error.type}")
        if value.t == "none" or value.callable:
            continue
        judged = True
        entries, ndim = value.items, _ndim(s)
        if value.t not in ("tuple", "list") or any(entry.t != "int" for entry in entries):
            return fail(f"{name} a tuple of ints", shown(value))
        if ndim is not None and len(entries) != ndim:
            return fail(f"{ndim} ints in {name}", f"{len(entries)} in {shown(value)}")
    return ok() if judged else unsupported("no __gt_origin__ and no default_origin")
