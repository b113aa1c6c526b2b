"""Checks of the buffer protocol, PB-01 … PB-34."""

from __future__ import annotations

import struct

from . import pep3118
from ...abi.descriptors import Descriptor, c_strides, is_contiguous
from .descriptor import best_buffer
from ...abi.elements import agree
from .pybuffer import (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    FORMAT,
    INDIRECT,
    ND,
    REQUESTS,
    STRIDES,
    WRITABLE,
)
from ...info import Entries, ErrorInfo, ViewInfo
from ...outcomes import Verdict
from ..array_interface.producer import moved_address_verdict
from ...rules.common import hull_verdict, readonly_verdict, resize_verdict, type_names
from ...rules.registry import check
from ...rules.subject import Subject
from ...rules.verdicts import advise, fail, ok, unsupported, untested

_ANY_CONTIGUOUS = 0x98
_NDIM_LIMIT = 64


def _has(name: str, flags: int) -> bool:
    return REQUESTS[name] & flags == flags


def _granted(s: Subject, *, with_flags: int = 0, without: int | None = None) -> dict[str, ViewInfo]:
    """The granted views whose request has the first set of flags and lacks the second set."""
    return {
        name: view
        for name, view in s.views.items()
        if _has(name, with_flags) and not (without is not None and _has(name, without))
    }


def _best(s: Subject) -> ViewInfo:
    granted = best_buffer(s.info.pb)
    return ViewInfo() if granted is None else granted[1]


def _true_array(s: Subject) -> Descriptor | None:
    """The array behind the buffer, with strides of the buffer or of another interface."""
    array = s.arrays.get("PB")
    witness = s.stated_in_elements("PB") if array is not None else None
    if witness is not None:
        return s.arrays[witness]
    if array is not None and isinstance(_best(s).strides, list):
        return array
    twins = [
        other
        for other in s.others("PB").values()
        if array is None or other.address == array.address
    ]
    return twins[0] if twins else array


@check("PB-01", needs="PB")
def refusals_are_buffer_errors(s: Subject) -> Verdict:
    wrong = {
        name: error
        for name, (error, _) in s.refusals.items()
        if name != "FORMAT" and not {"BufferError", "MemoryError"} & set(error.mro)
    }
    if wrong:
        names = type_names(wrong.values())
        return fail(
            "BufferError for a request that cannot be met", f"{names} for {', '.join(wrong)}"
        )
    kept = [name for name, (_, obj_is_null) in s.refusals.items() if not obj_is_null]
    if kept:
        return fail(
            "view.obj NULL after a refusal", f"an object is left in it for {', '.join(kept)}"
        )
    return ok() if s.refusals else ok("no request was refused")


@check("PB-02", needs="PB")
def core_fields_do_not_depend_on_flags(s: Subject) -> Verdict:
    best = _best(s)
    note = ""
    for name, view in s.views.items():
        if view.len != best.len:
            return fail(f"len {best.len} for every request", f"{view.len} for {name}")
        if view.ndim == best.ndim:
            continue
        if _has(name, ND):
            return fail(f"ndim {best.ndim} for every request", f"{view.ndim} for {name}")
        note = (
            f"ndim is {view.ndim} under {name} and {best.ndim} elsewhere; "
            "exporters differ on requests without a shape, and it is not judged"
        )
    return ok(note)


@check("PB-03", needs="PB", believable=True)
def len_is_all_items(s: Subject) -> Verdict:
    array = s.arrays["PB"]
    length = _best(s).len
    if length == array.nbytes:
        return ok()
    return fail(
        f"len {array.nbytes} (shape {array.shape} × {array.itemsize} bytes)", f"len {length}"
    )


@check("PB-04", needs="PB")
def itemsize_is_the_formats(s: Subject) -> Verdict:
    for name, view in _granted(s, with_flags=FORMAT | ND).items():
        if view.format is None:
            continue
        fmt = pep3118.parse(view.format)
        if view.itemsize not in (fmt.size_bytes, fmt.padded_bytes):
            return fail(
                f"itemsize {fmt.size_bytes}, the size of {view.format!r}",
                f"itemsize {view.itemsize} ({name})",
            )
    return ok()


@check("PB-05", needs="PB")
def itemsize_stays_without_format(s: Subject) -> Verdict:
    with_format = _granted(s, with_flags=FORMAT | ND)
    if not with_format:
        return unsupported("no request with FORMAT is granted")
    itemsize = next(iter(with_format.values())).itemsize
    for name, view in _granted(s, with_flags=ND, without=FORMAT).items():
        if view.itemsize != itemsize:
            return fail(f"itemsize {itemsize}, as with FORMAT", f"{view.itemsize} for {name}")
    return ok()


