"""Reports on a result, all in Markdown: the document, the terminal's tables, and the comparison with an old result.

The document is `performance.template.md`, a jinja2 template with the sentences; a result fills its gaps. To change a
sentence, change the template; to change a figure, run again.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from rich.console import Console
from rich.markdown import Markdown

from gridbuf_benchmarks import plot
from gridbuf_benchmarks.cases import CHAPTERS
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY, PEERS, title_of

_NOT_RUN = "–"


def template() -> jinja2.Template:
    """The document with its gaps, which `gaps` fills; a gap that nothing fills is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gridbuf_benchmarks", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = plain
    return environment.get_template("performance.template.md")


def document(result: Mapping[str, Any], path: Path, pictures: Path) -> str:
    """The document of a result at `path`; its pictures are those that `plot.save` draws for `pictures`."""
    files = plot.names(result, pictures)
    links = {name: os.path.relpath(file, path.parent) for name, file in files.items()}
    return template().render(gaps(result), plots=links)


def show(result: Mapping[str, Any]) -> None:
    """Prints the parts of the document with figures."""
    whole = template()
    context = whole.new_context(gaps(result))
    for name in ("tables", "grids", "targets", "notes", "info"):
        show_markdown("".join(whole.blocks[name](context)))


def show_markdown(text: str) -> None:
    """Prints Markdown; wide enough for the tables where the output is not a terminal."""
    console = Console(width=None if sys.stdout.isatty() else 132, highlight=False)
    console.print(Markdown(text))


