"""Consumer checks of the array interface."""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...info import InterfaceInfo, Value
from ...info.arrays import NONE
from ...outcomes import Verdict
from ...rules.consumer_common import taken
from ...rules.host_consumers import lives_on, writability
from ...rules.registry import consumer_check
from ...rules.verdicts import advise, fail, ok

consumer_check("AI-25")(writability)


@consumer_check("AI-10")
def bits_are_not_bytes(c: Consumption, control: Consumption | None) -> Verdict:
    fields = _fields(c.result.ai)
    kind = fields.get("typestr", NONE).value
    if c.accepted and kind == "|t1" and _shape(fields) == [8 * c.export.nbytes]:
        return ok("the result has the same bits, of kind 't'")
    return taken(c, control)


@consumer_check("AI-26")
def mask_is_not_dropped(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return taken(c, control)
    mask = c.result.ai.mask_interface if c.result.ai is not None else None
    if _shape(_fields(mask)) == [*c.export.view_map.shape]:
        return ok("the result has the mask")
    return advise("the mask, or an error: without it this is another array", "it was dropped")


def _fields(info: InterfaceInfo | None) -> dict[str, Value]:
    """The described items of a dict; none if there is no dict."""
    return (info.fields if info is not None else None) or {}


def _shape(fields: dict[str, Value]) -> list[int] | None:
    """The extents in a dict; None if there is no shape."""
    return [extent.value for extent in fields["shape"].items] if "shape" in fields else None


@consumer_check("AI-29")
def errors_pass_through(c: Consumption, control: Consumption | None) -> Verdict:
    raised = c.export.variant.about.rpartition(" ")[2]
    if c.info.error is None:
        return fail(f"{raised}, as the property raised", "no error")
    if raised in (*c.error.mro, *c.error.causes):
        return ok()
    return fail(f"{raised}, as the property raised", c.refusal)


@consumer_check("AI-28")
def object_is_kept_alive(c: Consumption, control: Consumption | None) -> Verdict:
    return lives_on(c, "the exporting object is held as long as the result lives")
