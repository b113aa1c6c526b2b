"""Checks of agreement, XA-01 … XA-18: one object, one memory, whatever interface speaks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from ...abi.descriptors import Descriptor, Rejected, sample_indices
from ..buffer_protocol.descriptor import best_buffer, of_buffer
from ..buffer_protocol.pybuffer import REQUESTS, WRITABLE
from ..array_interface.descriptor import of_array_interface
from ...plugins.cuda.descriptor import of_cuda_interface
from ..dlpack_structs.descriptor import of_dlpack
from ...abi.device import LEGACY_STREAM
from ..dlpack_structs.structs import CPU
from ...abi.elements import Element, agree, lacks_typestr
from ...info import ArrayInfo, MappingInfo, RaceInfo
from ...outcomes import Outcome, Verdict, graded
from ...rules.common import GIVEN_AWAY
from ...rules.registry import check
from ...rules.subject import Subject, overlap
from ...rules.verdicts import (
    advise,
    drawing_of,
    fail,
    loss_of,
    ok,
    unsupported,
    untested,
)

_STRICT = frozenset({"AI", "AS", "PB"})
"""The interfaces that must agree on form; no text requires it of DLPack and the CUDA interface."""
_RECOMMENDED = (
    "the rule binds AI, AS and PB; for DLPack and CUDA's interface it is recommended, "
    "so this does not fail"
)
_FEW = "fewer than two interfaces describe this array"


def _pairs(s: Subject) -> Iterator[tuple[str, Descriptor, str, Descriptor]]:
    for (one, a), (other, b) in combinations(s.comparable.items(), 2):
        yield one, a, other, b


def _compare(
    s: Subject,
    differs: Callable[[Descriptor, Descriptor], tuple[str, str] | None],
    *,
    strict_only: bool = False,
    one_memory: bool = False,
    asked: str | None = None,
) -> Verdict:
    """FAIL at the first pair that differs; ADVISORY where the rule only binds `_STRICT` pairs.

    `one_memory` leaves out pairs of a host and a device interface, which may speak of two mirrors
    (XA-17). `asked` is the plan's word: it says which of two is right. Without a plan ("") neither
    is.
    """
    verdict = unsupported(_FEW)
    for one, a, other, b in _pairs(s):
        if one_memory and not a.sides & b.sides:
            continue
        difference = differs(a, b)
        if difference is None:
            verdict = ok() if not verdict.expected else verdict
            continue
        expected, actual = f"{difference[0]} ({one})", f"{difference[1]} ({other})"
        if asked and asked == difference[1]:
            expected, actual = f"{asked}, as the plan asks and {other} says", expected
        elif asked and asked == difference[0]:
            expected = f"{asked}, as the plan asks and {one} says"
        elif asked is not None:
            expected, actual = "the same in all interfaces", f"{expected}, {actual}"
        if strict_only and not {one, other} <= _STRICT:
            verdict = advise(expected, actual, note=_RECOMMENDED)
            continue
        return fail(expected, actual)
    return verdict


@check("XA-01")
def addresses_agree(s: Subject) -> Verdict:
    temporary = _temporary_struct(s)

    def differs(a: Descriptor, b: Descriptor) -> tuple[str, str] | None:
        if a.is_empty or b.is_empty or a.is_copy or b.is_copy or a.address == b.address:
            return None
        if temporary and "AS" in (a.interface, b.interface):
            return None
        apart = b.address - a.address
        far = "other memory" if not overlap(a, b) else f"{apart:+d} bytes away"
        return "element (0, …) at one address", far

    verdict = _compare(s, differs, one_memory=True)
    if temporary and not verdict.failed:
        return advise("one address", "the array struct is a temporary of this immutable scalar")
    return verdict


def _temporary_struct(s: Subject) -> bool:
    """Whether a read-only scalar copies its memory for `__array_struct__`, as NumPy's do."""
    arrays = s.arrays
    if "AS" not in arrays or arrays["AS"].ndim or not any(a.readonly for a in arrays.values()):
        return False
    return any(a.address != arrays["AS"].address for n, a in arrays.items() if n in ("AI", "PB"))


