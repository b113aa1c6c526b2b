"""Consumer checks of the interfaces to host memory except DLPack: the array interface, the array
struct, the buffer protocol, and the round trip through any of them.

A plain export can be any array, so several rules look at it. Each rule answers only its question
(`_about`), so that one mistake fails one rule: wrong swapped numbers belong to AI-34,
with strides AI-22's, and XA-15 has the rest.
"""

from __future__ import annotations

from ..exports import PLAIN
from ..exports.consumption import Consumption
from ..info import ExportInfo
from ..outcomes import Verdict
from .consumer_common import copied_as_told, shared_as_told, taken
from .consumer_registry import consumer_check
from .verdicts import advise, fail, ok, unsupported

_OF_STRIDES = {"array-interface": "AI-22", "array-struct": "AS-04", "buffer": "PB-32"}
_MAY_BE_REFUSED = ("PB-07",)
"""No text says that a consumer must take such exports: a clean refusal is an advisory, a wrong result a failure."""
_OF_TYPES = {"array-interface": "AI-34", "array-struct": "AS-05", "buffer": "PB-20"}


def _about(c: Consumption) -> str:
    """The rule that a wrong result of this export fails."""
    export = c.export
    name = export.interface.name
    if export.variant.name != PLAIN:
        return str(export.variant.rules[0])
    if name == "buffer" and export.dtype_info.kind == "c":
        return "PB-22"
    if export.byteorder == "swapped" or (name == "buffer" and export.dtype_info.fields):
        return _OF_TYPES.get(name, "XA-15")
    if export.views or export.layout not in (None, tuple(range(export.ndim))):
        return _OF_STRIDES.get(name, "XA-15")
    return "XA-15"


# -- the result ------------------------------------------------------------------------------------


def _judges_result(rule: str) -> None:
    """Registers the check that an export about `rule` was taken as its variant allows."""

    def decide(c: Consumption, control: Consumption | None) -> Verdict:
        if _about(c) != rule:
            return unsupported(f"the export is about {_about(c)}")
        verdict = taken(c, control)
        if rule in _MAY_BE_REFUSED and verdict.failed and not c.accepted and not c.unclean:
            return advise("the array, as from the plain export", c.refusal)
        return verdict

    decide.__name__ = f"taken_{rule.replace('-', '_').lower()}"
    consumer_check(rule)(decide)


for _rule in (
    *(
        "AI-02",
        "AI-04",
        "AI-05",
        "AI-10",
        "AI-15",
        "AI-16",
        "AI-18",
        "AI-20",
        "AI-21",
        "AI-22",
        "AI-23",
    ),
    *("AI-24", "AI-27", "AI-31", "AI-32", "AI-34"),
    *("AS-01", "AS-02", "AS-04", "AS-06"),
    *(
        "PB-07",
        "PB-09",
        "PB-10",
        "PB-15",
        "PB-16",
        "PB-17",
        "PB-18",
        "PB-20",
        "PB-21",
        "PB-30",
        "PB-32",
    ),
):
    _judges_result(_rule)


