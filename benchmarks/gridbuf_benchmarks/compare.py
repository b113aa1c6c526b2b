"""Two results side by side: which ratios moved by more than their spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbuf_benchmarks.libraries import MEMORY, title_of

__all__ = ["Change", "changes", "print_changes", "regressions"]


@dataclass(frozen=True)
class Change:
    """A ratio that two results have; `verdict` is one of "faster", "slower" and "same"."""

    id: str
    title: str
    peer: str
    before: Mapping[str, float]
    now: Mapping[str, float]
    verdict: str


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
                verdict = _verdict(past[peer], ratio)
                yield Change(case["id"], case["title"], peer, past[peer], ratio, verdict)


def _verdict(old: Mapping[str, float], new: Mapping[str, float]) -> str:
    if abs(new["median"] / old["median"] - 1) <= _LEAST_CHANGE:
        return "same"
    if new["upper_quartile"] < old["lower_quartile"]:
        return "faster"
    if new["lower_quartile"] > old["upper_quartile"]:
        return "slower"
    return "same"


def regressions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The cases that became slower, each once.

    A case counts by its ratio to the memory where it has one, else by all of its ratios: a peer that became
    faster is no regression of gridbuf's, and in a ratio alone the two look the same.
    """
    found: dict[str, list[Change]] = {}
    for change in changes(old, new):
        found.setdefault(change.id, []).append(change)
    slower = []
    for case in found.values():
        judged = [change for change in case if change.peer == MEMORY] or case
        if all(change.verdict == "slower" for change in judged):
            slower.append(judged[0])
    return slower


def print_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], console: Console, *, everything: bool = False
) -> None:
    """Prints the ratios that moved, or every common one, and then the regressions."""
    common = list(changes(old, new))
    moved = [change for change in common if change.verdict != "same"]
    console.print(_table(old, common if everything else moved))
    console.print(f"{len(common)} ratios compared, {len(common) - len(moved)} are the same")
    slower = regressions(old, new)
    for change in slower:
        text = f"regression: {change.title}: {change.before['median']:.3g}× of {title_of(change.peer)}'s time before"
        console.print(Text(f"{text}, {change.now['median']:.3g}× now", style="bold red"))
    if not slower:
        console.print(Text("no case became slower", style="bold green"))
    if old["machine"]["cpu_model"] != new["machine"]["cpu_model"]:
        text = f"the old result is from another machine ({old['machine']['cpu_model']}): ratios move between machines"
        console.print(Text(f"warning: {text}", style="bold yellow"))


def _table(old: Mapping[str, Any], shown: Sequence[Change]) -> Table:
    table = Table(
        title=f"change of the ratios since {old['created']}",
        caption="'same': within 10 %, or the interquartile ranges overlap",
    )
    for column in ("case", "peer", "before", "now", "change", ""):
        table.add_column(column, justify="left" if column in ("case", "peer", "") else "right")
    for change in shown:
        style = {"faster": "green", "slower": "red", "same": "dim"}[change.verdict]
        moved_by = change.now["median"] / change.before["median"] - 1
        table.add_row(
            change.title,
            title_of(change.peer),
            f"{change.before['median']:.3g}×",
            f"{change.now['median']:.3g}×",
            Text(f"{moved_by:+.0%}", style=style),
            Text(change.verdict, style=style),
        )
    return table
