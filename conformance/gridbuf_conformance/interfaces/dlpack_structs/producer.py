"""Checks of DLPack's C structs, DL-01 … DL-30, on every capsule that the object handed out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from ...abi.descriptors import Descriptor, Rejected
from .descriptor import of_dlpack
from .structs import (
    CPU,
    CUDA,
    CUDA_HOST,
    CUDA_MANAGED,
    DEVICE_TYPES,
    FLAG_COPIED,
    FLAG_PADDED,
    TYPE_CODES,
)
from ...abi.elements import of_dlpack as element_of
from ...info import CapsuleInfo
from ...outcomes import Outcome, Verdict
from ...plan.dtypes import packed
from ..array_interface.producer import moved_address_verdict
from ...rules.common import hull_verdict, leaked, readonly_verdict, resize_verdict
from ...rules.registry import check
from ...rules.subject import Subject, overlap
from ...rules.verdicts import advise, drawing_of, fail, ok, unsupported, untested

_KNOWN_FLAGS = 0b111
_HOST_LIKE_DEVICES = (1, 3, 11, 13)
_FIXED_BITS = {6: 8, **dict.fromkeys(range(7, 15), 8)}
_NARROW_FLOAT_BITS = {15: 6, 16: 6, 17: 4}
_STRIDE_REACH_LIMIT = 2**63


def _every_capsule(s: Subject, judge: Callable[[CapsuleInfo], Verdict]) -> Verdict:
    """The first verdict of any capsule that is not a PASS, naming the call; else the last."""
    verdict = unsupported("__dlpack__ gave no capsule that can be read")
    for name, info in s.capsules.items():
        verdict = judge(info)
        if verdict.outcome.value != "PASS":
            note = "" if name == "held" else f"__dlpack__({'' if name == 'legacy' else name})"
            return Verdict(verdict.outcome, verdict.expected, verdict.actual, note or verdict.note)
    return verdict


def _versioned(s: Subject) -> list[tuple[list[int], int, CapsuleInfo]]:
    """(version, flags, info) of each versioned capsule."""
    return [(f.version, f.flags or 0, f) for f in s.capsules.values() if f.version is not None]


@check("DL-01", needs="DL")
def struct_has_the_layout(s: Subject) -> Verdict:
    answers = {**s.calls, "held": s.main}
    if any(part.unmapped for part in answers.values()):
        return fail("a struct behind the capsule", "its pointer leads to unmapped memory")

    def plausible(info: CapsuleInfo) -> Verdict:
        version = info.version
        if version is not None and (version[0] > 0xFFFF or version[1] > 0xFFFF):
            return fail("version, manager_ctx, deleter, flags, dl_tensor", "no version at offset 0")
        if version is not None and (info.flags or 0) >> 32:
            return fail(
                "flags at offset 24", "no set of flags there, but what looks like an address"
            )
        if not 0 <= info.ndim <= 1024 or isinstance(info.shape, str):
            return fail("ndim and shape at their offsets", f"ndim {info.ndim}, or no mapped shape")
        return ok()

    return _every_capsule(s, plausible)


@check("DL-02", needs="DL")
def major_version_is_one(s: Subject) -> Verdict:
    wrong = [version for version, _, _ in _versioned(s) if version[0] != 1]
    if wrong:
        return fail("major version 1", f"version {tuple(wrong[0])}")
    return ok() if _versioned(s) else unsupported("no versioned capsule")


@check("DL-03", needs="DL")
def only_known_flags(s: Subject) -> Verdict:
    stray = [flags & ~_KNOWN_FLAGS for _, flags, _ in _versioned(s) if flags & ~_KNOWN_FLAGS]
    if stray:
        return fail("no bits but 0, 1 and 2", f"stray bits {stray[0]:#x}")
    return ok() if _versioned(s) else unsupported("no versioned capsule")


@check("DL-04", needs="DL", believable=True)
def read_only_bit_is_true(s: Subject) -> Verdict:
    array = s.arrays["DL"]
    if array.readonly is None:
        return unsupported("a legacy capsule cannot say")
    if array.is_copy:
        return unsupported("a copy")
    verdict = readonly_verdict(s, "DL")
    if verdict.failed or not array.readonly:
        return verdict
    for call in s.calls:
        other = s.tensor(call)
        is_writable = other is not None and other.readonly is False and not other.is_copy
        if other is not None and is_writable and overlap(other, array):
            return fail("the bit set in every capsule of this memory", f"clear for {call}")
    return ok()


@check("DL-05", needs="DL", believable=True)
def copied_bit_says_what_happened(s: Subject) -> Verdict:
    held = s.arrays["DL"]
    if s.observation.exports_move:
        return unsupported("each export is another array")
    for name, other in s.others("DL").items():
        if held.is_copy and overlap(held, other) and held.address == other.address:
            return fail("the bit clear on shared memory", f"set at the address of {name}")
    if not s.is_view and _copies_share_memory(s):
        return fail("the bit clear on shared memory", "set, and two exports are at one address")
    if not s.is_view and _moved_without_bit(s):
        return fail("is-copied set on a copy", "clear, and each export has another address")
    for call, info in s.calls.items():
        says_copied = info.flags is None or info.flags & FLAG_COPIED
        if "copy=True" in call and not says_copied and _is_elsewhere(s, info):
            return fail("is-copied set on a copy", f"clear in what {call} returned", blocks=False)
    return ok()


def _is_elsewhere(s: Subject, info: CapsuleInfo) -> bool:
    try:
        copy = of_dlpack(info)
    except Rejected:
        return False
    originals = [*s.others("DL").values(), s.arrays["DL"]]
    return not copy.is_empty and not any(overlap(copy, original) for original in originals)


def _repeated_exports(s: Subject) -> Iterator[Descriptor]:
    """The exports that were made while the first one was held."""
    for repeated in s.observation.repeated:
        try:
            yield of_dlpack(repeated.main or CapsuleInfo())
        except Rejected:
            continue


def _copies_share_memory(s: Subject) -> bool:
    """Does an export that claims to be a copy share memory with another export?"""
    held = s.arrays["DL"]
    return held.is_copy and any(o.is_copy and overlap(held, o) for o in _repeated_exports(s))


def _moved_without_bit(s: Subject) -> bool:
    """Is an export, made while the first export was held, separate memory?"""
    held = s.arrays["DL"]
    for other in _repeated_exports(s):
        flagged = held.is_copy or other.is_copy or held.readonly is None or other.readonly is None
        if not flagged and held.hull and not overlap(held, other):
            return True
    return False


@check("DL-06", needs="DL")
def padded_bit_only_below_a_byte(s: Subject) -> Verdict:
    for _, flags, info in _versioned(s):
        if flags & FLAG_PADDED and info.dtype[1] >= 8:
            return fail("the bit only for types under 8 bits", f"set for {info.dtype[1]} bits")
    return ok() if _versioned(s) else unsupported("no versioned capsule")


@check("DL-07", needs="DL")
def shape_is_there(s: Subject) -> Verdict:
    def judge(info: CapsuleInfo) -> Verdict:
        if info.ndim < 0:
            return fail("ndim >= 0", str(info.ndim))
        if info.ndim and not isinstance(info.shape, list):
            return fail(f"shape with {info.ndim} entries", "NULL")
        if info.ndim and any(extent < 0 for extent in info.extents):
            return fail("extents >= 0", str(info.shape))
        if info.ndim and isinstance(info.strides, str):
            return fail(f"strides with {info.ndim} entries", "a pointer to unmapped memory")
        return ok()

    return _every_capsule(s, judge)


@check("DL-08", needs="DL")
def strides_are_there_from_1_2(s: Subject) -> Verdict:
    for version, _, info in _versioned(s):
        if version >= [1, 2] and info.ndim and info.strides is None:
            return fail("strides non-NULL from version 1.2 on", f"NULL under {tuple(version)}")
    return ok()


@check("DL-09", needs="DL", believable=True)
def strides_count_elements(s: Subject) -> Verdict:
    array = s.arrays["DL"]
    if array.itemsize == 1 or not any(array.meaningful_strides):
        return ok("elements and bytes are the same here, or no stride matters")
    content = s.walks.get("DL")
    if content is not None and content == s.expected_walk:
        return ok("the strides reach the elements of the plan")
    stated = [stride // array.itemsize for stride in array.strides]
    for name, other in s.others("DL").items():
        if other.itemsize != array.itemsize or other.shape != array.shape:
            continue
        in_bytes = list(other.strides)
        if stated == in_bytes and s.stated_in_elements(name) != "DL":
            return fail(
                f"strides {[stride // array.itemsize for stride in in_bytes]} in elements",
                f"{stated}, which are the bytes that {name} states",
                drawing=drawing_of(array),
            )
    as_bytes = s.walks.get("DL strides as bytes")
    if as_bytes is not None and as_bytes == s.expected_walk:
        return fail("strides in elements", f"{stated} reach the elements only when taken as bytes")
    return ok()


@check("DL-10", needs="DL", believable=True)
def byte_offset_is_added(s: Subject) -> Verdict:
    offset, data = s.main.byte_offset, s.main.data
    addresses = {other.address for other in s.others("DL").values() if not other.is_empty}
    if s.arrays["DL"].is_copy:
        return ok("the export is a copy")
    if offset and len(addresses) == 1 and data in addresses:
        return fail(
            "data + byte_offset at the first element", f"data is there, offset {offset} past it"
        )
    moved = moved_address_verdict(s, "DL")
    return moved if moved.failed or moved.outcome is Outcome.PASS else ok()


@check("DL-12", needs="DL", believable=True)
def empty_tensors_have_null_data(s: Subject) -> Verdict:
    if prod(s.arrays["DL"].shape):
        return unsupported("the tensor has elements")
    if s.main.data:
        return advise(
            "data NULL for a tensor of size zero",
            "a pointer",
            note="the header asks for NULL, the Python text allows any; consumers must take both",
        )
    return ok()


@check("DL-13", needs="DL")
def zero_dimensions_have_memory(s: Subject) -> Verdict:
    zero_dimensional = [f for f in s.capsules.values() if f.ndim == 0]
    if not zero_dimensional:
        return unsupported("the tensor has dimensions")
    if all(f.data for f in zero_dimensional):
        return ok()
    return fail("data non-NULL: ndim 0 is one element", "NULL")


@check("DL-14", needs="DL", believable=True)
def strides_stay_in_the_allocation(s: Subject) -> Verdict:
    array = s.arrays["DL"]
    reach = [abs(b) * max(extent - 1, 0) for b, extent in zip(array.strides, array.shape)]
    if not array.is_empty and any(bytes_ >= _STRIDE_REACH_LIMIT for bytes_ in reach):
        strides = tuple(b // array.itemsize for b in array.strides)
        return fail("strides that stay in the address space", f"strides {strides}")
    return hull_verdict(s, "DL")


@check("DL-15", needs="DL")
def type_is_legal(s: Subject) -> Verdict:
    def judge(info: CapsuleInfo) -> Verdict:
        code, bits, lanes = info.dtype
        if code not in TYPE_CODES:
            return fail("a known type code", f"code {code}")
        if lanes < 1 or bits < 1:
            return fail("bits and lanes >= 1", f"bits {bits}, lanes {lanes}")
        if _FIXED_BITS.get(code, bits) != bits:
            return fail(f"{_FIXED_BITS[code]} bits for {TYPE_CODES[code]}", f"{bits} bits")
        return ok()

    return _every_capsule(s, judge)


@check("DL-16", needs="DL")
def swapped_order_is_refused(s: Subject) -> Verdict:
    if any(other.element and other.element.is_swapped for other in s.others("DL").values()):
        return unsupported("another interface shows the order: judged by XA-07")
    asked = s.asked_element
    if asked is not None and asked.is_swapped and not s.others("DL"):
        wanted = s.expected_walk
        if wanted is not None and s.walks.get("DL") == wanted and _order_shows(s, wanted):
            return fail(
                "a clear error for swapped byte order", "the swapped bytes exported as native"
            )
    return ok("byte order is native, or not known to be swapped")


def _order_shows(s: Subject, wanted: str) -> bool:
    raw = bytes.fromhex(wanted)
    return s.asked.dtype_info.swapped(raw) != raw


@check("DL-17", needs="DL")
def device_is_known(s: Subject) -> Verdict:
    def judge(info: CapsuleInfo) -> Verdict:
        kind, index = info.device
        if kind not in DEVICE_TYPES:
            return fail("a known device type", str(kind))
        if kind in _HOST_LIKE_DEVICES and index:
            return advise(f"device id 0 for {DEVICE_TYPES[kind]}", str(index))
        return ok()

    return _every_capsule(s, judge)


@check("DL-18", needs="DL", believable=True)
def device_type_matches_the_memory(s: Subject) -> Verdict:
    array = s.arrays["DL"]
    if array.is_empty or array.device[0] == CPU:
        return unsupported("no elements, or host memory")
    if array.device[0] not in (CUDA, CUDA_HOST, CUDA_MANAGED):
        return untested(f"no driver here knows device type {array.device[0]}")
    if s.no_driver:
        return untested(s.no_driver)
    pointer = s.pointer("DL")
    if pointer is None:
        return untested("the driver does not know this address")
    if pointer.type == array.device[0]:
        return ok()
    found = DEVICE_TYPES.get(pointer.type, str(pointer.type))
    return fail(
        f"device type {pointer.type} ({found}), as the driver says",
        f"{array.device[0]} ({DEVICE_TYPES[array.device[0]]})",
    )


@check("DL-19", needs="DL", once=True)
def deleter_runs_exactly_once(s: Subject) -> Verdict:
    info = s.life.capsule
    if any(part.deleter == "not executable" for part in s.capsules.values()):
        return fail("deleter NULL or a function", "an address that holds no code")
    if info is None or info.error is not None:
        return unsupported("memory that is not touched, or another device")
    if info.unconsumed_calls > 1:
        return fail("one call of the deleter", f"{info.unconsumed_calls} calls for one capsule")
    growth = info.consumed_growth
    gained = growth and leaked(growth)
    if gained:
        return fail("a deleter that frees context and struct", f"{gained} left after it ran")
    return ok()


@check("DL-20", needs="DL", believable=True, once=True)
def deleter_takes_the_gil(s: Subject) -> Verdict:
    info = s.life.capsule
    if info is None or s.observation.live:
        return untested(
            "only tried on a producer's objects: a wrong deleter takes the process down"
        )
    if not info.foreign_thread:
        return unsupported("no deleter to call")
    before, after = info.references_without_gil or (0, 0)
    if before != after:
        return fail(
            "a deleter that acquires the GIL before it uses a Python object",
            f"its references changed by {after - before} while another thread held the GIL",
        )
    return ok("the deleter ran on a thread that Python did not know")


@check("DL-21", needs="DL", believable=True, once=True)
def metadata_lives_until_the_deleter(s: Subject) -> Verdict:
    drops = [drop for drop in (s.life.drops or []) if "DL" in drop.order]
    if not drops:
        return untested("needs a producer: a live object is not dropped")
    if any("DL" in drop.changed for drop in drops):
        return fail(
            "shape and strides as exported, while the capsule lives", "they changed or vanished"
        )
    return ok()


@check("DL-24", needs="DL")
def byte_offset_is_unsigned(s: Subject) -> Verdict:
    def judge(info: CapsuleInfo) -> Verdict:
        offset = info.byte_offset
        if offset < _STRIDE_REACH_LIMIT:
            return ok()
        return fail("an offset >= 0", f"2^64 - {2**64 - offset}: a negative number wrapped")

    return _every_capsule(s, judge)


@check("DL-25", needs="DL", once=True)
def packed_elements_start_at_the_lowest_bit(s: Subject) -> Verdict:
    info = s.main
    code, bits, lanes = info.dtype
    if bits * lanes % 8 == 0:
        return unsupported("elements of whole bytes")
    if (info.flags or 0) & FLAG_PADDED:
        return unsupported("padded elements: the header does not say to what unit")
    if s.plan is None or s.plan.fill is None:
        return unsupported("needs a producer: only a plan says what the elements are")
    asked = (*(s.plan.dtype_info.dlpack or (None, None)), 1)
    if asked != (code, bits, lanes) or tuple(info.shape or ()) != s.plan.shape:
        return unsupported("not what the plan asks: judged by GT-20")
    if s.info.packed is None:
        return unsupported("no row-major tensor that the host can read")
    wanted = packed(s.plan.content(), bits).hex()
    found = _without_spare_bits(s.info.packed, s.plan.element_count * bits)
    if found == wanted:
        return ok()
    at = next(k for k in range(0, len(wanted), 2) if wanted[k : k + 2] != found[k : k + 2])
    return fail(
        f"byte {at // 2} = {wanted[at : at + 2]}: "
        f"elements of {bits} bits, the first in the lowest bits",
        f"{found[at : at + 2]}",
    )


def _without_spare_bits(content: str, used_bits: int) -> str:
    """The bytes in hexadecimal, the bits of the last one that belong to no element cleared."""
    raw = bytearray.fromhex(content)
    if used_bits % 8:
        raw[-1] %= 2 ** (used_bits % 8)
    return raw.hex()


@check("DL-26", needs="DL")
def narrow_floats_have_their_bits(s: Subject) -> Verdict:
    def judge(info: CapsuleInfo) -> Verdict:
        code, bits, _ = info.dtype
        wanted = _NARROW_FLOAT_BITS.get(code)
        if wanted is None:
            return ok("no float of 6 or 4 bits")
        if bits != wanted:
            return fail(f"{wanted} bits for {TYPE_CODES[code]}", f"{bits} bits")
        return ok()

    return _every_capsule(s, judge)


@check("DL-27", needs="DL")
def elements_have_memory(s: Subject) -> Verdict:
    def judge(info: CapsuleInfo) -> Verdict:
        if info.ndim and not info.data and prod(info.extents):
            return fail("data non-NULL for a tensor with elements", f"NULL for shape {info.shape}")
        return ok()

    return _every_capsule(s, judge)


@check("DL-29", needs="DL", once=True)
def no_reallocation_under_an_export(s: Subject) -> Verdict:
    return resize_verdict(s, "DL", fail_on_move=False)


@check("DL-30", needs="DL", believable=True)
def lanes_count_in_the_element(s: Subject) -> Verdict:
    code, bits, lanes = s.main.dtype
    if lanes == 1:
        return unsupported("one lane")
    element = element_of(code, bits, lanes)
    itemsize = 0 if element is None else element.itemsize
    for name, other in s.others("DL").items():
        if other.itemsize != itemsize and other.shape == s.arrays["DL"].shape:
            return fail(
                f"elements of {itemsize} bytes ({lanes} lanes)", f"{other.itemsize} in {name}"
            )
    return ok()