@consumer_check("XA-15")
def round_trip(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return unsupported(f"refused: {c.error.type}")
    if not c.info.unchanged:
        return fail("memory that is read", "the consumer changed bytes in or around the array")
    if _about(c) != "XA-15":
        return ok() if c.mistake is None else unsupported(f"{_about(c)} has the mistake")
    return taken(c, control)


def _writability(c: Consumption) -> Verdict:
    """Whether what cannot be written is handed on as if it could be."""
    if not c.export.readonly:
        return unsupported("the memory is writable")
    if not c.accepted:
        return ok(f"refused: {c.error.type}")
    if not c.aliases:
        return ok("the result is a copy")
    claims = [array.readonly for array in c.arrays.values() if array.readonly is not None]
    if claims and not any(claims):
        return fail("a read-only result over read-only memory", "the result says it is writable")
    return ok()


@consumer_check("AI-25")
def readonly_stays_readonly(c: Consumption, control: Consumption | None) -> Verdict:
    return _writability(c)


@consumer_check("AS-05")
def flags_are_followed(c: Consumption, control: Consumption | None) -> Verdict:
    if _about(c) == "AS-05" and c.export.variant.name != "read-only":
        return taken(c, control)
    return _writability(c)


@consumer_check("XA-06")
def writability_agrees(c: Consumption, control: Consumption | None) -> Verdict:
    return _writability(c)


@consumer_check("AI-26")
def mask_is_not_dropped(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return taken(c, control)
    return advise("an error: this consumer has no masks", "the array was taken without its mask")


@consumer_check("AI-29")
def errors_pass_through(c: Consumption, control: Consumption | None) -> Verdict:
    raised = c.export.variant.about.rpartition(" ")[2]
    if c.info.error is None:
        return fail(f"{raised}, as the property raised", "no error")
    if raised in (*c.error.mro, *c.error.causes):
        return ok()
    return fail(f"{raised}, as the property raised", c.refusal)


@consumer_check("PB-22")
def complex_is_read(c: Consumption, control: Consumption | None) -> Verdict:
    if _about(c) != "PB-22":
        return unsupported(f"the export is about {_about(c)}")
    if c.export.variant.name in (PLAIN, "complex") or c.accepted or c.unclean:
        return taken(c, control)
    if control is None or not control.accepted:
        return unsupported("complex numbers are refused in both notations")
    note = "PEP 3118 has Zf and Zd; CPython 3.14 writes F and D, 3.15 knows both"
    return advise("the array, as with Zf and Zd", c.refusal, note=note)


@consumer_check("PB-28")
def method_returns_a_memoryview(c: Consumption, control: Consumption | None) -> Verdict:
    if _about(c) != "PB-28" or c.is_wrapped:
        return ok()
    return taken(c, control)


@consumer_check("XA-19")
def copy_is_obeyed(c: Consumption, control: Consumption | None) -> Verdict:
    """For copy=False the text speaks of input with a buffer only."""
    if c.export.interface.name == "buffer" and c.info.keywords.get("copy") is False:
        return shared_as_told(c)
    return copied_as_told(c)


# -- life ------------------------------------------------------------------------------------------


def _lives_on(c: Consumption, expected: str) -> Verdict:
    """Whether the memory is held as long as the result points into it, and let go of afterwards."""
    if c.accepted and c.aliases and c.kept.free:
        return fail(expected, "the memory was given back while the result points into it")
    if not c.after.free:
        return advise("the exporter is let go of with the result", "it is still held")
    return ok() if c.accepted else unsupported(f"refused: {c.error.type}")


@consumer_check("AI-28")
def object_is_kept_alive(c: Consumption, control: Consumption | None) -> Verdict:
    return _lives_on(c, "the exporting object is held as long as the result lives")


@consumer_check("AS-07")
def capsule_is_kept_alive(c: Consumption, control: Consumption | None) -> Verdict:
    return _lives_on(c, "the capsule is held as long as the result lives")


def _sources(seen: ExportInfo) -> list[ExportInfo]:
    """What was seen of the exporter's own buffer, or of those of the objects that it exported."""
    return [seen] if seen.exported is None else seen.exported


def _releases(seen: ExportInfo) -> list[int]:
    """How often each view was released."""
    return [count for source in _sources(seen) for count in source.releases]


@consumer_check("PB-35")
def no_use_after_release(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted or not c.aliases:
        return ok("no part of the result is in the memory")
    releases = _releases(c.kept)
    if releases and 0 not in releases:
        return fail(
            "the view is held as long as the result uses its memory",
            "every view was released, and the result points into the memory",
        )
    return ok()


@consumer_check("PB-24")
def released_once(c: Consumption, control: Consumption | None) -> Verdict:
    releases = _releases(c.after)
    for count in releases:
        if count != 1:
            times = "never" if not count else f"{count} times"
            return fail("each view is released once", f"one was released {times}")
    return ok() if releases else unsupported("no request was granted")


@consumer_check("PB-25")
def metadata_is_left_alone(c: Consumption, control: Consumption | None) -> Verdict:
    if all(source.metadata_unchanged for source in _sources(c.after)):
        return ok()
    return fail("shape, strides and suboffsets as the exporter wrote them", "they were changed")


@consumer_check("PB-29")
def release_method_is_called(c: Consumption, control: Consumption | None) -> Verdict:
    calls = c.after.method_releases
    if not c.after.method_grants:
        return unsupported("the exporter was not asked, or refused")
    if not calls:
        return fail("__release_buffer__ is called with the view", "it was not called")
    return ok() if all(calls) else fail("the view that was handed out", "another one")


@consumer_check("PB-31")
def requests_are_requests(c: Consumption, control: Consumption | None) -> Verdict:
    requests = [name for source in _sources(c.after) for name in source.requests]
    wrong = [name for name in requests if name in ("flags 0x100", "flags 0x200")]
    if not wrong:
        return ok()
    return fail("flags of PyObject_GetBuffer", f"{wrong[0]}, which is one of memoryview's own")
