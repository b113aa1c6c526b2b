"""Consumer checks of the C exchange table: DX-03, DX-08 and DX-11."""

from __future__ import annotations

from ...exports.consumption import Consumption
from ...outcomes import Verdict
from ...rules.registry import consumer_check
from ...rules.verdicts import advise, fail, ok, unsupported

_UNUSED = "the table is not used"


@consumer_check("DX-03")
def later_table_is_not_used(c: Consumption, control: Consumption | None) -> Verdict:
    """A table of another major version has an unknown layout: only its version may be read."""
    if c.export.variant.name != "major-2-table":
        return unsupported("the table is of version 1")
    if "Later" in c.after.table_calls:
        return fail("a table of major version 2 is not used", "its functions were called")
    return ok()


@consumer_check("DX-08")
def tensors_of_the_table_are_owned(c: Consumption, control: Consumption | None) -> Verdict:
    """A tensor from the table belongs to the caller, which deletes it once."""
    owned = c.after.owned
    if not owned:
        return unsupported(_UNUSED)
    if all(tensor.deleter_calls for tensor in owned):
        return ok()
    return fail("the deleter of the table's tensor called in the end", "it was not called")


@consumer_check("DX-11")
def table_is_of_the_exact_type(c: Consumption, control: Consumption | None) -> Verdict:
    """A type that withdrew the table has none. Of one that inherits it the texts leave open whose
    it is, so that its use is a note."""
    expected = "the table used on objects of the exact type that has it"
    if "Withdrawn" in c.after.table_calls:
        return fail(expected, "used on one of a type that has None in its place")
    if "Derived" in c.after.table_calls:
        return advise(expected, "used on one of a derived type")
    return ok()
