"""The command: `./bazelw run //benchmarks -- --help`, or `python -m gridbuf_benchmarks` where gridbuf is installed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from gridbuf_benchmarks import (
    memory_loops,
    next_fields,
    next_layouts,
    numpy_allocator,
    plot,
    report,
    results,
    unit_strides,
)
from gridbuf_benchmarks.case import Case, WrongWork
from gridbuf_benchmarks.cases import ALL_CASES, CHAPTERS, select
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, load
from gridbuf_benchmarks.timing import Budget

_QUICK = Budget(rounds=25, min_sample_seconds=100e-6, case_seconds=0.6, contender_seconds=0.05)
_FULL = Budget(rounds=101, min_sample_seconds=500e-6, case_seconds=2.0, contender_seconds=0.12)

_DESCRIPTION = """\
Times gridbuf against the libraries its users have today: NumPy always, PyTorch and
GT4Py when they are installed (./bazelw --peers installs them).

All libraries run in one process, in turns: every round takes one sample of each, in
random order. A ratio is time of gridbuf / time of the peer, formed within a round; the
reports have the median over the rounds ± half the interquartile range. Below 1, gridbuf
is faster. Before the clock starts, each library's result is checked to be the same work:
shape, dtype, values, layout and alignment. Copies and fills are compared with the
memory, too: memcpy or memset of as many bytes, on two threads, between the same blocks.
"""

_EPILOG = """\
examples:
  ./bazelw run //benchmarks -- run --quick                     about a minute, the usual cases
  ./bazelw run //benchmarks -- run --json now.json              all cases, 16 minutes; result kept
  ./bazelw run //benchmarks -- run --only copy,fill            chapters of the cases
  ./bazelw run //benchmarks -- run --filter exchange           cases whose id contains 'exchange'
  ./bazelw run //benchmarks -- run --filter 'copy/8/*/210'     or matches a shell pattern
  ./bazelw run //benchmarks -- compare before.json now.json    did my change move a ratio?
  ./bazelw run //benchmarks -- report now.json --plot charts   print and draw an old result again
  ./bazelw run //benchmarks:cpp -- --quick                     the C++ modules, by Google Benchmark