@check("PB-06", needs="PB")
def format_is_null_without_the_flag(s: Subject) -> Verdict:
    filled = [
        name
        for name, view in _granted(s, without=FORMAT).items()
        if view.format or view.format_unmapped
    ]
    if filled:
        return fail("format NULL without FORMAT", f"{_best(s).format!r} for {', '.join(filled)}")
    return ok()


@check("PB-07", needs="PB")
def format_is_filled_and_right(s: Subject) -> Verdict:
    views = _granted(s, with_flags=FORMAT | ND)
    if not views:
        return unsupported("no request with FORMAT is granted")
    for name, view in views.items():
        if view.format is None and not view.format_unmapped and view.itemsize != 1:
            return fail("a format, as FORMAT asks", f"NULL (which means 'B') for {name}")
    asked, array = s.asked_element, s.arrays.get("PB")
    if asked is None or array is None or array.element is None:
        return ok()
    if s.asked.dtype_info.format is None and _best(s).format == "B":
        return ok()  # the protocol cannot describe this type: its bytes are exported as bytes
    others = [
        n for n, other in s.others("PB").items() if other.element and agree(other.element, asked)
    ]
    if not agree(array.element, asked) and others:
        return fail(f"a format for {asked}", f"{_best(s).format!r}: {array.element}")
    return ok()


@check("PB-08", needs="PB")
def shape_is_filled_from_nd_up(s: Subject) -> Verdict:
    return _entries_verdict(s, "shape", ND)


@check("PB-09", needs="PB")
def strides_are_filled_from_strides_up(s: Subject) -> Verdict:
    return _entries_verdict(s, "strides", STRIDES)


def _entries_verdict(s: Subject, field: str, flag: int) -> Verdict:
    for name, view in s.views.items():
        entries: Entries = getattr(view, field)
        if not _has(name, flag) and entries is not None:
            return fail(f"{field} NULL below {_flag_name(flag)}", f"not NULL for {name}")
        if _has(name, flag) and view.ndim and not isinstance(entries, list):
            what = "NULL" if entries is None else "a pointer to unmapped memory"
            return fail(f"{field} with {view.ndim} entries", f"{what} for {name}")
    return ok()


def _flag_name(flag: int) -> str:
    return "ND" if flag == ND else "STRIDES"


@check("PB-10", needs="PB")
def suboffsets_only_when_needed(s: Subject) -> Verdict:
    for name, view in s.views.items():
        suboffsets = view.suboffsets
        if suboffsets is None or view.ndim == 0:
            continue
        if not _has(name, INDIRECT):
            return fail("suboffsets NULL without INDIRECT", f"not NULL for {name}")
        if isinstance(suboffsets, str):
            return fail("suboffsets NULL or mapped", f"a pointer to unmapped memory for {name}")
        if all(entry < 0 for entry in suboffsets):
            return fail("suboffsets NULL when no entry is >= 0", f"{suboffsets} for {name}")
    return ok()


@check("PB-11", needs="PB")
def plain_requests_need_c_order(s: Subject) -> Verdict:
    array = _true_array(s)
    if array is None or array.is_contiguous("C"):
        return ok()
    plain = [
        name for name, view in _granted(s, without=STRIDES).items() if view.buf == _best(s).buf
    ]
    if not plain:
        return ok()
    expected = f"a refusal, for strides {array.strides} of shape {array.shape} are not C-contiguous"
    if array.is_contiguous("F") and not any(_has(name, ND) for name in plain):
        return advise(expected, f"{', '.join(plain)} granted for Fortran-contiguous memory")
    return fail(expected, f"{', '.join(plain)} granted")


@check("PB-12", needs="PB")
def contiguous_requests_give_contiguous_memory(s: Subject) -> Verdict:
    array = _true_array(s)
    for name, view in s.views.items():
        flags = REQUESTS[name] & (C_CONTIGUOUS | F_CONTIGUOUS | _ANY_CONTIGUOUS)
        wanted = {C_CONTIGUOUS: "C", F_CONTIGUOUS: "F", _ANY_CONTIGUOUS: "CF"}.get(flags)
        if wanted is None or array is None:
            continue
        strides = tuple(view.strides) if isinstance(view.strides, list) else None
        if "PB" in s.arrays and s.stated_in_elements("PB"):
            strides = array.strides  # XA-03: the strides of the buffer count elements
        if strides is None and (s.is_view or _asked_otherwise(s)):
            continue  # PB-09: no interface has strides, and the elements need not be in C order
        if strides is None:
            strides = c_strides(array.shape, array.itemsize)
        if not any(is_contiguous(array.shape, strides, array.itemsize, o) for o in wanted):
            return fail(
                f"{name} refused, or {' or '.join(wanted)}-contiguous memory",
                f"granted with strides {strides} for shape {array.shape}",
            )
    return ok()


