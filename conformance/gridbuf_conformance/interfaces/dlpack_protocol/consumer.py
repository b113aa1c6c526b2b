"""Consumer checks of DLPack's Python methods: DP-05 … DP-33.

These checks only count deletions. For each exported capsule, the consumer or the destructor of
an unused capsule must delete the tensor exactly once. No code
is a leak (DP-31 of a result, DP-09 of a refusal); the consumer and the destructor both is a capsule
that was not disarmed (DP-08); the consumer twice is DL-19.
"""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...info import NONE, TensorCounts, Value
from ...outcomes import Outcome, Verdict, worst
from ...rules.consumer_common import copied_as_told, taken, unclean_verdict
from ...rules.host_consumers import became_readonly
from ...rules.registry import consumer_check
from ..dlpack_structs.consumer import is_versioned
from ...rules.verdicts import advise, fail, fragile, ok, unsupported, untested

_NO_CAPSULE = "no capsule was asked for"
_NOT_SEEN = "the result cannot be looked into"

consumer_check("DP-20")(copied_as_told)


@consumer_check("DP-05")
def used_capsules_are_refused(c: Consumption, control: Consumption | None) -> Verdict:
    takers = sum(call.accepted for call in c.calls)
    if takers > 1 and _is_owned(c):
        return fail("one thread takes the capsule, the other gets an error", f"{takers} took it")
    return _worst_of([taken(call, control) for call in c.calls or [c]])


def _is_owned(c: Consumption) -> bool:
    """Whether the consumer took over a tensor. It may also hold the capsule, whose destructor then
    deletes once.
    """
    disarmed = any(not tensor.armed for tensor in c.returned.handed_out)
    return disarmed or any(tensor.deleter_calls for tensor in c.after.handed_out)


def _worst_of(verdicts: list[Verdict]) -> Verdict:
    """The worst verdict on the calls of several threads."""
    outcome = worst(verdict.outcome for verdict in verdicts)
    return next(verdict for verdict in verdicts if verdict.outcome is outcome)


