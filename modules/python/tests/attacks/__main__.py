"""Attacks gridbuf with random cases until the time is up. `tools/attack` builds it and passes its arguments on."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from attacks import ATTACKS, SANITIZED
from worker import NUMBER

HERE = Path(__file__).parent
SLICE_S = 20
"""A worker process attacks for this long. Then the next attack follows, in a new process with other settings."""
HANG_S = 180
"""A case that takes longer hangs. Under a sanitizer the longest correct one takes about 20 s."""
MALLOC = [{}, {"PYTHONMALLOC": "debug"}, {"MALLOC_PERTURB_": "165"}]
"""Settings of the allocators that show uses of freed or unwritten memory."""
MOST_FAILURES = 5
"""An attack with more failures ends."""


@dataclass
class Results:
    """What an attack did so far."""

    cases: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def run_worker(name: str, seed: int, first: int, seconds: float) -> tuple[int, str]:
    """Run cases from `first` on: the number of the case that failed, or the next one, and the failure ("": none)."""
    malloc = {} if SANITIZED else MALLOC[first % len(MALLOC)]
    with tempfile.NamedTemporaryFile() as number, tempfile.TemporaryFile() as output:
        number.write(NUMBER.pack(first))
        number.flush()
        worker = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), number.name, name, str(seed), str(first), str(seconds)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **malloc},
            start_new_session=True,
        )  # fmt: skip
        try:
            worker.wait(timeout=seconds + HANG_S)
        except subprocess.TimeoutExpired:
            worker.send_signal(signal.SIGABRT)  # faulthandler prints where each thread is.
        code = worker.wait()
        try:
            os.killpg(worker.pid, signal.SIGKILL)  # children that hang
        except ProcessLookupError:
            pass
        number.seek(0)
        (at,) = NUMBER.unpack(number.read(NUMBER.size))
        output.seek(0)
        text = output.read().decode(errors="replace")
    return at, "" if code == 0 else f"exit code {code}\n{text[-6000:]}"


def attack(name: str, seed: int, results: Results, seconds: float) -> None:
    """One slice of an attack. A case that fails is reported, and the next one follows in a new process."""
    begin = time.monotonic()
    while len(results.failures) < MOST_FAILURES:
        if (left := seconds - (time.monotonic() - begin)) <= 0:
            break
        results.cases, failure = run_worker(name, seed, results.cases, left)
        if failure:
            again = f"tools/attack --seed {seed} --case {results.cases} {name}"
            results.failures.append(f"{again}\n{failure}")
            print(f"\nFAILED {name}: {results.failures[-1]}\n", flush=True)
            results.cases += 1
    results.seconds += time.monotonic() - begin


def attack_all(names: list[str], seed: int, minutes: float, jobs: int) -> dict[str, Results]:
    """Slices of all attacks in turn, as many at once as there are jobs."""
    results = {name: Results() for name in names}
    end = time.monotonic() + 60 * minutes
    slice_s = min(SLICE_S, 60 * minutes * jobs / len(names))

    def lane(own: list[str]) -> None:
        while own := [name for name in own if len(results[name].failures) < MOST_FAILURES]:
            for name in own:
                if (left := end - time.monotonic()) <= 0.01:
                    return
                attack(name, seed, results[name], min(left, slice_s))
            done = "  ".join(f"{name} {results[name].cases:,}" for name in own)
            print(f"{end - time.monotonic():.0f} s left; cases: {done}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lane, [names[number::jobs] for number in range(jobs)]))
    return results


def parser() -> argparse.ArgumentParser:
    shown = "\n".join(f"  {name:10} {kind.__doc__}" for name, kind in ATTACKS.items())
    made = argparse.ArgumentParser(
        prog="tools/attack",
        description="Random cases against gridbuf, until the time is up.",
        epilog=f"attacks (default: all):\n{shown}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("names", nargs="*", metavar="ATTACK", help="what to attack, see below")
    made.add_argument("--minutes", type=float, default=2.0, help="how long (default: 2)")
    made.add_argument("--seed", type=int, help="the first random number (default: a new one)")
    made.add_argument("--case", type=int, help="only this case of one attack: as a failure says")
    made.add_argument("--jobs", type=int, default=1, help="attacks at the same time (default: 1)")
    return made


def main() -> int:
    options = parser().parse_args()
    unknown = [name for name in options.names if name not in ATTACKS]
    if unknown:
        parser().error(f"unknown attack {unknown[0]!r}; use one of {', '.join(ATTACKS)}")
    names = options.names or [name for name, kind in ATTACKS.items() if kind.can_run()]
    seed = secrets.randbits(31) if options.seed is None else options.seed
    if options.case is not None:
        if len(options.names) != 1 or options.seed is None:
            parser().error("--case needs --seed and the name of one attack")
        failure = run_worker(names[0], seed, options.case, 0)[1]
        print(failure or f"{names[0]}, seed {seed}, case {options.case}: passed")
        return bool(failure)
    print(f"seed {seed}, {options.minutes:g} minutes, {'sanitized' if SANITIZED else 'plain'}")
    results = attack_all(names, seed, options.minutes, max(1, options.jobs))
    for name, found in results.items():
        print(
            f"{name:10} {found.cases:11,} cases {found.seconds:7.0f} s  {len(found.failures)} failed"
        )
    left = [name for name, kind in ATTACKS.items() if not kind.can_run()]
    print(f"NOT run here: {', '.join(left)}" if left else "all attacks can run here")
    return any(found.failures for found in results.values())


if __name__ == "__main__":
    sys.exit(main())
