"""Reports on a result: the page with its charts and CSV files, the terminal's tables, and the comparison with an old result.

The page is `performance.template.md`, a jinja2 template with the sentences; a result fills its gaps. To change a
sentence, change the template; to change a figure, run again.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from rich.console import Console
from rich.markdown import Markdown

from gridbuf_benchmarks import plot
from gridbuf_benchmarks.cases import CHAPTERS
from gridbuf_benchmarks.libraries import BASELINE, MEMORY, PEERS, title_of
from gridbuf_benchmarks.promises import LINEAR, PROMISES

DOCUMENT_CHARTS = ("layouts",)
"""The charts of docs/performance.md. The documentation site has all of them, and draws them."""
_NOT_RUN = "–"
_SLOWER = 1.1
FIGURE = re.compile(r"(<!-- record: (.+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
"""A figure of the record on another page: `<!-- record: ratio("call/empty/storages", "gt4py") -->0.13<!-- end -->`."""


def with_figures(text: str, result: Mapping[str, Any]) -> str:
    """A page with the figures of the result; the expressions have the functions of the template."""
    found = gaps(result)

    def figure(match: re.Match[str]) -> str:
        value = _environment().compile_expression(match[2], undefined_to_none=False)(**found)
        if value == _NOT_RUN:
            raise ValueError(f"the record has no case for {match[2]}")
        return f"{match[1]}{value}{match[4]}"

    return FIGURE.sub(figure, text)


def template() -> jinja2.Template:
    """The page with gaps, which `gaps` fills; a gap without a text is an error."""
    return _environment().get_template("performance.template.md")


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gridbuf_benchmarks", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = plain
    return environment


def write_page(result: Mapping[str, Any], path: Path) -> list[Path]:
    """Writes the page, and to the folder of its name the charts and the CSV files; returns all paths."""
    folder = path.with_suffix("")
    written = [path, *plot.save(result, folder)]
    path.write_text(page(result, folder.name))
    for name, text in tables(result).items():
        written.append(folder / name)
        written[-1].write_text(text)
    return written


def page(result: Mapping[str, Any], folder: str, charts: Collection[str] | None = None) -> str:
    """The page, which links to charts and tables in the folder next to it.

    Args:
      charts: for the documentation, whose folder has the record, but not the tables: the charts that it has.
    """
    shown = plot.names(result) if charts is None else charts
    return template().render(
        gaps(result), folder=folder, charts=shown, is_record=charts is not None
    )


def tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The CSV files of the page, by name: every figure, and what each case compares."""
    figures: list[Sequence[Any]] = [
        "case library statement ns ns_lower_quartile ns_upper_quartile gb_per_s ratio"
        " ratio_lower_quartile ratio_upper_quartile".split()
    ]
    works: list[Sequence[Any]] = ["case title shape dtype layout array_bytes rounds note".split()]
    parts = ("median", "lower_quartile", "upper_quartile")
    for case in result["cases"]:
        work = case["work"]
        shape, layout = (" ".join(map(str, work[key] or ())) for key in ("shape", "layout"))
        works.append(
            [case["id"], case["title"], shape, work["dtype"], layout, work["array_bytes"]]
            + [case["rounds"], case["note"]]
        )
        for one in case["contenders"]:
            key, ns = one["library"], one["nanoseconds"]
            ratio = case["ratios"].get(MEMORY if key == case["yardstick"] else key, {})
            speed = f"{work['bytes_moved'] / ns['median']:.4g}" if work["bytes_moved"] else ""
            figures.append(
                [case["id"], key, one["statement"], *(ns[part] for part in parts), speed]
                + [ratio.get(part, "") for part in parts]
            )
    return {"results.csv": _csv(figures), "cases.csv": _csv(works)}


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def show(result: Mapping[str, Any]) -> None:
    """Prints all figures, the targets, what differs between libraries, and the machine."""
    whole, found = template(), gaps(result)
    notes: dict[str, dict[str, None]] = {}
    for case in result["cases"]:
        notes.setdefault(case["note"], {})[_chapter(case)] = None
    for key, some in groupby(result["cases"], _chapter):
        show_markdown(f"## {CHAPTERS.get(key, key)}\n\n{case_table([*some])}")
    show_markdown(table(("target", "bound", "measured", "met"), found["targets"]))
    show_markdown("\n".join(f"- {', '.join(some)}: {plain(note)}" for note, some in notes.items()))
    show_markdown("".join(whole.blocks["info"](whole.new_context(found))))


def show_markdown(text: str) -> None:
    """Prints Markdown; wide enough for the tables where the output is not a terminal."""
    console = Console(width=None if sys.stdout.isatty() else 132, highlight=False)
    console.print(Markdown(text))