@check("XA-02")
def shapes_agree(s: Subject) -> Verdict:
    def differs(a: Descriptor, b: Descriptor) -> tuple[str, str] | None:
        return None if a.shape == b.shape else (f"shape {a.shape}", f"shape {b.shape}")

    return _compare(s, differs, strict_only=True)


@check("XA-03")
def strides_agree(s: Subject) -> Verdict:
    def differs(a: Descriptor, b: Descriptor) -> tuple[str, str] | None:
        same_shape = a.shape == b.shape and not (a.is_copy or b.is_copy)
        if not same_shape or a.meaningful_strides == b.meaningful_strides:
            return None
        return f"byte strides {a.strides}", f"byte strides {b.strides}"

    for name, array in s.comparable.items():
        witness = s.stated_in_elements(name)
        if witness is not None:
            expected = f"byte strides {s.arrays[witness].strides}, as {witness} says"
            return fail(expected, f"{array.strides}, which count elements ({name})")
    verdict = _compare(s, differs, strict_only=True, one_memory=True)
    return verdict if verdict.failed else _overlap_of_elements(s) or verdict


def _overlap_of_elements(s: Subject) -> Verdict | None:
    """Elements that overlap in part. With a plan, the content of the elements tells more."""
    if not s.observation.live:
        return None
    for name, array in s.arrays.items():
        for stride in array.meaningful_strides:
            if stride and abs(stride) < array.itemsize:
                return advise(
                    "strides of 0, or of at least one element",
                    f"a stride of {stride} bytes for elements of {array.itemsize} bytes ({name})",
                    note="elements overlap in part: strides may be in elements instead of bytes",
                )
    return None


@check("XA-04")
def element_types_agree(s: Subject) -> Verdict:
    def differs(a: Descriptor, b: Descriptor) -> tuple[str, str] | None:
        if a.itemsize != b.itemsize or agree(a.element, b.element):
            return None
        if lacks_typestr(a.element) or lacks_typestr(b.element):
            return None
        return str(a.element), str(b.element)

    return _compare(s, differs, asked=str(s.asked_element or ""))


@check("XA-05")
def sizes_agree(s: Subject) -> Verdict:
    def differs(a: Descriptor, b: Descriptor) -> tuple[str, str] | None:
        if a.itemsize != b.itemsize:
            return f"items of {a.itemsize} bytes", f"items of {b.itemsize} bytes"
        if a.shape != b.shape:
            return None  # XA-02's finding, which the totals only follow
        return None if a.nbytes == b.nbytes else (f"{a.nbytes} bytes", f"{b.nbytes} bytes")

    return _compare(s, differs)


@check("XA-06")
def writability_agrees(s: Subject) -> Verdict:
    def differs(a: Descriptor, b: Descriptor) -> tuple[str, str] | None:
        if None in (a.readonly, b.readonly) or a.is_copy or b.is_copy or a.readonly == b.readonly:
            return None
        return words[a.readonly is True], words[b.readonly is True]

    words = {True: "read-only", False: "writable"}
    asked = words[s.plan.readonly] if s.plan is not None else ""
    verdict = _compare(s, differs, one_memory=True, asked=asked)
    return verdict if verdict.failed else _granted_to_writers(s) or verdict


def _granted_to_writers(s: Subject) -> Verdict | None:
    """A buffer may be read-only for some requests and writable for others. Not if another interface
    says, as it does, that the memory is read-only."""
    buffer = s.arrays.get("PB")
    readonly = [name for name, a in s.others("PB").items() if a.readonly and not a.is_copy]
    granted = [name for name in s.views if REQUESTS[name] & WRITABLE]
    if buffer is None or not buffer.readonly or not readonly or not granted:
        return None
    return fail(f"no writable memory: {readonly[0]} and PB say read-only", f"{granted[0]} granted")


