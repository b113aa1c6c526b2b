"""The scoreboard of `interop` for people: a table on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..interop.records import HARM, OUTCOMES, Record, pairs, scores
from ..text import one_line

__all__ = ["on_console"]

_MANY = 12


def on_console(record: Record, console: Console) -> None:
    """The matrix of libraries, the scores, and what harms."""
    found = pairs(record)
    sources, targets = (list(dict.fromkeys(key[side] for key in sorted(found, key=lambda k: k[side]))) for side in (0, 1))
    if not found:
        console.print("no pair of libraries")
        return
    table = Table("from \\ to", *targets, "score", box=None, header_style="bold")
    passed = scores(record)
    for source in sources:
        cells = [_share(found.get((source, target))) for target in targets]
        right, counted = passed.get(source, (0, 0, 0, 0))[:2]
        table.add_row(source, *cells, f"{100 * right // counted} %" if counted else "")
    console.print(table)
    console.print("share of the arrays that both libraries describe and that arrive unharmed; ! a way does harm")
    for cell in record.cells:
        for name, (letter, _) in OUTCOMES.items():
            if letter in HARM and letter in cell.outcomes:
                text = next((t for t, arrays in cell.messages.items() if cell.outcome(arrays[0]) == name), "")
                line = f"{cell.producer} → {cell.consumer}: {name} on {cell.outcomes.count(letter)}: {text}"
                console.print(one_line(line), markup=False, soft_wrap=True)
    for library, reason in record.skipped.items():
        console.print(f"{library}: {one_line(reason)}", markup=False, soft_wrap=True)


def _share(pair: object) -> Text:
    share = getattr(pair, "share", None)
    if share is None:
        return Text("·" if pair is None else "–", style="dim")
    harmed = getattr(pair, "worst", "")
    return Text(f"{100 * share:.0f}{' !' if harmed else ''}", style="red" if harmed else "")
