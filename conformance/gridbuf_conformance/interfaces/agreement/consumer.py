"""Consumer checks of the round trip through any interface to host memory."""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...outcomes import Verdict
from ...rules.consumer_common import copied_as_told, shared_as_told, taken
from ...rules.host_consumers import about, writability
from ...rules.registry import consumer_check
from ...rules.verdicts import fail, ok, unsupported

consumer_check("XA-06")(writability)


@consumer_check("XA-15")
def round_trip(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted:
        return unsupported(f"refused: {c.error.type}")
    if not c.info.unchanged:
        return fail("memory that is read", "the consumer changed bytes in or around the array")
    if about(c) != "XA-15":
        return ok() if c.mistake is None else unsupported(f"{about(c)} has the mistake")
    return taken(c, control)


@consumer_check("XA-19")
def copy_is_obeyed(c: Consumption, control: Consumption | None) -> Verdict:
    """For copy=False the text speaks of input with a buffer only."""
    if c.export.interface.name == "buffer" and c.info.keywords.get("copy") is False:
        return shared_as_told(c)
    return copied_as_told(c)