def gaps(result: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of the template, by name."""
    cases = {case["id"]: case for case in result["cases"]}

    def medians(pattern: str, peer: str) -> list[float]:
        """Of the cases whose ids match the regular expression, or that are judged by the promise of this id."""
        return [
            case["ratios"][peer]["median"]
            for id, case in cases.items()
            if peer in case["ratios"]
            and (
                any(target["promise"] == pattern for target in case["targets"])
                if pattern in PROMISES
                else re.fullmatch(pattern, id)
            )
        ]

    def ends(figures: Sequence[float]) -> str:
        words = [format_ratio(end(figures)) for end in (min, max)] if figures else [_NOT_RUN]
        return " to ".join(dict.fromkeys(words))

    def ratio(pattern: str, peer: str) -> str:
        """Time of gridbuf ÷ time of the peer: least and largest."""
        return ends(medians(pattern, peer))

    def speed(pattern: str, peer: str) -> str:
        """Speed of gridbuf ÷ speed of the peer: least and largest."""
        return ends([1 / median for median in medians(pattern, peer)])

    def bound(promise: str) -> str:
        return f"{PROMISES[promise].bound:g}"

    def time(id: str) -> str:
        """The time of one call of gridbuf."""
        return format_time(_times(cases[id])[BASELINE]) if id in cases else _NOT_RUN

    layouts = plot.copies_at_grid_sizes(result["cases"])
    mebibytes = [case["work"]["array_bytes"] / 2**20 for case in layouts] or [0.0]
    return {
        **result,
        "ratio": ratio,
        "speed": speed,
        "bound": bound,
        "time": time,
        "grid_pattern": "|".join(re.escape(case["id"]) for case in layouts),
        "grid_sizes": f"{min(mebibytes):.2g} to {max(mebibytes):.2g} MiB",
        "targets": [
            promise_words(promise)
            for promise in result["promises"]
            if promise["id"] in {*PROMISES, LINEAR.id}
        ],
        "slower": [*_slower(result["cases"])],
    }


def promise_words(promise: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Each promise with its bound, the figure of the worst case, and whether it is met."""
    what = plain(promise["text"]), plain(promise["words"])
    if promise["met"] is None:
        return *what, _NOT_RUN, "not measured"
    worst = f"{promise['worst']:.3g}"
    if promise["cases"] > 1:
        worst += f" ({promise['worst_case']})"
    missed = f"**missed** by {promise['cases'] - promise['cases_met']} of {promise['cases']}"
    return *what, plain(worst), "met" if promise["met"] else missed


def _slower(cases: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    """Chapters and peers with cases in which gridbuf is slower: how many, and the worst."""
    for key, some in groupby(cases, _chapter):
        chapter = [*some]
        for peer in ("numpy", "torch", "gt4py", "ghex", "mpi4py"):
            ratios = {
                case["id"]: case["ratios"][peer]["median"]
                for case in chapter
                if peer in case["ratios"]
            }
            slow = sum(ratio > _SLOWER for ratio in ratios.values())
            if slow:
                worst = max(ratios, key=lambda id: ratios[id])
                count = f"{slow} of {len(ratios)}"
                title = CHAPTERS.get(key, key), title_of(peer)
                yield *title, count, format_ratio(ratios[worst]), plain(worst)


# Tables


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, all columns but the first to the right."""
    head, *body = (f"| {' | '.join(row)} |" for row in (columns, *rows))
    return "\n".join([head, "|---|" + "--:|" * (len(columns) - 1), *body])


def case_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """A row for each case: the time of gridbuf, and the ratio to the time of each peer with its spread."""
    peers = [key for key in (MEMORY, *PEERS) if any(key in case["ratios"] for case in cases)]
    rows = []
    for case in cases:
        times, moved = _times(case), case["work"]["bytes_moved"]
        speed = f"{moved / times[BASELINE]:.3g}" if moved else _NOT_RUN
        rows.append([plain(case["title"]), format_time(times[BASELINE]), speed])
        for key in peers:
            ratio = case["ratios"].get(key)
            text = f"**{format_ratio(ratio['median'])}** {format_spread(ratio)}" if ratio else ""
            rows[-1].append(text.strip() or _NOT_RUN)
    return table(["case", "gridbuf", "GB/s", *(f"÷ {title_of(key)}" for key in peers)], rows)


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
    """Three digits above 1, two below."""
    return f"{ratio:.3g}" if ratio >= 1 else f"{ratio:.2g}"


def format_spread(spread: Mapping[str, float]) -> str:
    """Half the interquartile range in percent of the median; nothing of a single value."""
    if spread.get("count") == 1:
        return ""
    half = (spread["upper_quartile"] - spread["lower_quartile"]) / 2 / spread["median"]
    return f"±{half:.0%}" if half < 1 else "±≥100%"


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
