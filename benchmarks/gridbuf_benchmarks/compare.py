"""Two results side by side: which ratios moved by more than their spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbuf_benchmarks.libraries import LIBRARIES

__all__ = ["Change", "changes", "print_changes"]

Change = tuple[str, str, Mapping[str, float], Mapping[str, float], str]
"""Title, peer, the old ratio, the new ratio, and one of 'faster', 'slower' and 'same'."""


_LEAST_CHANGE = 0.1
"""Two runs of one build differ by up to a tenth, which the spread within a run does not show."""


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """The ratios that both results have.

    One counts as moved when the medians differ by more than a tenth and the interquartile ranges do not
    overlap.
    """
    before = {case["id"]: case for case in old["cases"]}
    for case in new["cases"]:
        past = before.get(case["id"], {"ratios": {}})["ratios"]
        for peer, ratio in case["ratios"].items():
            if peer in past:
                yield case["title"], peer, past[peer], ratio, _verdict(past[peer], ratio)


def _verdict(old: Mapping[str, float], new: Mapping[str, float]) -> str:
    if abs(new["median"] / old["median"] - 1) <= _LEAST_CHANGE:
        return "same"
    if new["upper_quartile"] < old["lower_quartile"]:
        return "faster"
    if new["lower_quartile"] > old["upper_quartile"]:
        return "slower"
    return "same"


def print_changes(old: Mapping[str, Any], new: Mapping[str, Any], console: Console) -> None:
    """Prints every common ratio with its change."""
    table = Table(
        title=f"change of the ratios since {old['created']}",
        caption="'same': within 10 %, or the interquartile ranges overlap",
    )
    for column in ("case", "peer", "before", "now", "change", ""):
        table.add_column(column, justify="left" if column in ("case", "peer", "") else "right")
    for title, peer, past, now, verdict in changes(old, new):
        style = {"faster": "green", "slower": "red", "same": "dim"}[verdict]
        change = now["median"] / past["median"] - 1
        table.add_row(
            title,
            LIBRARIES[peer].title,
            f"{past['median']:.3g}×",
            f"{now['median']:.3g}×",
            Text(f"{change:+.0%}", style=style),
            Text(verdict, style=style),
        )
    console.print(table)
    if old["machine"]["cpu_model"] != new["machine"]["cpu_model"]:
        text = f"the old result is from another machine ({old['machine']['cpu_model']}): ratios move between machines"
        console.print(Text(f"warning: {text}", style="bold yellow"))
