"""Short functions for the verdicts that checks return."""

from __future__ import annotations

from typing import Any

from ..abi.descriptors import Descriptor, first_difference
from ..info import LossInfo
from ..outcomes import Outcome, Verdict


def ok(note: str = "") -> Verdict:
    """The rule holds."""
    return Verdict(Outcome.PASS, note=note)


def fail(
    expected: str,
    actual: str,
    *,
    note: str = "",
    drawing: dict[str, Any] | None = None,
    blocks: bool = True,
) -> Verdict:
    """The rule is broken. The judge makes this ADVISORY or FRAGILE if the rule is not a MUST."""
    return Verdict(Outcome.FAIL, expected, actual, note, drawing, blocks)


def advise(expected: str, actual: str, *, note: str = "") -> Verdict:
    """The part of the rule that is only recommended, or disputed, is not met."""
    return Verdict(Outcome.ADVISORY, expected, actual, note)


def fragile(expected: str, actual: str, *, note: str = "") -> Verdict:
    """The part of the rule that no text demands, and that a good library keeps, is not met."""
    return Verdict(Outcome.FRAGILE, expected, actual, note)


def unsupported(reason: str) -> Verdict:
    """The rule does not apply to the object's interfaces or to what the plan asks."""
    return Verdict(Outcome.UNSUPPORTED, note=reason)


def untested(reason: str) -> Verdict:
    """This machine, or this way of running, cannot decide it."""
    return Verdict(Outcome.UNTESTED, note=reason)


def loss_of(loss: LossInfo, array: Descriptor | None) -> str:
    """What became of memory that was lost: unmapped, or another value of an element.

    Which value differs from run to run.
    """
    if not loss.after or array is None:
        return "other content" if loss.after else "unmapped"
    before, _ = first_difference(loss.before, loss.after, array)
    return f"another value in place of {before}"


def drawing_of(array: Descriptor, *marks: tuple[tuple[int, ...], str]) -> dict[str, Any]:
    """The data of a layout drawing: the array, its hull, and elements to mark as (index, label)."""
    return {
        "kind": "layout",
        "shape": list(array.shape),
        "strides": list(array.strides),
        "itemsize": array.itemsize,
        "offset": 0,
        "hull": list(array.hull or (0, 0)),
        "block": None,
        "marks": [
            {"index": list(index), "offset": array.offset_of(index), "label": label}
            for index, label in marks
        ],
    }
