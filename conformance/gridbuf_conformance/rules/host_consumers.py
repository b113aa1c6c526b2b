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

_OF_STRIDES = {"array-interface": "AI-22", "array-struct": "AS-04", "buffer": "PB-32"}
_MAY_BE_REFUSED = ("PB-07",)
"""No text says that a consumer must take such exports: a clean refusal is an advisory, a wrong
result a failure.
"""
_OF_TYPES = {"array-interface": "AI-34", "array-struct": "AS-05", "buffer": "PB-20"}


def about(c: Consumption) -> str:
    """The rule that a wrong result of this export fails."""
    export = c.export
    name = export.interface.name
    if export.variant.name != PLAIN:
        return str(export.variant.rules[0])
    if name == "buffer" and export.dtype_info.kind == "c":
        return "PB-22"
    if export.byteorder == "swapped" or (name == "buffer" and export.dtype_info.fields):
        return _OF_TYPES.get(name, "XA-15")
    if export.views or export.layout not in (None, tuple(range(export.ndim))):
        return _OF_STRIDES.get(name, "XA-15")
    return "XA-15"


def judge_results(*rules: str) -> None:
    """Registers for each rule: an export about it must be taken as its variant allows."""
    for rule in rules:
        consumer_check(rule)(_decides_about(rule))


def _decides_about(rule: str) -> Decide:
    def decide(c: Consumption, control: Consumption | None) -> Verdict:
        if about(c) != rule:
            return unsupported(f"the export is about {about(c)}")
        verdict = taken(c, control)
        if rule in _MAY_BE_REFUSED and verdict.failed and not c.accepted and not c.unclean:
            return advise("the array, as from the plain export", c.refusal)
        return verdict

    return decide


def writability(c: Consumption, control: Consumption | None = None) -> Verdict:
    """Whether what cannot be written is handed on as if it could be."""
    if not c.export.readonly:
        return unsupported("the memory is writable")
    if not c.accepted:
        return ok(f"refused: {c.error.type}")
    if not c.aliases:
        return ok("the result is a copy")
    claims = [array.readonly for array in c.arrays.values() if array.readonly is not None]
    if claims and not any(claims):
        return fail("a read-only result over read-only memory", "the result says it is writable")
    return ok()


def lives_on(c: Consumption, expected: str) -> Verdict:
    """Whether the memory is held as long as the result points into it, and let go of afterwards."""
    if c.accepted and c.aliases and c.kept.free:
        return fail(expected, "the memory was given back while the result points into it")
    if not c.after.free:
        return advise("the exporter is let go of with the result", "it is still held")
    return ok() if c.accepted else unsupported(f"refused: {c.error.type}")
