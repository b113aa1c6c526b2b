"""Checks of DLPack's C exchange table, DX-01 … DX-13: the producer's side."""

from __future__ import annotations

from collections.abc import Callable

from ...abi.descriptors import Descriptor, Rejected
from ..dlpack_structs.descriptor import of_dlpack, of_tensor
from ..dlpack_structs.structs import CPU
from ...info import CapsuleInfo
from ...outcomes import Verdict
from ..dlpack_protocol.producer import indescribable
from ...rules.registry import check
from ...rules.subject import Subject
from ...rules.verdicts import advise, fail, ok, unsupported, untested

_NAME = "dlpack_exchange_api"
_OPTIONAL = "dltensor_from_py_object_no_sync"
_NOT_CALLED = "its functions were not called"
_LIVE = "a live object's library is not asked to import or to allocate"


@check("DX-01", needs="DX")
def table_is_a_named_capsule_on_the_type(s: Subject) -> Verdict:
    info = s.exchange
    if info.error is not None:
        return fail("a capsule on the type", f"the look-up raised {info.error.type}")
    if not info.on_type:
        return fail("the attribute on the type", "on the object only")
    if not info.capsule:
        return fail(f"a capsule named {_NAME}", f"a {info.type}")
    if info.name != _NAME:
        return fail(f"a capsule named {_NAME}", f"a capsule named {info.name!r}")
    if info.unmapped:
        return fail("a capsule with a table behind it", "a pointer to unmapped memory")
    return ok()


@check("DX-02", needs="DX", once=True)
def table_is_static(s: Subject) -> Verdict:
    again = s.exchange.again
    if not again.same_address:
        return fail("one table for each type", "another table on the second look")
    if not again.same_content:
        return fail("one table for each type", "other content on the second look")
    return ok()


@check("DX-03", needs="DX")
def header_and_chain_are_sound(s: Subject) -> Verdict:
    info = s.exchange
    major, minor = info.version
    if major != 1:
        return fail("major version 1", f"version ({major}, {minor})")
    if isinstance(info.chain, str):
        return fail("a chain of older tables that ends with NULL", f"a chain that is {info.chain}")
    return ok()


@check("DX-04", needs="DX")
def required_entries_are_functions(s: Subject) -> Verdict:
    for name, word in s.exchange.entries.items():
        if word == "not executable" or (word == "NULL" and name != _OPTIONAL):
            return fail(
                f"a function in {name}", word if word == "NULL" else "an address without code"
            )
    return ok()


def _misreported(info: CapsuleInfo) -> str | None:
    """How a call broke the convention "0, or -1 and an exception", or None."""
    if info.error is not None or info.result == 0:
        return None
    return f"{info.result} without an exception"


@check("DX-05", needs="DX")
def failures_set_an_exception(s: Subject) -> Verdict:
    judged = False
    calls = {
        "export": s.exchange.export,
        "bare": s.exchange.bare,
        "import": s.exchange.imported,
        "stream": s.exchange.stream,
    }
    for name, info in calls.items():
        if info is None or info.uncounted:
            continue
        judged = True
        wrong = _misreported(info)
        if wrong is None and info.result == 0 and name == "export" and not info.is_tensor:
            wrong = "0, and no tensor"
        if wrong is not None:
            return fail("0 on success, -1 with an exception set", f"{wrong} ({name})")
    return ok() if judged else unsupported(_NOT_CALLED)


def _reference(s: Subject) -> CapsuleInfo | None:
    """What `__dlpack__` says: without synchronisation where the device has streams."""
    device = s.info.device_pair or [CPU]
    if device[0] != CPU and s.call("stream=-1").is_tensor:
        return s.call("stream=-1")
    info = s.info.main
    return info if info is not None and info.is_tensor else None


def _array(info: CapsuleInfo, read: Callable[[CapsuleInfo], Descriptor]) -> Descriptor | None:
    try:
        return read(info)
    except Rejected:
        return None


def _difference(s: Subject, array: Descriptor | None) -> tuple[str, str] | None:
    """(what `__dlpack__` says, what the table says) in the first field that differs."""
    reference = _reference(s)
    other = None if reference is None else _array(reference, of_dlpack)
    if array is None or other is None:
        return (
            None if array is other else ("an export that describes an array", "one that does not")
        )
    for field, one, two in (
        ("shape", other.shape, array.shape),
        ("element type", str(other.element), str(array.element)),
        ("device", other.device, array.device),
        ("strides in bytes", other.meaningful_strides, array.meaningful_strides),
    ):
        if one != two:
            return f"{field} {one}", f"{two}"
    if not array.is_empty and array.address != other.address:
        return "the address of __dlpack__", f"{array.address - other.address:+d} bytes away from it"
    return None


