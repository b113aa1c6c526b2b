"""Consumer checks of the array struct."""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...outcomes import Verdict
from ...rules.consumer_common import taken
from ...rules.host_consumers import about, lives_on, writability
from ...rules.registry import consumer_check


@consumer_check("AS-05")
def flags_are_followed(c: Consumption, control: Consumption | None) -> Verdict:
    if about(c) == "AS-05" and c.export.variant.name != "read-only":
        return taken(c, control)
    return writability(c)


@consumer_check("AS-07")
def capsule_is_kept_alive(c: Consumption, control: Consumption | None) -> Verdict:
    return lives_on(c, "the capsule is held as long as the result lives")