def _asked_otherwise(s: Subject) -> bool:
    """Whether the plan asks for something else than compact C order."""
    if s.plan is None:
        return False
    in_c_order = s.plan.layout in (None, tuple(range(s.plan.ndim)))
    return not in_c_order or s.plan.alignment_size > 1


@check("PB-13", needs="PB")
def writable_requests_give_writable_memory(s: Subject) -> Verdict:
    granted = _granted(s, with_flags=WRITABLE)
    for name, view in granted.items():
        if view.readonly:
            return fail("readonly 0, or a refusal", f"{name} granted with readonly {view.readonly}")
    if not granted:
        return ok("every request for writable memory is refused")
    return readonly_verdict(s, "PB", is_granted=True) if "PB" in s.arrays else ok()


@check("PB-14", needs="PB")
def readonly_is_consistent(s: Subject) -> Verdict:
    reading = _granted(s, without=WRITABLE)
    values = {bool(view.readonly) for view in reading.values()}
    if len(values) <= 1:
        return ok()
    differing = [name for name, view in reading.items() if not view.readonly]
    return fail("one readonly for all read requests", f"0 for {', '.join(differing)}, else 1")


@check("PB-15", needs="PB")
def zero_dimensions_have_null_arrays(s: Subject) -> Verdict:
    if _best(s).ndim != 0:
        return unsupported("the buffer has dimensions")
    for name, view in s.views.items():
        for field in ("shape", "strides", "suboffsets"):
            if getattr(view, field) is not None and _has(name, ND):
                return fail(f"{field} NULL for ndim 0", f"not NULL for {name}")
        if view.len != view.itemsize:
            return fail(f"len {view.itemsize}, one item", f"len {view.len} for {name}")
    return ok()


@check("PB-16", needs="PB")
def ndim_is_at_most_64(s: Subject) -> Verdict:
    for name, view in s.views.items():
        if not 0 <= view.ndim <= _NDIM_LIMIT:
            return fail(f"ndim in 0 … {_NDIM_LIMIT}", f"{view.ndim} for {name}")
    return ok()


@check("PB-17", needs="PB")
def extents_are_not_negative(s: Subject) -> Verdict:
    for name, view in s.views.items():
        shape = view.shape if isinstance(view.shape, list) else []
        if any(extent < 0 for extent in shape):
            return fail("extents >= 0", f"{shape} for {name}")
        if 0 in shape and view.len:
            return fail("len 0 for an extent 0", f"len {view.len} for {name}")
        if view.len < 0 or view.itemsize < 0:
            return fail("len and itemsize >= 0", f"{view.len} and {view.itemsize} for {name}")
    return ok()


@check("PB-18", needs="PB", believable=True)
def hull_lies_in_the_block(s: Subject) -> Verdict:
    verdict = hull_verdict(s, "PB")
    array = s.arrays["PB"]
    uneven = array.itemsize and any(
        stride % array.itemsize for stride in array.meaningful_strides if stride is not None
    )
    if uneven and verdict == ok():
        return ok("some strides are not a multiple of itemsize, as for packed fields")
    return verdict


@check("PB-19", needs="PB")
def buf_is_element_zero(s: Subject) -> Verdict:
    return moved_address_verdict(s, "PB")


@check("PB-20", needs="PB")
def format_follows_the_grammar(s: Subject) -> Verdict:
    for name, view in _granted(s, with_flags=FORMAT).items():
        text = view.format
        if view.format_unmapped:
            return fail("a format string", f"a pointer to unmapped memory for {name}")
        if text is None:
            continue
        try:
            fmt = pep3118.parse(text)
        except pep3118.BadFormat as error:
            return fail("struct syntax with PEP 3118's additions", str(error))
        if fmt.kind == "struct" and _lacks_padding(fmt, view.itemsize):
            return fail(
                "padding written out, for this prefix does not align",
                f"{text!r} is {fmt.size_bytes} bytes for items of {view.itemsize}",
            )
    return ok()


def _lacks_padding(fmt: pep3118.Format, itemsize: int) -> bool:
    sizes = (fmt.size_bytes, fmt.padded_bytes)
    return itemsize not in sizes and itemsize == fmt.aligned_bytes


@check("PB-21", needs="PB")
def native_letters_have_native_sizes(s: Subject) -> Verdict:
    for view in _granted(s, with_flags=FORMAT | ND).values():
        if not isinstance(view.format, str):
            continue
        letter = pep3118.parse(view.format).native_letter
        if letter is None or struct.calcsize(letter) == view.itemsize:
            continue
        if _standard_bytes(letter) == view.itemsize:  # any other size is PB-04's question
            return fail(
                f"itemsize {struct.calcsize(letter)}, this platform's {letter!r}",
                f"itemsize {view.itemsize}",
            )
    return ok()


def _standard_bytes(letter: str) -> int | None:
    """The size of a letter on every platform (`struct`'s standard sizes); None if it has none."""
    try:
        return struct.calcsize(f"={letter}")
    except struct.error:
        return None


