"""Checks of the array interface dict, AI-01 … AI-33."""

from __future__ import annotations

from math import prod

from . import typestr
from ...abi.descriptors import Rejected, SIZE_LIMIT_BYTES
from .descriptor import of_array_interface
from ..buffer_protocol.descriptor import simple_view
from ...info import InterfaceInfo, RequestInfo, Value
from ...outcomes import Verdict
from ...rules.common import GIVEN_AWAY, hull_verdict, readonly_verdict, resize_verdict
from .dicts import (
    byte_order_verdict,
    descr_verdict,
    is_dict_verdict,
    keys_verdict,
    mask_verdict,
    shape_verdict,
    shown,
    size_verdict,
    strides_verdict,
    typestr_verdict,
)
from ...rules.registry import check
from ...rules.subject import Subject
from ...rules.verdicts import drawing_of, fail, loss_of, ok, unsupported, untested


@check("AI-01", needs="AI")
def attribute_is_a_dict(s: Subject) -> Verdict:
    return is_dict_verdict(s.ai)


@check("AI-02", needs="AI")
def required_keys_are_present(s: Subject) -> Verdict:
    return keys_verdict(s.fields, ("shape", "typestr", "version"))


@check("AI-03", needs="AI")
def shape_is_a_tuple_of_ints(s: Subject) -> Verdict:
    return shape_verdict(s.fields)


@check("AI-05", needs="AI")
def total_size_is_representable(s: Subject) -> Verdict:
    total = typestr.parse(s.fields["typestr"].value).itemsize
    if total is None:
        return unsupported("elements are bits")
    for extent in s.fields["shape"].items:
        total *= extent.value
    if total > SIZE_LIMIT_BYTES:
        return fail("at most 2^63 - 1 bytes", f"shape × itemsize is {total} bytes")
    return ok()


@check("AI-06", needs="AI")
def typestr_matches_the_grammar(s: Subject) -> Verdict:
    return typestr_verdict(s.fields)


@check("AI-07", needs="AI")
def size_is_legal_for_the_kind(s: Subject) -> Verdict:
    return size_verdict(s.fields)


@check("AI-08", needs="AI")
def no_order_only_where_it_cannot_matter(s: Subject) -> Verdict:
    parsed = typestr.parse(s.fields["typestr"].value)
    if parsed.order != "|" or parsed.number <= 1 or parsed.kind in "tSVO":
        return ok()
    return fail("'<' or '>' for elements of more than one byte", shown(s.fields["typestr"]))


@check("AI-09", needs="AI")
def byte_order_is_the_one_in_memory(s: Subject) -> Verdict:
    return byte_order_verdict(s, "AI", s.fields)


