"""The result as tables for a terminal: one row per case, ratios in the middle, honesty below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gridbuf_benchmarks.grid import Grid, grids
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY, PEERS

__all__ = [
    "format_bandwidth",
    "format_ratio",
    "format_speed",
    "format_spread",
    "format_time",
    "print_result",
    "print_warnings",
    "promise_words",
]

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
    """Prints header, tables, promises, notes, and what is missing."""
    _print_header(result, console)
    beside_memory = [case for case in result["cases"] if MEMORY in case["ratios"]]
    others = [case for case in result["cases"] if MEMORY not in case["ratios"]]
    if others:
        console.print(_table(others))
    if beside_memory:
        console.print(_memory_table(beside_memory))
    for grid in grids(beside_memory):
        console.print(_grid_table(grid))
    _print_promises(result["promises"], console)
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
        f"Linux {facts['kernel']}, huge pages {facts['huge_pages']}, GPU: {', '.join(facts['gpu_models']) or 'none'}"
    )
    console.print(Text(machine, style="dim"))
    console.print(Text(versions, style="dim"))


def _table(cases: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(
        title="time of gridbuf ÷ time of the peer (below 1: gridbuf is faster)",
        caption="median of the per-round ratios ± half the interquartile range; behind it the peer's median",
        header_style="bold",
    )
    peers = [key for key in PEERS if any(key in case["ratios"] for case in cases)]
    table.add_column("case")
    table.add_column(LIBRARIES[BASELINE].title, justify="right")
    for key in peers:
        table.add_column(f"÷ {LIBRARIES[key].title}", justify="right")
    table.add_column("rounds", justify="right", style="dim")
    for _, group in groupby(cases, key=lambda case: case["group"]):
        for case in group:
            table.add_row(*_row(case, peers))
        table.add_section()
    return table


def _memory_table(cases: Sequence[Mapping[str, Any]]) -> Table:
    """One row a case: how near to the speed of the memory, and how many times as fast as the peers."""
    table = Table(
        title="speed of gridbuf: of the memory (memcpy or memset of as many bytes), and × the peers'",
        caption="median of the per-round quotients of speeds ± half the interquartile range; GB/s: bytes read and written; "
        "faults: page faults a call of gridbuf's",
        header_style="bold",
    )
    peers = [key for key in PEERS if any(key in case["ratios"] for case in cases)]
    table.add_column("case")
    for column in (
        "gridbuf",
        "GB/s",
        "of memory",
        *(f"× {LIBRARIES[key].title}" for key in peers),
        "faults",
        "rounds",
    ):
        table.add_column(column, justify="right")
    for _, group in groupby(cases, key=lambda case: case["group"]):
        for case in group:
            table.add_row(*_memory_row(case, peers))
        table.add_section()
    return table


def _memory_row(case: Mapping[str, Any], peers: Sequence[str]) -> list[Text]:
    own = case["contenders"][0]
    nanoseconds = own["nanoseconds"]["median"]
    moved = case["work"]["bytes_moved"]
    missed = any(not target["met"] for target in case["targets"] if target["peer"] == MEMORY)
    cells = [
        Text(case["title"]),
        Text(format_time(nanoseconds)),
        Text(f"{moved / nanoseconds:.3g}" if moved else "–", style="dim"),
        _speed_cell(case["ratios"][MEMORY], "bold red" if missed else "bold"),
    ]
    for key in peers:
        ratio = case["ratios"].get(key)
        slower = ratio is not None and ratio["median"] > _CLEAR
        cells.append(
            _speed_cell(ratio, "red" if slower else "") if ratio else Text("–", style="dim")
        )
    faults = own["page_faults_per_call"]
    cells.append(Text("–" if faults is None else f"{faults:.3g}", style="dim"))
    return [*cells, Text(str(case["rounds"]), style="dim")]


def _speed_cell(ratio: Mapping[str, float], style: str) -> Text:
    cell = Text(format_speed(ratio["median"]), style=style)
    cell.append(f" {format_spread(ratio)}", style="dim not bold not red")
    return cell


def _grid_table(grid: Grid) -> Table:
    """Rows of shapes, columns of layouts, each the speed relative to the memory's."""
    table = Table(
        title=f"copies, {grid.title}: speed ÷ the memory's", caption="red: below what is promised"
    )
    table.add_column("shape, rows of the target")
    for layout in grid.columns:
        table.add_column(layout, justify="right")
    for label, cells in grid.rows:
        texts = [
            Text("–", style="dim")
            if cell is None
            else Text(format_speed(cell.ratio), style="red" if cell.met is False else "")
            for cell in cells
        ]
        table.add_row(label, *texts)
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
    """Half the interquartile range in percent of the median; nothing of a single value."""
    if spread.get("count") == 1:
        return "   "
    half = (spread["upper_quartile"] - spread["lower_quartile"]) / 2 / spread["median"]
    return f"±{half:.0%}".rjust(4) if half < 1 else "±≥100%"


def format_speed(ratio: float) -> str:
    """The quotient of two speeds from that of two times: two digits after the point, three digits in all from 10."""
    speed = 1 / ratio
    return f"{speed:.2f}" if speed < 9.995 else f"{speed:.3g}"


def promise_words(promise: Mapping[str, Any]) -> tuple[str, str]:
    """What is promised, and how the run stands to it."""
    what = f"{promise['text']}: {promise['words']}"
    if promise["met"] is None:
        return what, "not measured in this run"
    mean = f", geometric mean {promise['mean']:g}" if "mean" in promise else ""
    reached = (
        f"median {promise['median']:g}{mean}, worst {promise['worst']:g} ({promise['worst_case']})"
    )
    if promise["cases"] == 1:
        reached = f"{promise['worst']:g}"
    elif not promise["met"]:
        reached = f"{promise['cases_met']} of {promise['cases']} cases; {reached}"
    if promise["aim"] is not None:
        reached += f"; the aim beyond is {promise['aim']:g}"
    return what, f"{'met' if promise['met'] else 'MISSED'}: {reached}"


def _print_promises(promises: Sequence[Mapping[str, Any]], console: Console) -> None:
    styles = {True: "bold green", False: "bold red", None: "dim"}
    for promise in promises:
        if promise["met"] is None:
            continue
        what, stands = promise_words(promise)
        text = Text(f"target: {what}: ")
        text.append(stands, style=styles[promise["met"]])
        console.print(text)
    silent = sum(promise["met"] is None for promise in promises)
    if silent:
        console.print(Text(f"{silent} targets have no case in this run", style="dim"))


def _print_notes(cases: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Each distinct note once, with the cases it is about."""
    console.print(Text("What is compared, and what differs", style="bold"))
    by_note: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        by_note.setdefault(case["note"], []).append(case)
    for note, about in by_note.items():
        console.print(Text(_ids(about), style="cyan"))
        console.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))


def _ids(cases: Sequence[Mapping[str, Any]]) -> str:
    """The ids of the cases; of many of one chapter, their number."""
    if len(cases) <= 8:
        return ", ".join(case["id"] for case in cases)
    chapters = sorted({case["id"].partition("/")[0] for case in cases})
    return f"{', '.join(chapters)}: {len(cases)} cases"
