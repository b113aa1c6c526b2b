"""Consumer checks of the buffer protocol."""

from __future__ import annotations

from ...exports import PLAIN
from ...exports.consumption import Consumption
from ...info import ExportInfo
from ...outcomes import Verdict
from ...rules.consumer_common import taken
from ...rules.host_consumers import about, judge_results
from ...rules.registry import consumer_check
from ...rules.verdicts import advise, fail, ok, unsupported

judge_results("PB-30")
consumer_check("PB-26")(taken)


@consumer_check("PB-22")
def complex_is_read(c: Consumption, control: Consumption | None) -> Verdict:
    if about(c) != "PB-22":
        return unsupported(f"the export is about {about(c)}")
    if c.export.variant.name in (PLAIN, "complex") or c.accepted or c.unclean:
        return taken(c, control)
    if control is None or not control.accepted:
        return unsupported("complex numbers are refused in both notations")
    note = "PEP 3118 has Zf and Zd; CPython 3.14 writes F and D, 3.15 knows both"
    return advise("the array, as with Zf and Zd", c.refusal, note=note)


@consumer_check("PB-28")
def method_returns_a_memoryview(c: Consumption, control: Consumption | None) -> Verdict:
    if about(c) != "PB-28" or c.is_wrapped:
        return ok()
    return taken(c, control)


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
    if len(releases) > len(_releases(c.returned)):
        return ok("the result has no memory: each request to it is one to the exporter")
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
    for source in _sources(c.after):
        if source.references:
            return fail("the references to the exporter as before", f"{source.references:+d}")
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
