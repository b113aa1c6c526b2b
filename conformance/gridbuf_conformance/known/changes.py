"""What `known --update` says it did."""

from __future__ import annotations

from rich.console import Console

from ..render.console import Printer
from ..text import clean, plural
from .edit import Changes
from .records import Known


def print_changes(changes: Changes, path: str, console: Console) -> None:
    """Prints a line for each removed, changed or added record, the file, and the work left."""
    printer = Printer(console)
    for word, style, entries in (
        ("removed", "green", changes.removed),
        ("changed", "yellow", [now for _, now in changes.changed]),
        ("added", "red", changes.added),
    ):
        for known in entries:
            printer.line((f"{word:<8}", style), _named(known), wrap=False)
    kept = f"{plural(len(changes.kept), 'record')} kept as they were"
    unchanged = "nothing to change" if changes.kept else "no failure to record"
    printer.line((clean(path), "bold"), f": {'updated' if changes else unchanged}, {kept}.")
    unexplained = sum(not known.reason for known in changes.added)
    if unexplained:
        printer.line(
            f"Say why in the {plural(unexplained, 'empty reason')}, "
            "and add a link to where it is tracked."
        )
    if changes.changed:
        printer.line("Changed records fail in another way than before: read their reasons again.")


def _named(known: Known) -> str:
    plan = known.plan.to_json(brief=True)
    return f"{known.rule:<7} {clean(known.target)}  {known.outcome} on {clean(plan)}"
