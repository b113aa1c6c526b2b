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
    kept = _kept(c.result.ai)
    if c.accepted and kept["typestr"].value == "|t1" and _extents(kept) == [8 * c.export.nbytes]:
        return ok("the result has the same bits, of kind 't'")
    return taken(c, control)


@consumer_check("AI-26")
def mask_is_not_dropped(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return taken(c, control)
    mask = _kept(c.result.ai.mask_interface if c.result.ai else None)
    if _extents(mask) == [*c.export.view_map.shape]:
        return ok("the result has the mask")
    return advise("the mask, or an error: without it this is another array", "it was dropped")


def _kept(info: InterfaceInfo | None) -> dict[str, Value]:
    """The described items of a dict, with a shape and a typestr."""
    return {"shape": NONE, "typestr": NONE, **((info.fields if info else None) or {})}


def _extents(fields: dict[str, Value]) -> list[int] | None:
    shape = fields["shape"]
    return None if shape is NONE else [extent.value for extent in shape.items]


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
