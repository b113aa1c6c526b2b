"""How long the conformance suite takes: processor time and memory by the number of plans, as Markdown.

    python benchmarks/suite_speed.py                  # a few minutes
    python benchmarks/suite_speed.py --quick          # smoke and default only

Every run is a separate process: `resource.getrusage` gives times and memory for the command (it draws plans and judges) and
for its worker (it makes arrays and measures). Times are processor time, user and system of both: on a machine with other
work, wall time says little. The targets are 10 s for `smoke` and 90 s for `default`, for NumPy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from typing import Any

_RUN = """
import dataclasses, json, resource, sys
from gridbuf_conformance import producer_run, profiles
target, profile, factor = json.loads(sys.argv[1])
chosen = profiles.PROFILES[profile]
counts = {n: round(getattr(chosen, n) * factor) for n in ("general", "boundary", "rank", "huge")}
profiles.PROFILES[profile] = dataclasses.replace(chosen, **counts)
report = producer_run.check_producer(target, profile=profile)
found = {"plans": sum(report.data["plans"].values())}
for name, who in (("command", resource.RUSAGE_SELF), ("worker", resource.RUSAGE_CHILDREN)):
    usage = resource.getrusage(who)
    found |= {name + "_s": usage.ru_utime + usage.ru_stime, name + "_mib": usage.ru_maxrss // 1024}
print(json.dumps(found))
"""


def measured(target: str, profile: str, factor: float) -> Any:
    """One run in a separate process; `factor` multiplies the profile's numbers of plans.

    Raises RuntimeError with the end of the process's output if it fails.
    """
    setup = json.dumps([target, profile, factor])
    done = subprocess.run([sys.executable, "-c", _RUN, setup], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{target}, {profile}: the run failed: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long the conformance suite takes.")
    parser.add_argument("--quick", action="store_true", help="smoke and default only")
    parser.add_argument("--producer", default="numpy", help="whose runs are timed (numpy)")
    asked = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}\n")
    print("| run | plans | processor time | of it the worker | ms a plan | peak memory (worker) |")
    print("|---|---|---|---|---|---|")
    wanted = [("smoke", 1.0), ("default", 1.0)]
    wanted += [] if asked.quick else [("thorough", 0.5), ("thorough", 1.0), ("thorough", 2.0)]
    for profile, factor in wanted:
        run = measured(asked.producer, profile, factor)
        name = profile if factor == 1.0 else f"{profile}, {factor:g} times the examples"
        seconds = run["command_s"] + run["worker_s"]
        print(
            f"| {name} | {run['plans']} | {seconds:.1f} s | {run['worker_s']:.1f} s | {1000 * seconds / run['plans']:.1f}"
            f" | {run['command_mib']} MiB ({run['worker_mib']} MiB) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
