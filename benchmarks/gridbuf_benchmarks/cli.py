"""The command line of //benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from gridbuf_benchmarks import compare, markdown, plot, results, table
from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.cases import CHAPTERS, select
from gridbuf_benchmarks.command import console_for_output, user_path
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, load
from gridbuf_benchmarks.timing import Budget
from gridbuf_benchmarks.work import WrongWork

__all__ = ["main"]

_QUICK = Budget(rounds=25, min_sample_seconds=100e-6, case_seconds=0.6, contender_seconds=0.05)
_FULL = Budget(rounds=101, min_sample_seconds=500e-6, case_seconds=2.0, contender_seconds=0.12)

_DESCRIPTION = """\
Times gridbuf against the libraries its users have today: NumPy always, PyTorch and
GT4Py when they are installed (./bazelw --peers installs them).

All libraries run in this one process, in turns: every round takes one sample of each,
in random order. (Compiled stencils run in three processes of their own: where their
fields happen to lie counts there. All libraries are in each, in turns.) A ratio is time
of gridbuf / time of the peer, formed within a round; printed is the median over the
rounds ± half the interquartile range. Below 1, gridbuf is faster. Before the clock
starts, each library's result is checked to be the same work: shape, dtype, values,
layout and alignment. Copies and fills stand beside the memory, too: memcpy or memset of
as many bytes, on two threads, between the same blocks.
"""

_EPILOG = """\
examples:
  ./bazelw run //benchmarks -- --quick                     half a minute, the usual cases
  ./bazelw run //benchmarks -- --json now.json --plot now  all cases, ten minutes; result and plots kept
  ./bazelw run //benchmarks -- --only copy,fill            chapters of the cases
  ./bazelw run //benchmarks -- --filter exchange           cases whose id contains 'exchange'
  ./bazelw run //benchmarks -- --filter 'copy/8/*/210'     or matches a shell pattern
  ./bazelw run //benchmarks -- --compare before.json       did my change move a ratio?
  ./bazelw run //benchmarks -- --load now.json --plot now  print and draw an old result again

exit codes: 0 measured (whether or not a target was met), 1 a library did other work than
the case states, 2 wrong usage or nothing to compare, 3 a case became slower and
--fail-on-regression was given. Times are otherwise never a test: --compare and the
targets inform, they do not fail.
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./bazelw run //benchmarks --",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"fewer cases and rounds: {_QUICK.rounds} rounds, at most {_QUICK.case_seconds:g} s a case"
        f" (otherwise {_FULL.rounds} rounds, {_FULL.case_seconds:g} s)",
    )
    parser.add_argument(
        "--only",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="CHAPTER,…",
        help=f"only cases of these chapters: {', '.join(CHAPTERS)}",
    )
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="TEXT",
        help="only cases whose id contains TEXT or matches it as a shell pattern; may be repeated",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        metavar="N",
        help="exactly N rounds for every case (in each of its processes), however long they take",
    )
    parser.add_argument(
        "--min-sample-us",
        type=float,
        metavar="T",
        help="shortest sample in microseconds; the inner loop grows until it is reached "
        f"(default {_FULL.min_sample_seconds * 1e6:g}, with --quick {_QUICK.min_sample_seconds * 1e6:g})",
    )
    parser.add_argument(
        "--json", type=user_path, metavar="PATH", help="write the result, all samples included"
    )
    parser.add_argument(
        "--plot",
        type=user_path,
        metavar="PATH",
        help="draw the ratios, and beside them in PATH-copies and PATH-sizes the copies and the sizes; PATH ends in"
        " .png or .svg, or both are written",
    )
    parser.add_argument(
        "--compare",
        type=user_path,
        metavar="OLD.json",
        help="also print which ratios changed since OLD.json",
    )
    parser.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="with --compare: exit with 3 if a case became slower by more than the spreads",
    )
    parser.add_argument(
        "--markdown",
        type=user_path,
        metavar="PATH",
        help="write the document of the result to PATH; its pictures are those of --plot, or are drawn beside it",
    )
    parser.add_argument(
        "--load",
        type=user_path,
        metavar="RESULT.json",
        help="measure nothing: print, draw, compare or document this result",
    )
    parser.add_argument("--list", action="store_true", help="print the selected cases and stop")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    budget = _budget(options, parser)
    cases = _cases(options, parser)
    console = console_for_output()
    if options.list:
        console.print(_case_list(cases))
        return 0
    if options.fail_on_regression and not options.compare:
        parser.error("--fail-on-regression needs --compare OLD.json to know what was before")
    old = _read(options.compare, "--compare", parser)
    result = _read(options.load, "--load", parser)
    try:
        if result is None:
            result = _measure(cases, budget, options, parser)
        _report(result, old, options, console)
    except WrongWork as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    slower = old is not None and compare.regressions(old, result)
    return 3 if slower and options.fail_on_regression else 0


