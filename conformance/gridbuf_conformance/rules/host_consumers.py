"""What the consumer checks of the interfaces to host memory except DLPack share.

A plain export can be any array, so several rules look at it. Each rule answers only its question
(`about`), so that one mistake fails one rule: wrong swapped numbers belong to AI-34,
with strides AI-22's, and XA-15 has the rest.
"""

from __future__ import annotations

from ..exports import PLAIN
from ..exports.consumption import Consumption
from ..outcomes import Verdict
from .consumer_common import taken
from .registry import Decide, consumer_check
from .verdicts import advise, fail, ok, unsupported

_OTHERWISE = "XA-15"


def about(c: Consumption) -> str:
    """The rule that a wrong result of this export fails."""
    export = c.export
    of = export.interface.plain_rules
    if export.variant.name != PLAIN:
        return str(export.variant.rules[0])
    has = {
        "complex": export.dtype_info.kind == "c",
        "swapped": export.byteorder == "swapped",
        "records": bool(export.dtype_info.fields),
        "strides": bool(export.views) or export.layout not in (None, tuple(range(export.ndim))),
    }
    return next((of[key] for key in has if has[key] and key in of), _OTHERWISE)


def judge_results(*rules: str) -> None:
    """Registers for each rule: an export about it must be taken as its variant allows."""
    for rule in rules:
        consumer_check(rule)(_decides_about(rule))


def _decides_about(rule: str) -> Decide:
    def decide(c: Consumption, control: Consumption | None) -> Verdict:
        if about(c) != rule:
            return unsupported(f"the export is about {about(c)}")
        verdict = taken(c, control)
        if c.export.variant.may_be_refused and verdict.failed and not c.accepted and not c.unclean:
            return advise("the array, as from the plain export", c.refusal)
        return verdict

    return decide


def writability(c: Consumption, control: Consumption | None = None) -> Verdict:
    """Whether what cannot be written is handed on as if it could be, and the other way round."""
    if not c.export.readonly:
        return became_readonly(c)
    if not c.accepted:
        return ok(f"refused: {c.error.type}")
    if not c.aliases:
        return ok("the result is a copy")
    claims = [array.readonly for array in c.arrays.values() if array.readonly is not None]
    if claims and not any(claims):
        return fail("a read-only result over read-only memory", "the result says it is writable")
    return ok()


def became_readonly(c: Consumption) -> Verdict:
    """Whether writable memory is read-only in the result. No text forbids it, and a library can
    have read-only arrays alone: only of a consumer with another result that can be written."""
    has_writable = any(one.accepted and one.is_readonly is False for one in c.siblings)
    if not (c.accepted and c.aliases and c.is_readonly and has_writable):
        return unsupported("the memory is writable")
    return advise("a writable result over writable memory", "a read-only result")


def lives_on(c: Consumption, expected: str) -> Verdict:
    """Whether the memory is held as long as the result points into it, and let go of afterwards."""
    if c.accepted and c.aliases and c.kept.free:
        return fail(expected, "the memory was given back while the result points into it")
    if c.after.references < 0:
        return fail(
            "the references of others to the exporter", f"it released {-c.after.references}"
        )
    if not c.after.free or c.after.references:
        return advise("the exporter is let go of with the result", "it is still held")
    return ok() if c.accepted else unsupported(f"refused: {c.error.type}")