@check("XA-07")
def swapped_arrays_have_no_dlpack(s: Subject) -> Verdict:
    swapped = [
        n for n, other in s.others("DL").items() if other.element and other.element.is_swapped
    ]
    if not swapped or not s.has("DLPACK"):
        return unsupported("no swapped byte order, or no __dlpack__")
    if s.main.error is not None:
        return ok()
    return fail(f"a refusal, for {swapped[0]} says swapped", "an export")


@check("XA-08")
def contents_agree(s: Subject) -> Verdict:
    wanted = s.expected_walk
    contents = dict(s.walks)
    contents.pop("DL strides as bytes", None)
    if not s.scope.has_storage(s.observation) and mirrors_have_equal_content(s).failed:
        contents.pop("CAI", None)
    if not contents or (wanted is None and len(contents) < 2):
        return unsupported("no two sources of the elements' bytes")
    reference_name, reference = (
        ("the plan", wanted) if wanted is not None else next(iter(contents.items()))
    )
    shape = s.view_map.shape if s.view_map else None
    reference = _without_padding(s, reference)
    for name, content in contents.items():
        array = s.arrays.get(name)
        # Exported bytes (AI-17) are not compared with the buffer that they are borrowed from, but
        # with the plan.
        is_borrowed = array is not None and array.is_raw and wanted is None
        if is_borrowed or (array is not None and shape is not None and array.shape != shape):
            continue
        content = _without_padding(s, content)
        if len(content) == len(reference) and content != reference:
            position = next(i for i, (x, y) in enumerate(zip(content, reference)) if x != y) // 2
            itemsize = array.itemsize if array is not None else 1
            drawing = drawing_of(array) if array is not None else None
            number = position // itemsize
            index = list(sample_indices(array.shape)[number]) if array is not None else number
            expected, actual = (
                _value(array, text, number * itemsize, itemsize) for text in (reference, content)
            )
            return fail(
                f"{expected} at element {index} ({reference_name})",
                f"{actual} ({name})",
                drawing=drawing,
            )
    return ok()


def _without_padding(s: Subject, content: str) -> str:
    """The bytes of sampled elements, with the padding of the plan's record zeroed."""
    info = None if s.plan is None else s.plan.dtype_info
    if info is None or not info.padding or len(content) % (2 * info.itemsize):
        return content
    raw = bytearray.fromhex(content)
    info.valid(raw)
    return raw.hex()


def _value(array: Descriptor | None, content: str, start: int, itemsize: int) -> str:
    raw = bytes.fromhex(content[2 * start : 2 * (start + itemsize)])
    element = None if array is None else array.element
    return (element or Element("raw", itemsize, "|")).shown(raw)


@check("XA-09", once=True)
def writes_show_everywhere(s: Subject) -> Verdict:
    poked = s.info.poke
    if poked is None:
        return untested("a live object is not written to, or memory that is not touched")
    for pair, seen in poked.items():
        one, _, other = pair.partition(">")
        if seen or overlap(s.arrays[one], s.arrays[other]):
            continue  # overlapping memory at two addresses is XA-01's question
        return fail(
            "one memory behind all interfaces", f"a write through {one} does not show in {other}"
        )
    writable = [a for a in s.comparable.values() if a.readonly is False and not a.is_copy]
    return ok() if len(writable) > 1 else unsupported("fewer than two writable interfaces")


@check("XA-10")
def first_element_is_where_it_should_be(s: Subject) -> Verdict:
    if not s.observation.map_known:
        return untested("this system does not report its memory map")
    if not s.arrays:
        return unsupported("no interface describes this array")
    on_host = {name: array for name, array in s.arrays.items() if array.is_host}
    unmapped = [name for name in on_host if not s.mapping.get(name, MappingInfo()).first]
    if unmapped:
        return fail("a first element that the host can read", f"unmapped memory ({unmapped[0]})")
    lost = [n for n, view in s.views.items() if not view.buf and view.len]
    if lost:
        return fail("a first element that the host can read", f"buf NULL for {lost[0]}")
    if all(array.device[0] == CPU for array in s.arrays.values()):
        return ok()
    if s.no_driver:
        return untested(s.no_driver)
    for name, array in s.arrays.items():
        pointer = s.pointer(name)
        if array.device[0] != CPU and not array.is_empty and not (pointer and pointer.device):
            return fail("a first element that the device can reach", f"no device memory ({name})")
    return ok()


