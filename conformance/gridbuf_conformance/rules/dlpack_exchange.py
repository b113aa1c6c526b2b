"""Checks of DLPack's C exchange table, DX-01 … DX-12: the producer's side."""

from __future__ import annotations

from typing import Any

from ..abi.dlpack import CPU
from ..descriptors import Descriptor, Rejected, of_dlpack, of_tensor
from ..outcomes import Verdict
from .dlpack_protocol import indescribable
from .registry import check
from .subject import Subject
from .verdicts import fail, ok, unsupported, untested

_NAME = "dlpack_exchange_api"
_OPTIONAL = "dltensor_from_py_object_no_sync"
_NOT_CALLED = "its functions were not called"
_LIVE = "a live object's library is not asked to import or to allocate"


@check("DX-01", needs="DX")
def table_is_a_named_capsule_on_the_type(s: Subject) -> Verdict:
    facts = s.facts["exchange"]
    if "error" in facts:
        return fail("a capsule on the type", f"the look-up raised {facts['error']['type']}")
    if not facts["on_type"]:
        return fail("the attribute on the type", "on the object only")
    if not facts["capsule"]:
        return fail(f"a capsule named {_NAME}", f"a {facts['type']}")
    if facts["name"] != _NAME:
        return fail(f"a capsule named {_NAME}", f"a capsule named {facts['name']!r}")
    if facts.get("unmapped"):
        return fail("a capsule with a table behind it", "a pointer to unmapped memory")
    return ok()


@check("DX-02", needs="DX", once=True)
def table_is_static(s: Subject) -> Verdict:
    again = s.facts["exchange"]["again"]
    if not again["same_address"]:
        return fail("one table for each type", "another table on the second look")
    if not again["same_content"]:
        return fail("one table for each type", "other content on the second look")
    return ok()


@check("DX-03", needs="DX")
def header_and_chain_are_sound(s: Subject) -> Verdict:
    facts = s.facts["exchange"]
    major, minor = facts["version"]
    if major != 1:
        return fail("major version 1", f"version ({major}, {minor})")
    if isinstance(facts["chain"], str):
        return fail(
            "a chain of older tables that ends with NULL", f"a chain that is {facts['chain']}"
        )
    return ok()


@check("DX-04", needs="DX")
def required_entries_are_functions(s: Subject) -> Verdict:
    for name, word in s.facts["exchange"]["entries"].items():
        if word == "not executable" or (word == "NULL" and name != _OPTIONAL):
            return fail(
                f"a function in {name}", word if word == "NULL" else "an address without code"
            )
    return ok()


def _call(s: Subject, name: str) -> dict[str, Any]:
    call: dict[str, Any] = s.facts["exchange"].get(name, {})
    return call


def _misreported(facts: dict[str, Any]) -> str | None:
    """How a call broke the convention "0, or -1 and an exception", or None."""
    if "error" in facts or facts["result"] == 0:
        return None
    return f"{facts['result']} without an exception"


@check("DX-05", needs="DX")
def failures_set_an_exception(s: Subject) -> Verdict:
    judged = False
    for name in ("export", "bare", "import", "stream"):
        facts = _call(s, name)
        if "result" not in facts:
            continue
        judged = True
        wrong = _misreported(facts)
        if wrong is None and facts["result"] == 0 and name == "export" and "deleter" not in facts:
            wrong = "0, and no tensor"
        if wrong is not None:
            return fail("0 on success, -1 with an exception set", f"{wrong} ({name})")
    return ok() if judged else unsupported(_NOT_CALLED)


def _reference(s: Subject) -> dict[str, Any] | None:
    """What `__dlpack__` says: without synchronisation where the device has streams."""
    device = s.facts.get("device", {}).get("integers", [CPU])
    if device[0] != CPU and "deleter" in s.calls.get("stream=-1", {}):
        return s.calls["stream=-1"]
    facts = s.facts.get("main", {})
    return facts if "deleter" in facts else None


def _array(facts: dict[str, Any], read: Any) -> Descriptor | None:
    try:
        found: Descriptor = read(facts)
    except Rejected:
        return None
    return found


def _difference(
    s: Subject, facts: dict[str, Any], array: Descriptor | None
) -> tuple[str, str] | None:
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
        return "the address of __dlpack__", f"{array.address - other.address:+d} bytes beside it"
    return None