exit codes: 0 done (whether or not a target was met), 1 a library did other work than the
case states, or a program failed, 2 wrong usage or nothing to compare, 3 a case became
slower and --fail-on-regression was given. Times are otherwise never a test: comparison
and targets inform, they do not fail.
"""


def _path(text: str) -> Path:
    """A path relative to the user's folder: `bazel run` starts programs elsewhere."""
    return Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./bazelw run //benchmarks --",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chosen = argparse.ArgumentParser(add_help=False)
    add = chosen.add_argument
    rounds = (
        f"fewer cases and rounds: {_QUICK.rounds} rounds, at most {_QUICK.case_seconds:g} s a case"
        f" (otherwise {_FULL.rounds} rounds, {_FULL.case_seconds:g} s)"
    )
    add("--quick", action="store_true", help=rounds)
    only = f"only cases of these chapters, separated by commas: {', '.join(CHAPTERS)}"
    add("--only", type=lambda text: text.split(","), default=[], metavar="CHAPTERS", help=only)
    text = "only cases whose id contains TEXT or matches it as a shell pattern; may be repeated"
    add("--filter", action="append", default=[], metavar="TEXT", help=text)

    written = argparse.ArgumentParser(add_help=False)
    add = written.add_argument
    add("--plot", type=_path, metavar="FOLDER", help="draw the charts as SVG files in FOLDER")
    text = "write the page; its charts and CSV files go to the folder of its name: PATH without .md"
    add("--markdown", type=_path, metavar="PATH.md", help=text)
    text = "write the result without samples, a tenth of the size: a record that is committed"
    add("--summary", type=_path, metavar="PATH", help=text)

    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = commands.add_parser(
        "run", parents=[chosen, written], help="measure, print and record"
    ).add_argument
    text = "exactly N rounds for every case (in each of its processes), however long they take"
    add("--repeat", type=int, metavar="N", help=text)
    text = f"shortest sample in microseconds (default {_FULL.min_sample_seconds * 1e6:g}, with --quick {_QUICK.min_sample_seconds * 1e6:g})"
    add("--min-sample-us", type=float, metavar="T", help=text)
    add("--json", type=_path, metavar="PATH", help="write the result with all samples")
    again = commands.add_parser(
        "report", parents=[written], help="print, draw or document a result again"
    )
    again.add_argument("result", type=_path, metavar="RESULT.json")
    add = commands.add_parser("compare", help="which ratios changed").add_argument
    add("old", type=_path, metavar="OLD.json")
    add("new", type=_path, metavar="NEW.json")
    text = "exit with 3 if a case became slower by more than the spreads"
    add("--fail-on-regression", action="store_true", help=text)
    commands.add_parser("list", parents=[chosen], help="print the cases")
    text = "run the Google Benchmark programs of the C++ modules, built with optimisation: `./bazelw run //benchmarks:cpp`"
    add = commands.add_parser("cpp", help=text, description=text).add_argument
    add("programs", nargs="+", type=Path, help="given by the target")
    add("--quick", action="store_true", help="3 repetitions of 20 ms instead of 9 of 200 ms")
    add("--filter", default=".", metavar="REGEX", help="only benchmarks whose name matches")
    text = "what alignment is worth to GT4Py's stencils, by how they are compiled"
    add = commands.add_parser(
        "unit-strides", help=text, description=unit_strides.__doc__
    ).add_argument
    text = "which domains (some: 64×64×60 in the caches, and 128×128×80)"
    add("--cases", choices=["all", "some"], default="some", help=text)
    text = "which layout of fields is fast for the backends of gt4py.next"
    add = commands.add_parser(
        "next-layouts", help=text, description=next_layouts.__doc__
    ).add_argument
    choices = next_layouts.BACKENDS
    add("--backends", nargs="+", choices=choices, default=choices, help="default: all")
    add("--rounds", type=int, default=25, help="samples of each, default 25")
    text = "what fields of gt4py.next cost on gridbuf's memory"
    add = commands.add_parser(
        "next-fields", help=text, description=next_fields.__doc__
    ).add_argument
    add("--rounds", type=int, default=25, help="samples of each, default 25")
    text = "what gridbuf's memory is worth to programs that only use NumPy"
    add = commands.add_parser(
        "numpy-allocator", help=text, description=numpy_allocator.__doc__
    ).add_argument
    add("--rounds", type=int, default=9, help="processes of each, default 9")
    add("--only", nargs="+", default=[], metavar="TEXT", help="only cases whose id has a TEXT")
    add("--json", type=_path, metavar="PATH", help="write the record of the page's chart")
    text = "time and memory of loops that make and free large arrays"
    add = commands.add_parser(
        "memory-loops", help=text, description=memory_loops.__doc__
    ).add_argument
    add("--rounds", type=int, default=9, help="processes of each, default 9")
    add("--only", nargs="+", default=[], metavar="TEXT", help="only loops whose id has a TEXT")
    add("--json", type=_path, metavar="PATH", help="write the record of the page's chart")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (WrongWork, RuntimeError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        parser.error(str(error))


def _run(options: argparse.Namespace) -> int:
    if options.command == "cpp":
        return _cpp(options)
    if options.command == "unit-strides":
        return unit_strides.run(options.cases)
    if options.command == "next-layouts":
        return next_layouts.run(options.backends, options.rounds)
    if options.command == "next-fields":
        return next_fields.run(options.rounds)
    if options.command == "numpy-allocator":
        return numpy_allocator.run(options.rounds, options.json, options.only)
    if options.command == "memory-loops":
        return memory_loops.run(options.rounds, options.json, options.only)
    if options.command == "compare":
        old, new = results.read(options.old), results.read(options.new)
        report.show_markdown(report.comparison(old, new))
        slower = report.regressions(report.changes(old, new))
        return 3 if slower and options.fail_on_regression else 0
    if options.command == "report":
        _report(results.read(options.result), options)
        return 0
    cases = _cases(options)
    if options.command == "list":
        for case in cases:
            titles = ", ".join(LIBRARIES[entry.library].title for entry in case.entries)
            print(f"{case.id:32}{case.title}; {titles}{'; quick' if case.quick else ''}")
        return 0
    result = _measured(cases, options)
    if options.json:
        results.write(result, options.json)
    _report(result, options)
    return 0


def _cpp(options: argparse.Namespace) -> int:
    """Each program prints its table: median and coefficient of variation of repetitions in random order."""
    repetitions, seconds = (3, 0.02) if options.quick else (9, 0.2)
    for program in options.programs:
        command = [
            str(program),
            f"--benchmark_repetitions={repetitions}",
            f"--benchmark_min_time={seconds}",
            f"--benchmark_filter={options.filter}",
            "--benchmark_report_aggregates_only=true",
            "--benchmark_enable_random_interleaving=true",
        ]
        print(f"\n{program.name}", flush=True)
        if code := subprocess.run(command, check=False).returncode:
            raise RuntimeError(f"{program.name} failed with {code}")
    return 0


def _cases(options: argparse.Namespace) -> list[Case]:
    if unknown := [name for name in options.only if name not in CHAPTERS]:
        raise ValueError(
            f"--only: no chapter {', '.join(unknown)}; there are {', '.join(CHAPTERS)}"
        )
    cases = select(options.filter, quick=options.quick, only=options.only)
    if not cases:
        asked = " or ".join([*options.only, *options.filter])
        raise ValueError(f"no case of {len(ALL_CASES)} matches {asked}; `list` prints the ids")
    return cases


def _measured(cases: Sequence[Case], options: argparse.Namespace) -> dict[str, Any]:
    budget = _QUICK if options.quick else _FULL
    if options.repeat is not None:
        ever = float("inf")
        budget = replace(budget, rounds=options.repeat, case_seconds=ever, contender_seconds=ever)
    if options.min_sample_us is not None:
        budget = replace(budget, min_sample_seconds=options.min_sample_us * 1e-6)
    modules, missing = load(
        entry.library for case in cases for entry in case.entries + case.yardsticks
    )
    if BASELINE in missing:
        raise ValueError(f"{missing[BASELINE]}; {LIBRARIES[BASELINE].install}")
    # Drawn between cases only: a drawing thread would take time from the samples.
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(console=console, transient=True, auto_refresh=False, disable=hidden) as bar:
        task = bar.add_task("", total=len(cases))

        def show(case: Case) -> None:
            bar.update(task, completed=cases.index(case), description=case.title)
            bar.refresh()

        return results.run(cases, modules, missing, budget, quick=options.quick, progress=show)


def _report(result: dict[str, Any], options: argparse.Namespace) -> None:
    report.show(result)
    if options.plot:
        print("charts:", *plot.save(result, options.plot))
    if options.summary:
        results.write_summary(result, options.summary)
    if options.markdown:
        print("page:", *report.write_page(result, options.markdown))


if __name__ == "__main__":
    sys.exit(main())