@check("DX-06", needs="DX")
def export_equals_dlpack(s: Subject) -> Verdict:
    info = s.exchange.export
    reference = _reference(s)
    if info is None:
        return unsupported(_NOT_CALLED)
    if info.is_tensor != (reference is not None):
        outcomes = {True: "an export", False: "a refusal"}
        expected = f"{outcomes[reference is not None]}, as __dlpack__"
        return fail(expected, outcomes[info.is_tensor])
    if reference is None:
        return ok("both refuse")
    array = _array(info, of_dlpack)
    difference = _difference(s, array)
    if difference is not None:
        return fail(*difference)
    other = _array(reference, of_dlpack)
    if array is not None and other is not None and None not in (array.readonly, other.readonly):
        words: dict[bool | None, str] = {True: "read-only", False: "writable"}
        if array.readonly != other.readonly:
            return fail(f"{words[other.readonly]}, as __dlpack__ says", words[array.readonly])
    before, after = info.references or (0, 0)
    if after - before >= 8:
        return fail(
            "a tensor freed by its deleter", f"{(after - before) // 8} references kept by each"
        )
    return ok()


@check("DX-07", needs="DX")
def borrowed_export_owns_nothing(s: Subject) -> Verdict:
    info = s.exchange.bare
    if info is None:
        return unsupported("there is no borrowed export")
    before, after = info.references or (0, 0)
    if after - before >= 8:
        return advise("no reference kept", f"{(after - before) // 8} kept by each call")
    export = s.exchange.export
    exported, borrowed = export is not None and export.is_tensor, info.result == 0
    if exported != borrowed:
        words = {True: "an export", False: "a refusal"}
        return fail(f"{words[exported]}, as the owning export", words[borrowed])
    if not borrowed or _reference(s) is None:
        return ok("both refuse, or nothing to compare with")
    difference = _difference(s, _array(info, of_tensor))
    return ok() if difference is None else fail(*difference)


@check("DX-08", needs="DX", once=True)
def import_takes_ownership(s: Subject) -> Verdict:
    info = s.exchange.imported
    if info is None:
        return untested(_LIVE) if s.observation.live else unsupported("nothing to import")
    if info.uncounted:
        return unsupported("no deleter to count")
    if info.null:
        return fail("an object of a type that has this table", "0, and no object")
    if info.own_type is None:
        return unsupported("the import was refused")
    if not info.own_type:
        return fail("an object of a type that has this table", f"a {info.type}")
    if info.calls_while_held:
        return fail("a deleter that waits for the object", "called while the object lives")
    if info.calls != 1:
        return fail("one call of the deleter when the object is gone", f"{info.calls} calls")
    return ok()


@check("DX-09", needs="DX", once=True)
def current_stream_is_the_frameworks(s: Subject) -> Verdict:
    info = s.exchange.stream
    if info is None:
        return unsupported(_NOT_CALLED)
    if info.error is not None or info.result != 0:
        what = info.error.type if info.error is not None else f"{info.result}"
        return fail("the current stream, or NULL", what)
    named = s.pending.get("DX stream")
    if named is False:
        return fail("the stream that the library was told to work on", "another one")
    return ok() if named else ok("no stream of the suite's own to compare with")


@check("DX-10", needs="DX", once=True)
def allocator_follows_the_prototype(s: Subject) -> Verdict:
    info, refused = s.exchange.allocated, s.exchange.allocation_refused
    if info is None or refused is None:
        return untested(_LIVE) if s.observation.live else unsupported(_NOT_CALLED)
    if refused.result == 0:
        return fail("a refusal of an element type that does not exist", "0")
    if not refused.reported:
        return fail("the error callback called on failure", "no call")
    if len(refused.reported) > 1:
        return fail("one call of the error callback", f"{len(refused.reported)} calls")
    if not info.is_tensor:
        said = ", ".join(info.reported) or "nothing"
        return fail("a new tensor of shape (2, 3)", f"a refusal ({said})")
    if info.reported:
        return fail("no call of the error callback on success", f"{len(info.reported)} calls")
    return _new_tensor_verdict(info)


def _new_tensor_verdict(info: CapsuleInfo) -> Verdict:
    for field, wanted in (
        ("shape", info.asked),
        ("dtype", [2, 32, 1]),
        ("device", info.device_asked),
    ):
        if getattr(info, field) != wanted:
            return fail(f"{field} {wanted} of the prototype", str(getattr(info, field)))
    if info.strides is not None and info.strides not in ([3, 1], [1, 2]):
        return fail("strides of the allocator's own", f"strides {info.strides}")
    if info.byte_offset >= 2**32 or not info.data:
        return fail("separate memory", "the data or byte_offset of the prototype")
    return ok()


@check("DX-12", needs="DX")
def refusals_are_buffer_errors(s: Subject) -> Verdict:
    info = s.exchange.export
    why = indescribable(s)
    if why is None or info is None or info.error is None:
        return unsupported("DLPack can describe this array, or it was not refused")
    if "BufferError" in info.error.mro:
        return ok()
    return fail(f"BufferError for {why}", info.error.type)


@check("DX-13", needs="DX", once=True)
def import_refuses_another_major(s: Subject) -> Verdict:
    info = s.exchange.later_major
    if info is None:
        return untested(_LIVE) if s.observation.live else unsupported(_NOT_CALLED)
    if info.result == 0:
        return fail("an error for a tensor of version 2.0", "an object")
    if info.calls > 1:
        return fail("one call of the deleter", f"{info.calls} calls")
    if info.calls:
        return ok()
    note = "the import steals the tensor; whether also when it fails, the header leaves open"
    return advise("the deleter of the refused tensor called", "not called", note=note)
