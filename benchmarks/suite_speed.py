"""How long the conformance suite takes: processor time, rate with and without isolation, memory, scaling.

    python benchmarks/suite_speed.py                  # a few minutes; prints Markdown
    python benchmarks/suite_speed.py --quick          # smoke and default only

Every run is a process of its own, so that its times and its memory are its own: `resource.getrusage` gives them for
the command (it draws plans and judges) and for its worker (it makes arrays and measures). Times are processor time,
user and system of both processes: on a machine with other work, wall time says little. The rates compare wall time,
back to back, because isolation costs waiting as well; they are medians of three.

The targets are the project's own: `smoke` at most 10 s and `default` at most 90 s of processor time for NumPy, plans
of host memory at 0.3 of the rate without isolation or more, `thorough` in proportion to its number of plans.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

_RUN = """
import dataclasses, json, resource, sys, time
from gridbuf_conformance import producer_run, profiles
target, profile, isolate, factor = json.loads(sys.argv[1])
chosen = profiles.PROFILES[profile]
counts = {n: round(getattr(chosen, n) * factor) for n in ("general", "boundary", "rank", "huge")}
profiles.PROFILES[profile] = dataclasses.replace(chosen, **counts)
begin = time.perf_counter()
report = producer_run.check_producer(target, profile=profile, isolate=isolate)
wall_s = time.perf_counter() - begin
own, worker = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps([
    sum(report.data["plans"].values()), wall_s,
    own.ru_utime + own.ru_stime, worker.ru_utime + worker.ru_stime, own.ru_maxrss, worker.ru_maxrss,
]))
"""


class Run(NamedTuple):
    """One run: plans asked, seconds, and peak memory in KiB of the command and of its worker."""

    plans: int
    wall_s: float
    command_s: float
    worker_s: float
    command_kib: int
    worker_kib: int

    @property
    def processor_s(self) -> float:
        return self.command_s + self.worker_s


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Measure how long the conformance suite takes.")
    parser.add_argument("--quick", action="store_true", help="smoke and default only")
    parser.add_argument("--producer", default="numpy", help="whose runs are timed (numpy)")
    asked = parser.parse_args(arguments)
    print(f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}\n")
    _print_profiles(asked.producer, quick=asked.quick)
    _print_rates(("array", asked.producer))
    return 0


def _print_profiles(producer: str, *, quick: bool) -> None:
    print("| run | plans | processor time | of it the worker | ms a plan | peak memory (worker) |")
    print("|---|---|---|---|---|---|")
    wanted = [("smoke", 1.0), ("default", 1.0)]
    wanted += [] if quick else [("thorough", 0.5), ("thorough", 1.0), ("thorough", 2.0)]
    for profile, factor in wanted:
        run = measured(producer, profile, factor=factor)
        name = profile if factor == 1.0 else f"{profile}, {factor:g} times the examples"
        per_plan_ms = 1000 * run.processor_s / run.plans
        memory = f"{run.command_kib // 1024} MiB ({run.worker_kib // 1024} MiB)"
        print(
            f"| {name} | {run.plans} | {run.processor_s:.1f} s | {run.worker_s:.1f} s "
            f"| {per_plan_ms:.1f} | {memory} |",
            flush=True,
        )


def _print_rates(names: Sequence[str]) -> None:
    print("\n| producer | plans per second | without isolation | ratio |\n|---|---|---|---|")
    for name in names:
        rates: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(3):
            for isolate, found in rates.items():
                run = measured(name, "smoke", isolate=isolate)
                found.append(run.plans / run.wall_s)
        isolated, local = (statistics.median(found) for found in rates.values())
        print(f"| {name} | {isolated:.0f} | {local:.0f} | {isolated / local:.2f} |", flush=True)


def measured(target: str, profile: str, *, isolate: bool = True, factor: float = 1.0) -> Run:
    """One run in a process of its own; `factor` multiplies the profile's numbers of plans.

    Raises RuntimeError with the end of the process's output if it fails.
    """
    setup = json.dumps([target, profile, isolate, factor])
    done = subprocess.run([sys.executable, "-c", _RUN, setup], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{target}, {profile}: the run failed: {done.stderr[-500:]}")
    values: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return Run(*values)


if __name__ == "__main__":
    sys.exit(main())
