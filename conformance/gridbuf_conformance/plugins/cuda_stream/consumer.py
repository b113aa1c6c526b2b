"""Consumer checks of the CUDA stream protocol, CS-01 … CS-03."""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...outcomes import Verdict
from ...rules.consumer_common import taken
from ...rules.registry import consumer_check
from ...rules.verdicts import fail, ok, unsupported

consumer_check("CS-01")(taken)


@consumer_check("CS-02")
def the_stream_is_used(c: Consumption, control: Consumption | None) -> Verdict:
    """For the handle 0, a consumer may have one of the two default streams."""
    if not c.accepted or c.export.variant.expects == "error":
        return taken(c, control)
    given, result = c.returned.handle, c.result.cuda_stream
    if result is None or result.handle is None:
        return unsupported("the result does not show its stream")
    is_it = result.handle == given or (given == 0 and result.handle in (1, 2))
    return ok() if is_it else fail("the stream of the tuple", "another stream")


@consumer_check("CS-03")
def object_is_held(c: Consumption, control: Consumption | None) -> Verdict:
    result = c.result.cuda_stream
    if not c.accepted or result is None or result.pair.items[0].t == "none":
        return unsupported("the result is not a stream object")
    if c.kept.free:
        return fail("the object held as long as the result", "let go of while the result lives")
    return ok()
