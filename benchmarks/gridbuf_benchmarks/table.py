"""The result as tables for a terminal: one row per case, ratios in the middle, honesty below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES

__all__ = [
    "format_bandwidth",
    "format_ratio",
    "format_spread",
    "format_time",
    "print_result",
    "print_warnings",
]

_PEERS = tuple(key for key in LIBRARIES if key != BASELINE)
_CLEAR = 1.1
"""Ratios within ±10 % of 1 stay uncoloured: two runs differ by as much."""


def format_time(nanoseconds: float) -> str:
    """A time with three significant digits and its unit: '84.2 ns', '1.21 µs', '62 ms'."""
    for unit, scale in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if nanoseconds < 999.5 * scale:
            return f"{nanoseconds / scale:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


def format_bandwidth(bytes_moved: int, nanoseconds: float) -> str:
    """Decimal gigabytes per second, read plus written."""
    return f"{bytes_moved / nanoseconds:.3g} GB/s"


def print_result(result: Mapping[str, Any], console: Console) -> None:
    """Prints header, table, targets, notes, and what is missing."""
    _print_header(result, console)
    console.print(_table(result))
    _print_targets(result["cases"], console)
    _print_notes(result["cases"], console)
    print_warnings(result["warnings"], console)
    for library in result["libraries"].values():
        if library["state"] == "absent":
            text = f"not compared: {library['title']} ({library['reason']}); install: {library['install']}"
            console.print(Text(text, style="yellow"))


def print_warnings(warnings: Sequence[str], console: Console) -> None:
    """What makes the figures less trustworthy, last and loud."""
    for warning in warnings:
        console.print(Text(f"warning: {warning}", style="bold yellow"))


def _print_header(result: Mapping[str, Any], console: Console) -> None:
    facts = result["machine"]
    versions = f"Python {facts['python']}, " + ", ".join(
        f"{library['title']} {library['version']}"
        + (f" ({library['threads']} threads)" if "threads" in library else "")
        for library in result["libraries"].values()
        if library["state"] == "present"
    )
    machine = (
        f"{facts['cpu_model']} ({facts['cpu_family']}), {facts['cores_usable']} cores"
        f"{', virtual machine' if facts['virtual_machine'] else ''}, governor {facts['governor'] or 'not readable'}, "
        f"Linux {facts['kernel']}, huge pages {facts['huge_pages']}"
    )
    console.print(Text(machine, style="dim"))
    console.print(Text(versions, style="dim"))


def _table(result: Mapping[str, Any]) -> Table:
    table = Table(
        title="time of gridbuf ÷ time of the peer (below 1: gridbuf is faster)",
        caption="median of the per-round ratios ± half the interquartile range; behind it the peer's median",
        header_style="bold",
    )
    peers = [key for key in _PEERS if any(key in case["ratios"] for case in result["cases"])]
    table.add_column("case")
    table.add_column(LIBRARIES[BASELINE].title, justify="right")
    for key in peers:
        table.add_column(f"÷ {LIBRARIES[key].title}", justify="right")
    table.add_column("rounds", justify="right", style="dim")
    for _, group in groupby(result["cases"], key=lambda case: case["group"]):
        for case in group:
            table.add_row(*_row(case, peers))
        table.add_section()
    return table


def _row(case: Mapping[str, Any], peers: Sequence[str]) -> list[Text]:
    contenders = {contender["library"]: contender for contender in case["contenders"]}
    spread = contenders[BASELINE]["nanoseconds"]
    own = f"{format_time(spread['median'])} {format_spread(spread)}"
    if case["work"]["bytes_moved"]:
        own += f"\n{format_bandwidth(case['work']['bytes_moved'], spread['median'])}"
    cells = [Text(case["title"]), Text(own)]
    cells += [_ratio_cell(case, contenders, key) for key in peers]
    return [*cells, Text(str(case["rounds"]))]


def _ratio_cell(
    case: Mapping[str, Any], contenders: Mapping[str, Mapping[str, Any]], key: str
) -> Text:
    if key not in case["ratios"]:
        return Text("–", style="dim")
    ratio = case["ratios"][key]
    median = ratio["median"]
    style = "green" if median * _CLEAR < 1 else "red" if median > _CLEAR else ""
    time = contenders[key]["nanoseconds"]["median"]
    moved = case["work"]["bytes_moved"]
    cell = Text(format_ratio(median), style=f"bold {style}".strip())
    cell.append(f" {format_spread(ratio)}", style="dim not bold")
    cell.append(f"  {format_time(time)}", style="dim not bold")
    if moved:
        cell.append(f"\n{format_bandwidth(moved, time)}", style="dim not bold")
    return cell


def format_ratio(ratio: float) -> str:
    """Three digits above 1, two below, where the reader asks only how many times faster."""
    return f"{ratio:.3g}×" if ratio >= 1 else f"{ratio:.2g}×"


def format_spread(spread: Mapping[str, float]) -> str:
    """Half the interquartile range in percent of the median."""
    half = (spread["upper_quartile"] - spread["lower_quartile"]) / 2 / spread["median"]
    return f"±{half:.0%}".rjust(4) if half < 1 else "±≥100%"


def _print_targets(cases: Sequence[Mapping[str, Any]], console: Console) -> None:
    for case in cases:
        target = case["target"]
        if target is None:
            continue
        word, style = ("met", "bold green") if target["met"] else ("MISSED", "bold red")
        peer = LIBRARIES[target["peer"]].title
        text = Text(f"target: {case['title']} at most {target['ratio']:g} × {peer}: ")
        text.append(f"{word} ({target['reached']:.3g} ×)", style=style)
        console.print(text)


def _print_notes(cases: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Each distinct note once, with the cases it is about."""
    console.print(Text("What is compared, and what differs", style="bold"))
    by_note: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        by_note.setdefault(case["note"], []).append(case)
    for note, about in by_note.items():
        console.print(Text(", ".join(case["id"] for case in about), style="cyan"))
        console.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))
