"""The verdict that most consumer checks share: was the export taken as its variant allows?"""

from __future__ import annotations

from ..exports.consumption import Consumption
from ..outcomes import Outcome, Verdict
from .verdicts import fail, fragile, ok, unsupported


def taken(c: Consumption, control: Consumption | None) -> Verdict:
    """Whether the consumer did with an export what its variant allows; the heart of most checks."""
    expects = c.export.variant.expects
    if not c.accepted:
        return _refused(c, control, expects)
    if expects == "error":
        return fail(f"an error: {c.export.variant.about}", "it was accepted")
    if c.mistake is None:
        return ok() if c.can_be_read else unsupported("the result cannot be looked into")
    if control is not None and control.accepted and control.mistake is not None:
        note = f"the plain export {control.export.export!r} is not read rightly either"
        return Verdict(Outcome.BLOCKED, note=note)
    return fail(*c.mistake)


def unclean_verdict(c: Consumption) -> Verdict:
    """A refusal that is not a clean error. No text demands a class; none may be lost."""
    judged = fragile if c.error.type in ("AssertionError", "MemoryError") else fail
    return judged("the array, or a clean error", f"{c.refusal} ({c.unclean})")


def copied_as_told(c: Consumption, control: Consumption | None = None) -> Verdict:
    """Whether a call with copy=True gave separate memory, or an error."""
    if c.info.keywords.get("copy") is not True:
        return unsupported("copy=True is not a keyword of this call")
    if not c.accepted:
        return ok(f"refused: {c.error.type}")
    return fail("separate memory, after copy=True", "the exported memory") if c.aliases else ok()


def shared_as_told(c: Consumption) -> Verdict:
    """Whether a call with copy=False gave the exported memory, or an error."""
    if c.info.keywords.get("copy") is not False:
        return unsupported("copy=False is not a keyword of this call")
    if not c.accepted:
        return ok(f"refused: {c.error.type}")
    if not c.can_be_read:
        return unsupported("the result cannot be looked into")
    return (
        ok() if c.aliases else fail("the exported memory, or an error, after copy=False", "a copy")
    )


def _refused(c: Consumption, control: Consumption | None, expects: str) -> Verdict:
    if c.error.type == "SystemError" and "DP-09" in c.export.variant.rules:
        return Verdict(Outcome.BLOCKED, note="DP-09 failed")
    if c.unclean:
        return unclean_verdict(c)
    if expects != "right":
        return ok(f"refused: {c.error.type}")
    if control is None or not control.accepted:
        return unsupported(f"the plain form is refused, too: {c.error.type}")
    return fail("the array, as from the plain export", c.refusal)