@consumer_check("DP-08")
def capsule_is_disarmed(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.after.handed_out:
        return unsupported(_NO_CAPSULE)
    for tensor in c.after.handed_out:
        if tensor.deleter_calls and tensor.destructor_calls:
            return fail(
                "a capsule that is renamed or disarmed when its tensor is taken",
                "the consumer deleted the tensor, and the capsule's destructor did so again",
            )
    if c.accepted and c.aliases and _was_destroyed(c):
        return fail(
            "a capsule that is renamed or disarmed when its tensor is taken",
            "its destructor deleted the tensor that holds the result",
        )
    return ok()


def _was_destroyed(c: Consumption) -> bool:
    """Whether a capsule's own destructor deleted the tensor while the result lived."""
    return any(tensor.destructor_calls for tensor in c.kept.handed_out)


@consumer_check("DP-09")
def refusal_leaves_no_trace(c: Consumption, control: Consumption | None) -> Verdict:
    if c.accepted:
        return unsupported("it was accepted")
    if c.error.type == "SystemError":
        if not c.returned.native_deleter:
            return untested("the deleter is Python code here, which loses exceptions itself")
        return fail("the exception that was raised", c.refusal)
    left = [tensor for tensor in c.after.handed_out if _is_left(tensor)]
    if left:
        return fail("the tensor deleted, by the consumer or with its capsule", "it never was")
    return ok()


def _is_left(tensor: TensorCounts) -> bool:
    return bool(tensor.deleter and not tensor.deleter_calls + tensor.destructor_calls)


@consumer_check("DP-11")
def the_form_that_came_is_looked_at(c: Consumption, control: Consumption | None) -> Verdict:
    return taken(c, control) if c.returned.handed_out else unsupported(_NO_CAPSULE)


@consumer_check("DP-14")
def producers_of_both_standards_are_called(c: Consumption, control: Consumption | None) -> Verdict:
    if c.export.interface.name == "dlpack-legacy":
        if c.accepted or control is None or not control.accepted:
            return ok() if c.accepted else unsupported("the newer form is refused, too")
        return fail(
            "another call without the new keywords after TypeError, and the array", c.refusal
        )
    calls = c.returned.calls
    if not calls:
        return unsupported(_NO_CAPSULE)
    if any(call.get("max_version", NONE).t != "none" for call in calls):
        return ok()
    return advise("max_version=(1, n) in a call of __dlpack__", "no version is ever asked for")


@consumer_check("DP-19")
def stream_is_passed(c: Consumption, control: Consumption | None) -> Verdict:
    streams = [call["stream"] for call in c.returned.calls if "stream" in call]
    if any(stream == Value("int", 0) for stream in streams):
        return fail("the handle of a stream, or 1 or 2", "stream=0, which is refused")
    return untested("there is no CUDA device whose streams could be used")


@consumer_check("DP-21")
def nothing_is_copied_against_its_word(c: Consumption, control: Consumption | None) -> Verdict:
    forbids = any(call.get("copy") == Value("bool", False) for call in c.returned.calls)
    forbids = forbids or c.info.keywords.get("copy") is False
    if not forbids or not c.accepted or 0 in c.export.view_map.shape:
        return unsupported("copy=False is not what it asked for")
    if not c.can_be_read:
        return unsupported(_NOT_SEEN)
    return ok() if c.aliases else fail("the memory that was exported", "a copy, after copy=False")


@consumer_check("DP-28")
def read_only_bit_is_honoured(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.export.readonly and is_versioned(c):
        return became_readonly(c)
    if not c.export.readonly or not c.accepted or not c.aliases:
        return unsupported("no read-only memory was taken over")
    claims = [c.arrays[name].readonly for name in ("AI", "AS", "PB") if name in c.arrays]
    if not claims:
        return unsupported("the result cannot say read-only")
    return ok() if any(claims) else fail("a read-only result", "it says that it is writable")


@consumer_check("DP-29")
def errors_pass_through(c: Consumption, control: Consumption | None) -> Verdict:
    if c.accepted:
        return unsupported("it was taken without")
    if c.export.variant.name == "raises":
        if "ExporterError" in (*c.error.mro, *c.error.causes):
            return ok()
        return fail("the exporter's own error", c.refusal)
    if control is None or not control.accepted:
        return unsupported("the plain form is refused, too")
    if "AttributeError" in c.error.mro:
        return ok()
    return fail("AttributeError for a method that is missing", c.refusal)


@consumer_check("DP-30")
def result_is_the_array(c: Consumption, control: Consumption | None) -> Verdict:
    return _worst_of([_is_the_array(call) for call in c.calls or [c]])


def _is_the_array(c: Consumption) -> Verdict:
    if not c.accepted:
        return unsupported(f"refused: {c.error.type}")
    if c.mistake is None:
        return ok() if c.can_be_read else unsupported(_NOT_SEEN)
    if c.export.has_unusual_strides:
        return Verdict(Outcome.BLOCKED, note="DL-14 failed")
    return fail(*c.mistake)


@consumer_check("DP-31")
def memory_lives_with_the_result(c: Consumption, control: Consumption | None) -> Verdict:
    if not c.accepted or not c.after.handed_out:
        return unsupported("nothing was taken")
    if any(not tensor.deleter for tensor in c.after.handed_out):
        return unsupported("the tensor has no deleter")
    if c.aliases and c.kept.free:
        if _was_destroyed(c):
            return Verdict(Outcome.BLOCKED, note="DP-08 failed")
        return fail("memory that lives with the result", "it was deleted while the result lived")
    if not c.after.free:
        return fail("memory that is freed after the result", "the deleter was never called")
    if c.after.references < 0:
        return fail(
            "the references of others to the exporter", f"it released {-c.after.references}"
        )
    if c.after.references:
        return advise("the exporter is let go of with the result", "it is still held")
    return ok()


@consumer_check("DP-32")
def survives_and_errs_cleanly(c: Consumption, control: Consumption | None) -> Verdict:
    if c.calls:
        return _worst_of([_is_taken_by_a_thread(call, control) for call in c.calls])
    return _is_survived(c)


def _is_taken_by_a_thread(c: Consumption, control: Consumption | None) -> Verdict:
    """No text speaks of threads; what a consumer takes from one thread it takes from four."""
    return ok() if c.accepted else taken(c, control)


def _is_survived(c: Consumption) -> Verdict:
    if c.accepted:
        return ok()
    if c.error.type == "SystemError":
        return Verdict(Outcome.BLOCKED, note="DP-09 failed")
    if c.unclean:
        return unclean_verdict(c)
    return ok(f"refused: {c.error.type}")


@consumer_check("DP-33")
def free_strides_are_not_read(c: Consumption, control: Consumption | None) -> Verdict:
    """No text says that a consumer must take such strides: a clean refusal is fragile, a wrong
    result a failure.
    """
    verdict = taken(c, control)
    if verdict.failed and not c.accepted and not c.unclean:
        return fragile("the array, as from the plain export", c.refusal)
    return verdict