@check("XA-11", once=True)
def any_drop_order_is_safe(s: Subject) -> Verdict:
    for name in s.info.free:
        return fail(f"memory of {name} kept while its export is held", GIVEN_AWAY)
    drops = s.life.drops
    if drops is None and None in s.rejected.values():
        return unsupported("elements that are not whole bytes: nothing is followed")
    if drops is None:
        return untested("needs a producer, and memory that is touched")
    if not s.observation.map_known:
        return untested("this system does not report its memory map")
    if all(len(drop.order) < 2 for drop in drops):
        return unsupported("nothing is exported that could outlive the object")
    for drop in drops:
        for loss in drop.lost:
            cause = f"{loss.dropped} was dropped" if loss.dropped else "another array was made"
            return fail(
                f"memory of {loss.survivor} that keeps its elements while it is held",
                f"{loss_of(loss, s.arrays.get(loss.survivor))} after {cause} "
                f"(order: {', '.join(drop.order)})",
            )
    return ok()


@check("XA-12")
def views_move_together(s: Subject) -> Verdict:
    if not s.is_view:
        return unsupported("judged on views")
    judged = False
    for name, array in s.arrays.items():
        expected = s.expected_view(name)
        if (
            expected is None
            or array.is_raw
            or not (array.is_empty or s.shares_memory_with_root(name))
        ):
            continue
        judged = True
        if array.shape != expected.shape:
            return fail(f"shape {expected.shape} of the view", f"{array.shape} ({name})")
        if array.meaningful_strides != expected.meaningful_strides:
            return fail(
                f"byte strides {expected.strides} of the view",
                f"{array.strides} ({name})",
                drawing=drawing_of(s.root.arrays[name]),
            )
        if not array.is_empty and not array.is_copy and array.address != expected.address:
            moved = array.address - expected.address
            return fail("element (0, …) of the view", f"{moved:+d} bytes away from it ({name})")
    return ok() if judged else unsupported("this type's slices do not share its memory")


@check("XA-13", once=True)
def repetition_changes_nothing(s: Subject) -> Verdict:
    """No text promises anything to threads that race, so what they find is ROBUST."""
    verdict = _same_again(s, s.observation.repeated, "the same answer again")
    race = s.observation.race
    if race is None or verdict.outcome is not Outcome.PASS:
        return verdict
    raced = _same_again(s, race.infos, "the same answer for eight threads at the same time")
    return graded(raced if raced.failed else _as_resizable(s, race), "ROBUST")


def _as_resizable(s: Subject, race: RaceInfo) -> Verdict:
    """After threads gave back all exports, the memory can be resized as before, and only then."""
    for method, ways in s.life.resizes.items():
        for interface, before in ways.items():
            after = race.resizes.get(method, {}).get(interface)
            expected = f"{method}() as before, once eight threads have given back their exports"
            if after is None or (before.allowed_after and not after.allowed_after):
                return fail(expected, f"refused ({interface})")
            if before.refused is not None and after.refused is None:
                return fail(expected, f"allowed while the memory is exported ({interface})")
    return ok()


def _same_again(s: Subject, infos: list[ArrayInfo], expected: str) -> Verdict:
    judged = False
    for repeated in infos:
        for name, other in _again(repeated).items():
            first = s.arrays.get(name)
            if first is None or first.is_raw:
                continue
            judged = True
            if isinstance(other, Rejected):
                return fail(expected, f"an answer that breaks {other.rule} ({name})")
            difference = _difference(first, other)
            if difference:
                return fail(expected, f"another {difference} ({name})")
    return ok() if judged else unsupported("no interface describes this array")


