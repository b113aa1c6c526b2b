"""Consumer checks of DLPack's Python methods: DP-05 … DP-33."""

from __future__ import annotations

from ..outcomes import Verdict
from .consumer_registry import consumer_check
from .consumption import Consumption, taken
from .verdicts import fail, ok, unsupported


@consumer_check("DP-30")
def result_is_the_array(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return unsupported(f"refused: {c.error['type']}")
    if c.mistake is not None:
        return fail(*c.mistake)
    return ok() if c.can_be_read else unsupported("the result cannot be looked into")


@consumer_check("DP-32")
def survives_and_errs_cleanly(c: Consumption, control: Consumption | None) -> Verdict:
    if c.accepted or not c.unclean:
        return ok()
    return fail("the array, or a clean error", f"{c.refusal} ({c.unclean})")


@consumer_check("DL-10")
def offset_is_added(c: Consumption, control: Consumption | None) -> Verdict:
    return taken(c, control)
