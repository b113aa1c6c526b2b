"""Checks of `__array_struct__`, AS-01 … AS-08."""

from __future__ import annotations

from .struct import FLAG_NAMES
from ...abi.descriptors import Descriptor
from ...abi.elements import NATIVE_ORDER, TYPESTR_KINDS, agree
from ..array_interface.typestr import BadTypestr, descr_bytes, legal_sizes
from ...info import Entries
from ...outcomes import Verdict
from ...rules.common import GIVEN_AWAY, readonly_verdict
from ...rules.registry import check
from ...rules.subject import Subject
from ...rules.verdicts import fail, loss_of, ok, unsupported, untested

_KNOWN_FLAGS = sum(FLAG_NAMES)


@check("AS-01", needs="AS")
def capsule_has_no_name(s: Subject) -> Verdict:
    info = s.struct
    if info.error is not None:
        return fail("a capsule", f"the attribute raised {info.error.type}")
    if not info.capsule:
        return fail("a capsule without a name", "no capsule")
    if info.name is not None:
        return fail("a capsule without a name", f"the name {info.name!r}")
    if info.unmapped:
        return fail("a capsule with a struct behind it", "a pointer to unmapped memory")
    return ok()


@check("AS-02", needs="AS")
def first_int_is_two(s: Subject) -> Verdict:
    two = s.struct.two
    return ok() if two == 2 else fail("2", str(two))


@check("AS-03", needs="AS")
def kind_and_sizes_are_legal(s: Subject) -> Verdict:
    info = s.struct
    if info.nd < 0:
        return fail("nd >= 0", f"nd = {info.nd}")
    if info.typekind not in TYPESTR_KINDS:
        return fail(f"a kind of {''.join(TYPESTR_KINDS)}", repr(info.typekind))
    sizes = legal_sizes(info.typekind)
    if info.itemsize <= 0 and not _is_flexible(info.typekind):
        return fail("itemsize > 0", f"itemsize = {info.itemsize}")
    if sizes is not None and info.itemsize not in sizes:
        return fail(f"kind {info.typekind!r} with a size of {sizes}", str(info.itemsize))
    return ok()


def _is_flexible(kind: str) -> bool:
    return kind in "SUV"


@check("AS-04", needs="AS")
def shape_and_strides_are_there(s: Subject) -> Verdict:
    info = s.struct
    for field in ("shape", "strides"):
        entries: Entries = getattr(info, field)
        if info.nd and not isinstance(entries, list):
            what = "NULL" if entries is None else "a pointer to unmapped memory"
            return fail(f"{field} with {info.nd} entries", what)
    if isinstance(info.shape, list) and any(extent < 0 for extent in info.shape):
        return fail("extents >= 0", str(info.shape))
    return ok()


@check("AS-05", needs="AS", believable=True)
def set_flags_are_true(s: Subject) -> Verdict:
    flags, array = s.struct.flags, s.arrays["AS"]
    if flags & ~_KNOWN_FLAGS:
        return fail("only the six known flag bits", f"unknown bits {flags & ~_KNOWN_FLAGS:#x}")
    false = []
    if flags & 0x1 and not array.is_contiguous("C"):
        false.append(0x1)
    if flags & 0x2 and not array.is_contiguous("F"):
        false.append(0x2)
    if flags & 0x100 and not _is_aligned(array, s.struct.typekind):
        false.append(0x100)
    if flags & 0x200 and _swapped_elsewhere(s):
        false.append(0x200)
    if flags & 0x400 and readonly_verdict(s, "AS").failed:
        false.append(0x400)
    if false:
        named = ", ".join(FLAG_NAMES[bit] for bit in false)
        return fail("set bits that are true of the memory", f"{named} is set and is not true")
    if not flags & 0x200 and _is_native(s):
        return fail(f"{FLAG_NAMES[0x200]} set: consumers swap the bytes without it", "it is clear")
    return ok()


def _is_native(s: Subject) -> bool:
    """Whether the elements are numbers in this machine's byte order: by another interface, or by
    the plan and the content."""
    elements = [other.element for other in s.others("AS").values()]
    content = s.walks.get("AS")
    if content and content == s.expected_walk:
        elements.append(s.asked_element)
    orders = {element.order for element in elements if element is not None}
    return NATIVE_ORDER in orders


def _is_aligned(array: Descriptor, kind: str) -> bool:
    """Whether every element is aligned for its numbers, of which none needs over 8 bytes."""
    number_bytes = {"c": array.itemsize // 2, "U": 4, "S": 1, "V": 1}.get(kind, array.itemsize)
    unit = min(number_bytes, 8)
    if array.is_empty or unit < 2 or unit & (unit - 1):
        return True
    strides = [stride for stride in array.meaningful_strides if stride is not None]
    return not any(place % unit for place in (array.address, *strides))


def _swapped_elsewhere(s: Subject) -> bool:
    return any(
        other.element is not None and other.element.is_swapped for other in s.others("AS").values()
    )


@check("AS-06", needs="AS")
def descr_is_there_when_announced(s: Subject) -> Verdict:
    info = s.struct
    if not info.flags & 0x800:
        return unsupported("no descr is announced")
    if not info.has_descr_pointer:
        return fail("a descr, as flag 0x800 says", "NULL")
    if info.descr.t == "none":
        return fail("a list of (name, type[, repeat]) tuples", "a pointer to something else")
    try:
        total = descr_bytes(info.descr)
    except BadTypestr as error:
        return fail("a list of (name, type[, repeat]) tuples", str(error))
    if total == info.itemsize:
        return ok()
    return fail(f"fields of {info.itemsize} bytes in total", f"{total} bytes")


@check("AS-07", needs="AS", once=True)
def capsule_keeps_the_owner(s: Subject) -> Verdict:
    if "AS" in s.info.free:
        return fail("memory that the capsule keeps alive", GIVEN_AWAY)
    drops = s.life.drops
    if drops is None:
        return untested("needs a producer: a live object is not dropped")
    if not s.observation.map_known:
        return untested("this system does not report its memory map")
    orders = [drop for drop in drops if "AS" in drop.order]
    for order, loss in ((drop.order, loss) for drop in orders for loss in drop.lost):
        is_needed = loss.dropped and order.index("object") <= order.index(loss.dropped)
        if loss.survivor == "AS" and is_needed:
            lost = loss_of(loss, s.arrays.get("AS"))
            return fail("memory that the capsule keeps alive", f"{lost} after the object's end")
    return ok() if orders else unsupported("no array struct to hold")


@check("AS-08", needs="AS", believable=True)
def agrees_with_the_dict(s: Subject) -> Verdict:
    struct, dictionary = s.arrays["AS"], s.arrays.get("AI")
    if dictionary is None or dictionary.is_raw:
        return unsupported("no array interface dict to compare with")
    if struct.shape != dictionary.shape:
        return fail(f"shape {dictionary.shape}", f"shape {struct.shape}")
    if struct.meaningful_strides != dictionary.meaningful_strides:
        return fail(f"strides {dictionary.strides}", f"strides {struct.strides}")
    if not agree(struct.element, dictionary.element):
        return fail(str(dictionary.element), str(struct.element))
    return ok("addresses are compared by XA-01")
