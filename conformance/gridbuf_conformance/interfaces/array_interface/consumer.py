"""Consumer checks of the array interface."""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...outcomes import Verdict
from ...rules.consumer_common import taken
from ...rules.host_consumers import lives_on, writability
from ...rules.registry import consumer_check
from ...rules.verdicts import advise, fail, ok

consumer_check("AI-25")(writability)


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


@consumer_check("AI-28")
def object_is_kept_alive(c: Consumption, control: Consumption | None) -> Verdict:
    return lives_on(c, "the exporting object is held as long as the result lives")