@check("AI-10", needs="AI")
def packed_bits_are_kind_t(s: Subject) -> Verdict:
    parsed = typestr.parse(s.fields["typestr"].value)
    if parsed.kind != "b":
        return unsupported("the elements are not booleans")
    count = 1
    for extent in s.fields["shape"].items:
        count *= extent.value
    extents = [extent.value for extent in s.fields["shape"].items]
    packed_rows = prod(extents[:-1]) * ((extents[-1] + 7) // 8) if extents else 1
    packed = (count + 7) // 8
    for source in (s.ai.data_buffer, s.info.pb):
        view = simple_view(source)
        available = None if view is None else view.len
        if available is not None and available in (packed, packed_rows) and available < count:
            return fail(
                "kind 't' for packed bits, 'b' for one byte each",
                f"{count} booleans declared over {available} bytes",
            )
    return ok()


@check("AI-11", needs="AI")
def descr_is_well_formed(s: Subject) -> Verdict:
    return descr_verdict(s.fields)


@check("AI-12", needs="AI")
def field_names_are_unique(s: Subject) -> Verdict:
    descr = s.fields.get("descr")
    if descr is None or descr.t == "none":
        return unsupported("no descr")
    names = []
    for entry in descr.items:
        name, kind = entry.items[:2]
        if name.t == "tuple" and len(name.items) == 2:
            name = name.items[1]
        if name.t != "str":
            return fail("names that are str or (title, name)", shown(name))
        is_padding = kind.t == "str" and "V" in kind.value
        if name.value == "" and len(descr.items) > 1 and not is_padding:
            return fail("an empty name only for padding", f"an unnamed field of {shown(kind)}")
        names.append(name.value)
    repeated = {name for name in names if name and names.count(name) > 1}
    if repeated:
        return fail("field names without duplicates", f"{min(repeated)!r} is repeated")
    return ok()


@check("AI-13", needs="AI")
def descr_has_the_size_of_typestr(s: Subject) -> Verdict:
    descr = s.fields.get("descr")
    parsed = typestr.parse(s.fields["typestr"].value)
    if descr is None or descr.t == "none" or parsed.kind in "Vt":
        return unsupported("no descr for a plain typestr")
    total = typestr.descr_bytes(descr)
    if total != parsed.itemsize:
        return fail(f"fields of {parsed.itemsize} bytes in total", f"{total} bytes")
    return ok()


@check("AI-14", needs="AI")
def data_tuple_is_address_and_flag(s: Subject) -> Verdict:
    data = s.fields.get("data")
    if data is None or data.t in ("none", "other", "bytes"):
        return unsupported("data is not a tuple")
    items = data.items
    if data.t == "tuple" and len(items) == 2:
        if items[0].t == "int" and items[0].value >= 0:
            return ok()
        return fail("(int address, read-only flag)", f"the address is {_kind(items[0])}")
    return fail("(int address, read-only flag)", f"a {data.t} of {len(items)} entries")


def _kind(value: Value) -> str:
    if value.t == "int":
        return "a negative int"
    return f"a {value.type}" if value.t == "other" else f"a {value.t}"


@check("AI-15", needs="AI")
def address_is_element_zero(s: Subject) -> Verdict:
    return moved_address_verdict(s, "AI")


def moved_address_verdict(s: Subject, interface: str) -> Verdict:
    """Does a view's address move by Σ start·stride? Judged if it shares the base's memory."""
    if not s.is_view:
        return unsupported("judged on views")
    expected, array = s.expected_view(interface), s.arrays.get(interface)
    if expected is None or array is None or array.is_empty:
        return unsupported("no view with elements through this interface")
    if not s.shares_memory_with_root(interface):
        return unsupported("this type's slices do not share its memory")
    moved = array.address - s.root.arrays[interface].address
    wanted = expected.address - s.root.arrays[interface].address
    if moved == wanted:
        return ok()
    return fail(
        f"element (0, …) of the view {wanted:+d} bytes from the base's",
        f"{moved:+d} bytes",
        drawing=drawing_of(s.root.arrays[interface]),
    )


@check("AI-16", needs="AI")
def buffer_object_covers_the_hull(s: Subject) -> Verdict:
    data = s.fields.get("data")
    if data is None or data.t in ("tuple", "none"):
        return unsupported("data is not a buffer object")
    return _exported_bytes_verdict(s, s.ai.data_buffer, "data")


@check("AI-17", needs="AI")
def own_buffer_works(s: Subject) -> Verdict:
    data = s.fields.get("data")
    if data is not None and data.t != "none":
        return unsupported("data is given")
    return _exported_bytes_verdict(s, s.info.pb, "the object itself")


def _exported_bytes_verdict(s: Subject, source: dict[str, RequestInfo], who: str) -> Verdict:
    view = simple_view(source)
    if view is None:
        return fail(f"{who} exports a buffer of plain bytes", "a simple request is refused")
    try:
        array = of_array_interface(s.ai, s.info.pb)
    except Rejected:
        return unsupported("the rest of the dict describes no array")
    if array.hull is None:
        return ok()
    start = array.address - view.buf
    low, high = start + array.hull[0], start + array.hull[1]
    if low < 0 or high > view.len:
        return fail(
            f"bytes 0 … {view.len} of the buffer",
            f"bytes {low} … {high}",
            drawing={**drawing_of(array), "block": [-start, view.len - start]},
        )
    return ok()


@check("AI-18", needs="AI")
def offset_is_a_count(s: Subject) -> Verdict:
    offset = s.fields.get("offset")
    data = s.fields.get("data")
    if offset is None or (data is not None and data.t == "tuple"):
        return unsupported("no offset that is used")
    if offset.t == "int" and offset.value >= 0:
        return ok()
    return fail("a non-negative int", shown(offset))


@check("AI-19", needs="AI")
def data_is_given(s: Subject) -> Verdict:
    if "data" in s.fields:
        return ok()
    return fail("a key data (None means the object's own buffer)", "no such key")


@check("AI-20", needs="AI")
def address_zero_only_without_bytes(s: Subject) -> Verdict:
    data = s.fields.get("data")
    if data is None or data.t != "tuple" or data.items[0].value:
        return ok()
    extents = [extent.value for extent in s.fields["shape"].items]
    if 0 in extents or typestr.parse(s.fields["typestr"].value).number == 0:
        return ok()
    return fail("an address, because there are elements", f"address 0 with shape {tuple(extents)}")


@check("AI-21", needs="AI")
def strides_are_ints_in_bytes(s: Subject) -> Verdict:
    return strides_verdict(s.fields)


@check("AI-22", needs="AI", believable=True)
def hull_is_mapped(s: Subject) -> Verdict:
    return hull_verdict(s, "AI")


@check("AI-24", needs="AI")
def zero_dimensions_are_spelled_as_empty_tuple(s: Subject) -> Verdict:
    shape = s.fields["shape"]
    if shape.t == "none":
        return fail("() for an array without dimensions", "None")
    if shape.t == "tuple" and (not shape.items or any(e.value == 0 for e in shape.items)):
        return ok()
    return unsupported("neither 0-d nor empty")


@check("AI-25", needs="AI", believable=True)
def read_only_flag_is_true(s: Subject) -> Verdict:
    return readonly_verdict(s, "AI")


@check("AI-26", needs="AI")
def mask_is_an_array_or_none(s: Subject) -> Verdict:
    return mask_verdict(s.ai, lambda info: of_array_interface(info, None))


@check("AI-27", needs="AI")
def version_is_an_int(s: Subject) -> Verdict:
    version = s.fields["version"]
    if version.t == "int" and version.value >= 1:
        return ok()
    return fail("an int, 3 today", shown(version))


@check("AI-28", needs="AI", once=True)
def memory_outlives_the_dict(s: Subject) -> Verdict:
    if "AI" in s.info.free:
        return fail("memory that lives with the object", GIVEN_AWAY)
    drop = s.life.dict_drop
    if not s.observation.map_known:
        return untested("this system does not report its memory map")
    if drop is None:
        return unsupported("no elements, or memory that is not touched")
    for loss in drop.lost:
        lost = loss_of(loss, s.arrays.get("AI"))
        return fail("memory that lives with the object", f"{lost} as soon as the dict was dropped")
    return ok()


@check("AI-30", needs="AI", once=True)
def no_reallocation_under_a_consumer(s: Subject) -> Verdict:
    # A buffer object in the dict owns its memory: its consumer is not affected if the object moves.
    exports_an_object = "AI" in s.arrays and s.arrays["AI"].is_raw
    return resize_verdict(s, "AI", fail_on_move=not exports_an_object)


@check("AI-33", needs="AI", believable=True, once=True)
def repeated_access_is_stable(s: Subject) -> Verdict:
    first = s.arrays["AI"]
    if first.is_raw:
        return unsupported("data is a buffer object, which may be a fresh one each time")
    for repeated in s.observation.repeated:
        try:
            other = of_array_interface(repeated.ai or InterfaceInfo(), repeated.pb)
        except Rejected as rejection:
            return fail("the same on every access", f"a later access breaks {rejection.rule}")
        if other.shape != first.shape:
            return fail(f"shape {first.shape} on every access", f"{other.shape}")
        if other.address != first.address and not first.is_empty:
            return fail("one address on every access", "another address on a later access")
    return ok()
