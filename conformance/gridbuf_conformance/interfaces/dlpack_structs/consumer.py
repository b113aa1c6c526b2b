"""Consumer checks of the C structs: DL-01 … DL-28."""

from __future__ import annotations

from .structs import CPU
from ...exports.consumption import Consumption
from ..dlpack_protocol.exports import NULL_STRIDES_1_2
from ...info import NONE
from ...outcomes import Outcome, Verdict
from ...rules.consumer_common import taken
from ...rules.registry import consumer_check
from ...rules.verdicts import advise, fail, ok, unsupported

consumer_check("DL-12", "DL-13")(taken)


_NEVER_VERSIONED = "it never asks for a versioned capsule"


def is_versioned(c: Consumption) -> bool:
    """Whether a versioned capsule was asked for and handed out."""
    return any(tensor.versioned for tensor in c.returned.handed_out)


@consumer_check("DL-01")
def flags_are_where_they_are(c: Consumption, control: Consumption | None) -> Verdict:
    calls = c.returned.calls
    if not c.accepted and any(call.get("copy", NONE).value is False for call in calls):
        return unsupported("it asked for no copy, and need not take one")
    return taken(c, control) if is_versioned(c) or not c.accepted else unsupported(_NEVER_VERSIONED)


@consumer_check("DL-08")
def null_strides_are_row_major(c: Consumption, control: Consumption | None) -> Verdict:
    if c.export.variant is NULL_STRIDES_1_2 and c.returned.handed_out and not is_versioned(c):
        return unsupported(_NEVER_VERSIONED)
    return taken(c, control)


@consumer_check("DL-10")
def offset_is_added(c: Consumption, control: Consumption | None) -> Verdict:
    """The text says where the first element is, not that every consumer must be able to go there:
    an offset that is refused is a note, one that is ignored a failure."""
    verdict = taken(c, control)
    if verdict.failed and not c.accepted and not c.unclean:
        return advise("the array, as from the plain export", c.refusal)
    return verdict


@consumer_check("DL-14")
def strides_are_signed(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.export.has_unusual_strides:
        return unsupported("no stride is negative or zero")
    return taken(c, control) if c.accepted else ok(f"refused: {c.error.type}")


@consumer_check("DL-19")
def deleter_runs_once(c: Consumption, control: Consumption | None) -> Verdict:
    for tensor in c.after.handed_out:
        if tensor.deleter_calls > 1:
            return fail("one call of the deleter", f"{tensor.deleter_calls} calls")
    if c.export.variant.name == "null-deleter":
        return taken(c, control)
    return ok() if c.after.handed_out else unsupported("no capsule was asked for")


@consumer_check("DL-20")
def deleter_may_run_python(c: Consumption, control: Consumption | None) -> Verdict:
    if c.export.variant.expects == "error":
        return ok("the process lives on; DL-23 and DP-09 look at the answer")
    return taken(c, control)


@consumer_check("DL-21")
def metadata_is_left_alone(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.after.handed_out:
        return unsupported("no capsule was asked for")
    if all(tensor.metadata_unchanged for tensor in c.after.handed_out):
        return ok()
    return fail("shape and strides as they were exported", "the consumer wrote into them")


@consumer_check("DL-22")
def another_major_is_refused(c: Consumption, control: Consumption | None) -> Verdict:
    return taken(c, control) if is_versioned(c) else unsupported(_NEVER_VERSIONED)


@consumer_check("DL-23")
def unknown_is_refused_and_minor_taken(c: Consumption, control: Consumption | None) -> Verdict:
    name = c.export.variant.name
    if name == "later-minor" and c.accepted and not is_versioned(c):
        return unsupported(_NEVER_VERSIONED)
    if name == "lanes" and c.accepted and _is_vector(c):
        expected = f"an error, or elements with a type: {c.export.variant.about}"
        return advise(expected, "raw vectors, whose type is lost")
    return _passed_on(c) or taken(c, control)


def _passed_on(c: Consumption) -> Verdict | None:
    """A note on a carrier without meaning: the text forbids to guess what an unknown type or device
    means, and a consumer that passes on the same tensor, and cannot reach the elements otherwise,
    has not guessed.
    """
    exported = c.result.main
    known = c.export.dtype_info.dlpack
    if (
        not c.accepted
        or set(c.arrays) - {"DL"}
        or known is None
        or exported is None
        or not exported.is_tensor
    ):
        return None
    if tuple(exported.dtype[:2]) == known and tuple(exported.device) == (CPU, 0):
        return None
    return advise(f"an error: {c.export.variant.about}", "it is carried, and handed on as it came")


def _is_vector(c: Consumption) -> bool:
    """Whether the result has one element for each vector, with all its bytes."""
    shape = c.export.view_map.shape
    wide = shape[-1] * c.export.itemsize
    return any(a.shape == shape[:-1] and a.itemsize == wide for a in c.arrays.values())


@consumer_check("DL-26")
def wrong_bits_are_refused(c: Consumption, control: Consumption | None) -> Verdict:
    return _passed_on(c) or taken(c, control)


@consumer_check("DL-28")
def context_is_not_read(c: Consumption, control: Consumption | None) -> Verdict:
    verdict = taken(c, control)
    if verdict.outcome is not Outcome.PASS or not c.accepted or c.after.free:
        return verdict
    if control is not None and not control.after.free:
        return Verdict(Outcome.BLOCKED, note="DP-31 failed")
    return fail("the deleter called in the end, whatever manager_ctx is", "it was not called")
