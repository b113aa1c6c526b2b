"""`./bazelw run //benchmarks:cpp`: runs the C++ modules' Google Benchmark programs and prints one table.

Each module keeps its benchmarks beside its source (`modules/*/…_benchmark.cc`); this collects them. Every
benchmark is repeated, in random interleaved order, and reported by median and coefficient of variation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbuf_benchmarks import machine
from gridbuf_benchmarks.command import console_for_output, user_path
from gridbuf_benchmarks.table import format_time, print_warnings

__all__ = ["Row", "main", "not_run", "rows_of", "run_program"]

_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Row:
    """One benchmark: median CPU time per iteration, relative spread, and its rates per second."""

    program: str
    benchmark: str
    nanoseconds: float
    variation: float
    bytes_per_second: float | None
    items_per_second: float | None


def run_program(
    program: Path, *, repetitions: int, min_time_seconds: float, pattern: str
) -> dict[str, Any]:
    """Runs one Google Benchmark program and returns its JSON report.

    Raises:
      RuntimeError: when the program fails, with what it printed.
    """
    command = [
        str(program),
        "--benchmark_format=json",
        f"--benchmark_repetitions={repetitions}",
        "--benchmark_report_aggregates_only=true",
        "--benchmark_enable_random_interleaving=true",
        f"--benchmark_min_time={min_time_seconds}",
        f"--benchmark_filter={pattern}",
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise RuntimeError(
            f"{program.name} failed with {finished.returncode}: {finished.stderr.strip()}"
        )
    # A pattern that matches nothing here leaves the report empty.
    return dict(json.loads(finished.stdout)) if finished.stdout.strip() else {"benchmarks": []}


def rows_of(program: str, report: dict[str, Any]) -> Iterator[Row]:
    """The rows of one report: its medians, each with its coefficient of variation.

    They come in the order of the source, which the random interleaving of the runs has lost.
    """
    aggregates: dict[str, dict[str, dict[str, Any]]] = {}
    lines = report["benchmarks"]
    order = ("family_index", "per_family_instance_index")
    for line in sorted(lines, key=lambda line: [line[index] for index in order]):
        if line["run_type"] == "aggregate":
            aggregates.setdefault(line["run_name"], {})[line["aggregate_name"]] = line
    for name, by_kind in aggregates.items():
        median = by_kind["median"]
        yield Row(
            program=program,
            benchmark=name,
            nanoseconds=median["cpu_time"] * _NANOSECONDS[median["time_unit"]],
            variation=by_kind["cv"]["cpu_time"],
            bytes_per_second=median.get("bytes_per_second"),
            items_per_second=median.get("items_per_second"),
        )


def not_run(report: dict[str, Any]) -> list[str]:
    """Why benchmarks of a report were not run, each reason once: a GPU's, where there is none."""
    reasons = (
        line["error_message"] for line in report["benchmarks"] if line.get("error_occurred", False)
    )
    return list(dict.fromkeys(reasons))


def _table(rows: Sequence[Row]) -> Table:
    table = Table(
        title="C++ modules, CPU time per iteration",
        caption="median of the repetitions ± coefficient of variation",
    )
    table.add_column("program")
    table.add_column("benchmark")
    for column in ("time", "spread", "rate"):
        table.add_column(column, justify="right")
    previous = ""
    for row in rows:
        if previous and row.program != previous:
            table.add_section()
        name = "" if row.program == previous else row.program
        table.add_row(
            name,
            row.benchmark,
            format_time(row.nanoseconds),
            Text(f"±{row.variation:.0%}", style="dim"),
            _rate(row),
        )
        previous = row.program
    return table


def _rate(row: Row) -> str:
    if row.bytes_per_second is not None:
        return f"{row.bytes_per_second / 1e9:.3g} GB/s"
    if row.items_per_second is not None:
        return f"{row.items_per_second / 1e6:.3g} M/s"
    return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./bazelw run //benchmarks:cpp --",
        description="Runs the Google Benchmark programs of the C++ modules, built with optimisation, and "
        "prints one table.",
        epilog="One program alone, with Google Benchmark's own options:\n"
        "  ./bazelw run --config=opt //modules/layout:layout_benchmark -- --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "programs", nargs="+", type=Path, help="given by the target; give none yourself"
    )
    parser.add_argument(
        "--quick", action="store_true", help="3 repetitions of 20 ms instead of 9 of 200 ms"
    )
    parser.add_argument(
        "--filter", default=".", metavar="REGEX", help="only benchmarks whose name matches"
    )
    parser.add_argument(
        "--json", type=user_path, metavar="PATH", help="write all reports and the machine's facts"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 0, or 1 when a program failed, or 2 when nothing matched."""
    options = _parser().parse_args(arguments)
    console = console_for_output()
    facts = machine.describe()
    repetitions, min_time_seconds = (3, 0.02) if options.quick else (9, 0.2)
    reports: dict[str, dict[str, Any]] = {}
    with Console(stderr=True).status("") as status:
        for program in options.programs:
            status.update(f"running {program.name}")
            try:
                reports[program.name] = run_program(
                    program,
                    repetitions=repetitions,
                    min_time_seconds=min_time_seconds,
                    pattern=options.filter,
                )
            except RuntimeError as error:
                print(f"benchmarks: {error}", file=sys.stderr)
                return 1
    rows = [row for name, report in reports.items() for row in rows_of(name, report)]
    if not rows and not any(not_run(report) for report in reports.values()):
        print(f"benchmarks: no C++ benchmark matches {options.filter!r}", file=sys.stderr)
        return 2
    console.print(_table(rows))
    for name, report in reports.items():
        for reason in not_run(report):
            console.print(f"{name}: {reason}", markup=False)
    print_warnings(machine.disturbances(facts), console)
    if options.json:
        document = {
            "schema": "gridbuf.benchmarks.cpp",
            "schema_version": 1,
            "machine": facts,
            "reports": reports,
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
        console.print(f"result: {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