def gaps(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a template can say, by name."""
    cases = {case["id"]: case for case in result["cases"]}

    def ratio(id: str, peer: str) -> str:
        """Time of gridbuf ÷ time of the peer."""
        found = cases.get(id, {"ratios": {}})["ratios"].get(peer)
        return format_ratio(found["median"]) if found else _NOT_RUN

    def speed(pattern: str, peer: str) -> str:
        """How many times as fast as the peer: least and largest over the ids that match the regular expression."""
        found = [
            case["ratios"][peer]["median"]
            for id, case in cases.items()
            if re.fullmatch(pattern, id) and peer in case["ratios"]
        ]
        ends = [format_speed(end) for end in (max(found), min(found))] if found else [_NOT_RUN]
        return " to ".join(dict.fromkeys(ends))

    def time(id: str) -> str:
        """The time of one call of gridbuf."""
        return format_time(_times(cases[id])[BASELINE]) if id in cases else _NOT_RUN

    def verdict(promise: str) -> str:
        (found,) = [promise_words(one) for one in result["promises"] if one["id"] == promise]
        return found[1]

    notes: dict[str, dict[str, None]] = {}
    for case in result["cases"]:
        notes.setdefault(case["note"], {})[_chapter(case)] = None
    chapters = groupby(result["cases"], _chapter)
    return {
        **result,
        "ratio": ratio,
        "speed": speed,
        "time": time,
        "verdict": verdict,
        "targets": [promise_words(promise) for promise in result["promises"]],
        "grids": "\n\n".join(_grid_tables(result["cases"])),
        "tables": [(CHAPTERS.get(key, key), case_table([*some])) for key, some in chapters],
        "notes": [(", ".join(chapters), plain(note)) for note, chapters in notes.items()],
    }


def promise_words(promise: Mapping[str, Any]) -> tuple[str, str, str]:
    """What is promised, whether it is met, and the figures of the run."""
    what = plain(f"{promise['text']}: {promise['words']}")
    if promise["met"] is None:
        return what, "not measured in this run", ""
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
    return what, "met" if promise["met"] else "**missed**", plain(reached)


# Tables


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, all columns but the first to the right."""
    head, *body = (f"| {' | '.join(row)} |" for row in (columns, *rows))
    return "\n".join([head, "|---|" + "--:|" * (len(columns) - 1), *body])


def case_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """A row for each case: speeds where the case has a ratio to the memory, else ratios of times."""
    to_memory = any(MEMORY in case["ratios"] for case in cases)
    peers = [key for key in (MEMORY, *PEERS) if any(key in case["ratios"] for case in cases)]
    columns = ["case", "gridbuf", *(["GB/s"] if to_memory else [])]
    for key in peers:
        sign = "×" if to_memory else "÷"
        columns.append("of the memory" if key == MEMORY else f"{sign} {LIBRARIES[key].title}")
    rows = []
    for case in cases:
        times, moved = _times(case), case["work"]["bytes_moved"]
        row = [plain(case["title"]), format_time(times[BASELINE])]
        if to_memory:
            row.append(f"{moved / times[BASELINE]:.3g}" if moved else _NOT_RUN)
        for key in peers:
            ratio = case["ratios"].get(key)
            if ratio is None:
                row.append(_NOT_RUN)
            elif to_memory:
                cell = f"{format_speed(ratio['median'])} {format_spread(ratio)}".strip()
                row.append(f"**{cell}**" if key == MEMORY else cell)
            else:
                cell = f"**{format_ratio(ratio['median'])}** {format_spread(ratio)}"
                row.append(f"{cell} ({format_time(times[key])})")
        rows.append(row)
    return table(columns, rows)


def _grid_tables(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The matrix of copies: speed relative to the memory's, a table for each item size."""

    def cell(case: Mapping[str, Any] | None) -> str:
        if case is None:
            return _NOT_RUN
        missed = any(not one["met"] for one in case["targets"] if one["peer"] == MEMORY)
        text = format_speed(case["ratios"][MEMORY]["median"])
        return f"**{text}**" if missed else text

    for size, layouts, rows in plot.grids(cases):
        columns = [f"{size} byte{'s' if size > 1 else ''} an item", *map(str, layouts)]
        yield table(
            columns,
            [[label, *(cell(row.get(key)) for key in layouts)] for label, row in rows.items()],
        )


def _chapter(case: Mapping[str, Any]) -> str:
    return str(case["id"]).partition("/")[0]


def _times(case: Mapping[str, Any]) -> dict[str, float]:
    return {one["library"]: one["nanoseconds"]["median"] for one in case["contenders"]}


def plain(text: str) -> str:
    """Plain text as Markdown, also in a table."""
    return re.sub(r"([_|*])", r"\\\1", text)


def format_time(nanoseconds: float) -> str:
    """A time with three significant digits and its unit: '84.2 ns', '1.21 µs', '62 ms'."""
    for unit, scale in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if nanoseconds < 999.5 * scale:
            return f"{nanoseconds / scale:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


def format_ratio(ratio: float) -> str:
    """Three digits above 1, two below, where the reader asks only how many times faster."""
    return f"{ratio:.3g}×" if ratio >= 1 else f"{ratio:.2g}×"


def format_spread(spread: Mapping[str, float]) -> str:
    """Half the interquartile range in percent of the median; nothing of a single value."""
    if spread.get("count") == 1:
        return ""
    half = (spread["upper_quartile"] - spread["lower_quartile"]) / 2 / spread["median"]
    return f"±{half:.0%}" if half < 1 else "±≥100%"


def format_speed(ratio: float) -> str:
    """The quotient of two speeds from that of two times: two digits after the point, three digits in all from 10."""
    speed = 1 / ratio
    return f"{speed:.2f}" if speed < 9.995 else f"{speed:.3g}"


# Comparison

_LEAST_CHANGE = 0.1
"""Two runs of one build differ by up to a tenth, which the spread within a run does not show."""


class Change(NamedTuple):
    """A ratio that two results have; `verdict` is one of "faster", "slower" and "same"."""

    id: str
    title: str
    peer: str
    before: float
    now: float
    verdict: str


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The ratios that both results have.

    One has changed when the medians differ by more than a tenth and the interquartile ranges do not overlap.
    """
    past = {
        (case["id"], peer): one for case in old["cases"] for peer, one in case["ratios"].items()
    }
    found = []
    for case in new["cases"]:
        for peer, now in case["ratios"].items():
            if before := past.get((case["id"], peer)):
                verdict = "same"
                if abs(now["median"] / before["median"] - 1) > _LEAST_CHANGE:
                    if now["upper_quartile"] < before["lower_quartile"]:
                        verdict = "faster"
                    elif now["lower_quartile"] > before["upper_quartile"]:
                        verdict = "slower"
                medians = before["median"], now["median"]
                found.append(Change(case["id"], case["title"], peer, *medians, verdict))
    return found


def regressions(found: Sequence[Change]) -> list[Change]:
    """The cases that became slower, each once.

    A case counts by its ratio to the memory where it has one, else by all of its ratios: a ratio that grew because the
    peer became faster is not a regression.
    """
    slower = []
    for _, group in groupby(found, lambda change: change.id):
        case = [*group]
        judged = [change for change in case if change.peer == MEMORY] or case
        if all(change.verdict == "slower" for change in judged):
            slower.append(judged[0])
    return slower


def comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The ratios that moved, and the regressions."""
    found = changes(old, new)
    moved = [change for change in found if change.verdict != "same"]
    rows = [
        (
            plain(one.title),
            plain(title_of(one.peer)),
            f"{one.before:.3g}×",
            f"{one.now:.3g}×",
            f"{one.now / one.before - 1:+.0%} **{one.verdict}**",
        )
        for one in moved
    ]
    parts = (
        [table(("case", "peer", old["created"], new["created"], "change"), rows)] if rows else []
    )
    parts.append(
        f"{len(found)} ratios compared, {len(found) - len(moved)} are the same: within 10 %, or the interquartile ranges overlap"
    )
    slower = regressions(found)
    parts += [
        f"**regression: {plain(one.title)}: {one.before:.3g}× of {plain(title_of(one.peer))}'s time before, {one.now:.3g}× now**"
        for one in slower
    ]
    if not slower:
        parts.append("no case became slower")
    before, now = old["machine"]["cpu_model"], new["machine"]["cpu_model"]
    if before != now:
        parts.append(
            f"**the old result is from another machine ({plain(str(before))}): ratios move between machines**"
        )
    return "\n\n".join(parts)