def _cases(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Case]:
    unknown = [name for name in options.only if name not in CHAPTERS]
    if unknown:
        parser.error(f"--only: no chapter {', '.join(unknown)}; there are {', '.join(CHAPTERS)}")
    cases = select(options.filter, quick=options.quick, only=options.only)
    if not cases:
        asked = " or ".join([*options.only, *options.filter])
        parser.error(f"no case matches {asked}; --list shows the ids")
    return cases


def _read(path: Path | None, option: str, parser: argparse.ArgumentParser) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        return results.read(path)
    except (OSError, ValueError) as error:
        parser.error(f"{option}: {error}")


def _measure(
    cases: Sequence[Case],
    budget: Budget,
    options: argparse.Namespace,
    parser: argparse.ArgumentParser,
) -> dict[str, Any]:
    wanted = {entry.library for case in cases for entry in case.entries + case.yardsticks}
    loaded, missing = load(wanted)
    if BASELINE in missing:
        lost = missing[BASELINE]
        parser.error(f"{lost.reason}; {lost.library.install}")
    with _Progress(len(cases)) as progress:
        return results.run(
            cases, loaded, missing, budget, quick=options.quick, progress=progress.show
        )


def _budget(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Budget:
    default = _QUICK if options.quick else _FULL
    sample_us = options.min_sample_us
    try:
        return Budget(
            rounds=default.rounds if options.repeat is None else options.repeat,
            min_sample_seconds=default.min_sample_seconds
            if sample_us is None
            else sample_us * 1e-6,
            case_seconds=default.case_seconds if options.repeat is None else float("inf"),
            contender_seconds=default.contender_seconds if options.repeat is None else float("inf"),
        )
    except ValueError as error:
        parser.error(str(error))


def _report(
    result: dict[str, Any],
    old: dict[str, Any] | None,
    options: argparse.Namespace,
    console: Console,
) -> None:
    table.print_result(result, console)
    if old is not None:
        compare.print_changes(old, result, console)
    if options.json:
        results.write(result, options.json)
        console.print(f"result: {options.json}")
    if options.plot:
        console.print("plots:", *plot.save(result, options.plot))
    if options.markdown:
        pictures = options.plot or options.markdown.with_suffix(".png")
        if not options.plot:
            console.print("plots:", *plot.save(result, pictures))
        markdown.write(result, options.markdown, pictures)
        console.print(f"document: {options.markdown}")


def _case_list(cases: Sequence[Case]) -> Table:
    listing = Table(title=f"{len(cases)} cases")
    for column in ("id", "case", "libraries", "in --quick"):
        listing.add_column(column)
    for case in cases:
        titles = ", ".join(LIBRARIES[entry.library].title for entry in case.entries)
        listing.add_row(case.id, case.title, titles, "yes" if case.quick else "no")
    return listing


class _Progress:
    """A bar over the cases on standard error; nothing where that is no terminal."""

    def __init__(self, cases: int) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
            # Drawn between rounds only: a drawing thread would take time from the samples.
            auto_refresh=False,
        )
        self._task = self._bar.add_task("starting", total=cases)
        self._last: str | None = None

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, case: Case, done: int, wanted: int) -> None:
        advance = 0 if self._last in (None, case.id) else 1
        self._last = case.id
        self._bar.update(
            self._task, advance=advance, description=f"{case.title}, round {done}/{wanted}"
        )
        self._bar.refresh()
