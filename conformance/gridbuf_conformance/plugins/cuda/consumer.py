"""Consumer checks of the CUDA array interface: CAI-02, 08, 10, 13, 15, 20, 23 and 26."""

from __future__ import annotations

from ...exports.consumption import Consumption
from .exports import PENDING_BYTE
from ...outcomes import Verdict
from ...rules.consumer_common import taken
from ...rules.host_consumers import writability
from ...rules.registry import consumer_check
from ...rules.verdicts import fail, ok, unsupported

consumer_check("CAI-02", "CAI-10", "CAI-15")(taken)
consumer_check("CAI-08")(writability)


@consumer_check("CAI-13")
def strides_are_used(c: Consumption, control: Consumption | None) -> Verdict:
    if c.export.byteorder == "swapped":
        return unsupported("CAI-26 looks at swapped numbers")
    return taken(c, control)


@consumer_check("CAI-20")
def stream_is_waited_for(c: Consumption, control: Consumption | None) -> Verdict:
    """The elements are written during the consumer's call, and it has to show the new bytes."""
    if not c.accepted:
        return ok(f"refused: {c.error.type}")
    walks = [walk for walk in c.result.walk.values() if walk is not None]
    if not walks:
        return unsupported("the result cannot be looked into")
    if any(set(bytes.fromhex(walk)) == {PENDING_BYTE} for walk in walks):
        return ok()
    return fail("bytes from behind the work on the exported stream", "bytes from before it")


@consumer_check("CAI-23")
def object_is_kept_alive(c: Consumption, control: Consumption | None) -> Verdict:
    if c.accepted and c.aliases and c.kept.free:
        expected = "the exporting object is held as long as the result lives"
        return fail(expected, "it was let go of while the result points into its memory")
    return ok() if c.accepted else unsupported(f"refused: {c.error.type}")


@consumer_check("CAI-26")
def byte_order_is_honoured(c: Consumption, control: Consumption | None) -> Verdict:
    if c.export.byteorder != "swapped":
        return unsupported("the numbers are native ones")
    return taken(c, control)