@check("PB-22", needs="PB")
def complex_formats_are_complex(s: Subject) -> Verdict:
    asked = s.asked_element
    text = next((view.format for view in _granted(s, with_flags=FORMAT | ND).values()), None)
    if text is None or asked is None or asked.kind != "complex":
        return unsupported("no complex elements are asked for")
    kind = pep3118.parse(text).kind
    others = [
        n for n, other in s.others("PB").items() if other.element and agree(other.element, asked)
    ]
    if kind == "complex" or not others:
        return ok()
    return fail("Zf, Zd or Zg (F, D)", f"{text!r}")


@check("PB-23", needs="PB")
def obj_is_the_exporter(s: Subject) -> Verdict:
    orphans = [name for name, view in s.views.items() if view.obj is None]
    if orphans:
        return fail("the exporter in view.obj", f"NULL for {', '.join(orphans)}")
    return ok()


@check("PB-24", needs="PB", once=True)
def releases_pair_with_requests(s: Subject) -> Verdict:
    if s.life.buffer is None:
        return unsupported("memory that is not touched")
    references = s.life.buffer.references
    gained = references[1] - references[0]
    if abs(gained) >= 8:
        return fail(
            "the exporter's references as before, after eight requests and releases",
            f"{gained:+d} references",
        )
    verdict = resize_verdict(s, "PB", fail_on_move=True)
    return verdict if verdict.failed else ok()


@check("PB-25", needs="PB", once=True)
def metadata_lives_until_release(s: Subject) -> Verdict:
    if s.life.buffer is None:
        return unsupported("memory that is not touched")
    if any(pair.unchanged is False for pair in s.life.buffer.two_views):
        return fail(
            "unchanged fields until release", "the fields changed when another view was released"
        )
    if s.observation.view_unchanged is False:
        return fail(
            "unchanged fields until release", "the fields changed with a view of another shape"
        )
    changed = [drop for drop in (s.life.drops or []) if "PB" in drop.changed]
    if changed:
        return fail(
            "unchanged fields until release", "the fields changed when a holder was dropped"
        )
    return ok()


@check("PB-27", needs="PB")
def released_memoryview_refuses(s: Subject) -> Verdict:
    after = s.info.python.after_release
    if after is None:
        return unsupported("memoryview() does not take the object")
    return ok() if after.error is not None else fail("an error after release", "an answer")


@check("PB-28")
def python_buffer_returns_memoryview(s: Subject) -> Verdict:
    part = s.info.python.methods.get("FULL_RO")
    if part is None:
        return unsupported("no __buffer__ method")
    if part.error is not None or part.is_memoryview:
        return ok()
    return fail("a memoryview", f"a {part.value.type or part.value.t}")


@check("PB-29")
def release_takes_what_was_handed_out(s: Subject) -> Verdict:
    info = s.info.python.release
    if info is None:
        return unsupported("no own __release_buffer__ method")
    if info.raised:
        return fail("a __release_buffer__ that returns", f"{info.raised[0]} raised in it")
    if info.in_flight in _REFUSALS:
        return ok("never called while an exception was under way: plain bytes are refused")
    if info.in_flight != _IN_FLIGHT:
        return fail(
            "an exception that is under way kept", f"{info.in_flight or 'nothing'} in its place"
        )
    return ok()


_IN_FLIGHT = struct.error.__name__
_REFUSALS = ("BufferError", "TypeError", "ValueError")


@check("PB-30")
def python_buffer_honours_flags(s: Subject) -> Verdict:
    part = s.info.python.methods.get("WRITABLE")
    if part is None:
        return unsupported("no __buffer__ method")
    if part.error is not None or not part.is_memoryview or not part.readonly:
        return ok()
    return fail("BufferError for WRITABLE on read-only data", "a read-only memoryview")


@check("PB-33")
def unsupporting_types_raise_type_error(s: Subject) -> Verdict:
    view = s.info.python.memoryview
    present = s.has("PB") or view.is_memoryview
    if present or s.arrays or s.has("DL"):  # the protocol cannot describe packed elements
        return unsupported("the object exports host memory")
    error = view.error or ErrorInfo("nothing")
    if "TypeError" in error.mro:
        return ok()
    return fail("TypeError from memoryview()", error.type)


@check("PB-34", needs="PB", believable=True)
def simultaneous_views_have_one_address(s: Subject) -> Verdict:
    if s.arrays["PB"].is_empty:
        return unsupported("no elements")
    pairs = s.life.buffer.two_views if s.life.buffer is not None and not s.is_view else []
    if any(pair.same_address is False for pair in pairs):
        return fail("one address for all open views", "two views open at a time have two addresses")
    return ok() if pairs else untested("two views at a time are only taken of the produced array")