@check("DX-06", needs="DX")
def export_equals_dlpack(s: Subject) -> Verdict:
    facts = _call(s, "export")
    reference = _reference(s)
    if not facts:
        return unsupported(_NOT_CALLED)
    if ("deleter" in facts) != (reference is not None):
        outcomes = {True: "an export", False: "a refusal"}
        expected = f"{outcomes[reference is not None]}, as __dlpack__"
        return fail(expected, outcomes["deleter" in facts])
    if reference is None:
        return ok("both refuse")
    array = _array(facts, of_dlpack)
    difference = _difference(s, facts, array)
    if difference is not None:
        return fail(*difference)
    other = _array(reference, of_dlpack)
    if array is not None and other is not None and None not in (array.readonly, other.readonly):
        words: dict[bool | None, str] = {True: "read-only", False: "writable"}
        if array.readonly != other.readonly:
            return fail(f"{words[other.readonly]}, as __dlpack__ says", words[array.readonly])
    before, after = facts["references"]
    if after - before >= 8:
        return fail(
            "a tensor freed by its deleter", f"{(after - before) // 8} references kept by each"
        )
    return ok()


@check("DX-07", needs="DX")
def borrowed_export_owns_nothing(s: Subject) -> Verdict:
    facts = _call(s, "bare")
    if not facts:
        return unsupported("there is no borrowed export")
    before, after = facts["references"]
    if after - before >= 8:
        return fail("no reference kept", f"{(after - before) // 8} kept by each call")
    exported, borrowed = "deleter" in _call(s, "export"), "data" in facts
    if exported != borrowed:
        words = {True: "an export", False: "a refusal"}
        return fail(f"{words[exported]}, as the owning export", words[borrowed])
    if not borrowed or _reference(s) is None:
        return ok("both refuse, or nothing to compare with")
    difference = _difference(s, facts, _array(facts, of_tensor))
    return ok() if difference is None else fail(*difference)


@check("DX-08", needs="DX", once=True)
def import_takes_ownership(s: Subject) -> Verdict:
    facts = _call(s, "import")
    if not facts:
        return untested(_LIVE) if s.observation["live"] else unsupported("nothing to import")
    if facts.get("uncounted"):
        return unsupported("no deleter to count")
    if facts.get("null"):
        return fail("an object of a type that offers this table", "0, and no object")
    if "own_type" not in facts:
        return unsupported("the import was refused")
    if not facts["own_type"]:
        return fail("an object of a type that offers this table", f"a {facts['type']}")
    if facts["calls_while_held"]:
        return fail("a deleter that waits for the object", "called while the object lives")
    if facts["calls"] != 1:
        return fail("one call of the deleter when the object is gone", f"{facts['calls']} calls")
    return ok()


@check("DX-09", needs="DX", once=True)
def current_stream_is_the_frameworks(s: Subject) -> Verdict:
    facts = _call(s, "stream")
    if not facts:
        return unsupported(_NOT_CALLED)
    if "error" in facts or facts["result"] != 0:
        what = facts["error"]["type"] if "error" in facts else f"{facts['result']}"
        return fail("the current stream, or NULL", what)
    named = (s.observation.get("pending") or {}).get("DX stream")
    if named is False:
        return fail("the stream that the library was told to work on", "another one")
    return ok() if named else ok("no stream of the suite's own to compare with")


@check("DX-10", needs="DX", once=True)
def allocator_follows_the_prototype(s: Subject) -> Verdict:
    facts, refused = _call(s, "allocated"), _call(s, "allocation_refused")
    if not facts:
        return untested(_LIVE) if s.observation["live"] else unsupported(_NOT_CALLED)
    if refused["result"] == 0:
        return fail("a refusal of an element type that does not exist", "0")
    if not refused["reported"]:
        return fail("the error callback called on failure", "no call")
    if len(refused["reported"]) > 1:
        return fail("one call of the error callback", f"{len(refused['reported'])} calls")
    if "deleter" not in facts:
        said = ", ".join(facts["reported"]) or "nothing"
        return fail("a new tensor of shape (2, 3)", f"a refusal ({said})")
    if facts["reported"]:
        return fail("no call of the error callback on success", f"{len(facts['reported'])} calls")
    return _new_tensor_verdict(facts)


def _new_tensor_verdict(facts: dict[str, Any]) -> Verdict:
    for field, wanted in (
        ("shape", facts["asked"]),
        ("dtype", [2, 32, 1]),
        ("device", facts["device_asked"]),
    ):
        if facts[field] != wanted:
            return fail(f"{field} {wanted} of the prototype", str(facts[field]))
    if facts["strides"] is not None and facts["strides"] not in ([3, 1], [1, 2]):
        return fail("strides of the allocator's own", f"strides {facts['strides']}")
    if facts["byte_offset"] >= 2**32 or not facts["data"]:
        return fail("memory of its own", "the prototype's data or byte_offset")
    return ok()


@check("DX-12", needs="DX")
def refusals_are_buffer_errors(s: Subject) -> Verdict:
    facts = _call(s, "export")
    why = indescribable(s)
    if why is None or "error" not in facts:
        return unsupported("DLPack can describe this array, or it was not refused")
    if "BufferError" in facts["error"]["mro"]:
        return ok()
    return fail(f"BufferError for {why}", facts["error"]["type"])