def _again(info: ArrayInfo) -> dict[str, Descriptor | Rejected]:
    """The descriptors of light info, or why there is none."""
    granted = best_buffer(info.pb)
    dictionary, main, cuda = info.ai, info.main, info.cai
    reads = {
        "AI": (lambda: of_array_interface(dictionary, info.pb)) if dictionary else None,
        "PB": (lambda: of_buffer(granted[1])) if granted else None,
        "DL": (lambda: of_dlpack(main)) if main else None,
        "CAI": (lambda: of_cuda_interface(cuda)) if cuda else None,
    }
    found: dict[str, Descriptor | Rejected] = {}
    for name, read in reads.items():
        if read is None:
            continue
        try:
            found[name] = read()
        except Rejected as rejection:
            found[name] = rejection
    return found


def _difference(first: Descriptor, other: Descriptor) -> str | None:
    for attribute in ("shape", "itemsize", "element", "readonly", "device", "stream"):
        if getattr(first, attribute) != getattr(other, attribute):
            return attribute
    if first.meaningful_strides != other.meaningful_strides:
        return "strides"
    # A legacy capsule cannot say that it is a copy, and may be one.
    is_legacy = first.interface == "DL" and first.readonly is None
    moved = first.address != other.address
    if moved and not (first.is_empty or first.is_copy or other.is_copy or is_legacy):
        return "address"
    return None


@check("XA-14")
def refusals_agree_in_kind(s: Subject) -> Verdict:
    buffer = (
        {error.type for n, (error, _) in s.refusals.items() if n != "FORMAT"} if s.views else set()
    )
    refused = s.info.main.error if s.info.main is not None else None
    export = set() if refused is None else {refused.type}
    if not buffer or not export:
        return unsupported("not both the buffer protocol and DLPack refused something")
    if buffer == export == {"BufferError"}:
        return ok()
    return fail(
        "BufferError from both",
        f"{', '.join(sorted(buffer))} from the buffer protocol, "
        f"{', '.join(sorted(export))} from DLPack",
    )


@check("XA-16", once=True)
def streams_agree(s: Subject) -> Verdict:
    array = s.arrays.get("CAI")
    answer = s.info.exchange.stream if s.info.exchange is not None else None
    if array is None or array.stream is None or answer is None or answer.result != 0:
        return unsupported("not both interfaces name a stream")
    named = answer.value or LEGACY_STREAM
    if named == array.stream:
        return ok()
    words = {LEGACY_STREAM: "the legacy default stream", 2: "the per-thread default stream"}
    return fail(
        f"{words.get(array.stream, 'another stream')} (CAI)",
        f"{words.get(named, 'another stream')} (exchange table)",
    )


@check("XA-17", once=True)
def mirrors_have_equal_content(s: Subject) -> Verdict:
    host = next((n for n in ("AI", "AS", "PB") if n in s.arrays and not s.arrays[n].is_raw), None)
    if host is None or "CAI" not in s.arrays:
        return unsupported("not both a host and a device interface")
    if s.arrays[host].shape != s.arrays["CAI"].shape:
        return fail(f"shape {s.arrays[host].shape} ({host})", f"{s.arrays['CAI'].shape} (CAI)")
    if s.arrays[host].is_empty or s.arrays[host].address == s.arrays["CAI"].address:
        return ok("one memory, or no elements")
    if s.no_driver:
        return untested(s.no_driver)
    contents = s.walks.get(host), s.walks.get("CAI")
    if None in contents:
        return unsupported("memory that is not touched")
    if contents[0] == contents[1]:
        return ok("two mirrors with equal content")
    return fail(f"the content that {host} shows", "other content in the device's mirror")


@check("XA-18")
def probes_never_raise(s: Subject) -> Verdict:
    for name, part in s.probes.items():
        if part.error is not None:
            return fail(f"hasattr(x, {name!r}) True or False", f"it raised {part.error.type}")
    return ok()
