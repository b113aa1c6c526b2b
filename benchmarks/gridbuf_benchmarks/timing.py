"""Compares the times of several expressions on a machine whose speed varies.

A *sample* is one run of a contender's inner loop, long enough (`min_sample_seconds`) for the clock not to matter. A
*round* takes one sample of every contender, in a new random order. A ratio is formed within each round, from samples
taken within milliseconds of each other; the reported ratio is the median over the rounds. A slow phase of the machine
affects both sides of a quotient and cancels. The spread is the interquartile range.

A contender that takes a hundred times as long as the others would use the time of all: it sits out once it has used its
share, and its ratios are those of the rounds that it took part in.
"""

from __future__ import annotations

import random
import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

MINIMUM_ROUNDS = 5
"""The least number of rounds for quartiles; a case runs them even if they exceed its time."""

SETTLE_SECONDS = 0.05
"""The longest wait for other threads of the process before a sample."""

_LONG_SECONDS = 0.05
"""A call of this length is measured without a loop and without calibration."""


@dataclass(frozen=True)
class Budget:
    """The time that one case may take.

    `rounds` is the wanted number; a case ends earlier, but not before `MINIMUM_ROUNDS`, after `case_seconds`. A
    contender sits out after `contender_seconds` of samples. If a single call took twice as long when it was
    checked, that call is the sample.
    """

    rounds: int
    min_sample_seconds: float
    case_seconds: float
    seed: int = 20210401
    contender_seconds: float = float("inf")

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds}; it must be at least 1")
        if self.min_sample_seconds <= 0:
            raise ValueError(
                f"a sample of {self.min_sample_seconds} s is impossible; give a positive time"
            )


@dataclass(frozen=True)
class Contender:
    """A statement with its names, what runs untimed before each sample, and the known time of one call (0 if unknown).

    `known_faults` are the page faults of that call. An `essential` contender has at least `MINIMUM_ROUNDS` samples,
    however long they take.
    """

    statement: str
    names: dict[str, Any]
    setup: str = "pass"
    known_seconds: float = 0.0
    known_faults: int = 0
    essential: bool = False


@dataclass(frozen=True)
class Samples:
    """One contender's times, in nanoseconds per call, each the mean over `loops` calls.

    `rounds` says of which round each is, and `page_faults` how many the process had in it.
    """

    loops: int
    nanoseconds: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    page_faults: list[int] = field(default_factory=list)

    def keep(self, number: int, seconds: float, faults: int) -> None:
        self.nanoseconds.append(seconds / self.loops * 1e9)
        self.rounds.append(number)
        self.page_faults.append(faults)


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and number of a series; all three the same for a single value."""
    lower, median, upper = map(float, np.percentile(values, [25, 50, 75]))
    return {
        "median": median,
        "lower_quartile": lower,
        "upper_quartile": upper,
        "count": len(values),
    }


def ratio_of(numerator: Samples, denominator: Samples) -> dict[str, float]:
    """The quotient of two contenders of one case, formed in every round that has both."""
    below = dict(zip(denominator.rounds, denominator.nanoseconds))
    pairs = zip(numerator.rounds, numerator.nanoseconds)
    return spread_of([value / below[number] for number, value in pairs if number in below])


def settle() -> None:
    """Waits until no other thread of this process runs, at most 50 ms.

    Some libraries' threads wait for more work by spinning, PyTorch's for 10 ms; the next contender would have a
    processor less. Work in the background delays the sample, too.
    """
    deadline = time.perf_counter() + SETTLE_SECONDS
    while others_run() and time.perf_counter() < deadline:
        time.sleep(500e-6)


def others_run() -> bool:
    """Whether another thread of this process is on a processor, or waits for one."""
    own = threading.get_native_id()
    for task in Path("/proc/self/task").iterdir():
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        if int(task.name) != own and state == "R":
            return True
    return False


def page_faults() -> int:
    """The page faults of this process so far, those that needed no disk included."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def measure(
    contenders: Mapping[str, Contender],
    budget: Budget,
    clock: Callable[[], float] = time.perf_counter,
    agree: Callable[[float], float] = float,
) -> dict[str, Samples]:
    """Times every contender in interleaved rounds; the first is in all of them.

    The garbage collector is off while a sample runs, as in `timeit`. Calibration doubles as warm-up: its samples are
    dropped. Where several ranks measure together, `agree` is a barrier that returns the longest time of all ranks, and
    every rank takes the same decisions.
    """
    first = next(iter(contenders))
    found: dict[str, Samples] = {}
    time_of: dict[str, Callable[[int], float]] = {}
    for key, one in contenders.items():

        def seconds_of(
            loops: int, timer: Timer = Timer(one.statement, one.setup, clock, one.names)
        ) -> float:
            agree(0.0)
            return agree(timer.timeit(loops))

        time_of[key] = seconds_of
        known = agree(one.known_seconds)
        long = known >= _LONG_SECONDS
        found[key] = Samples(1 if long else _calibrate(seconds_of, budget.min_sample_seconds))
        if known > 2 * budget.contender_seconds and key != first and not one.essential:
            found[key].keep(0, known * found[key].loops, one.known_faults)

    def sits_out(key: str) -> bool:
        one = found[key]
        spent = sum(one.nanoseconds) * one.loops * 1e-9
        enough = len(one.rounds) >= MINIMUM_ROUNDS or not contenders[key].essential
        return enough and spent > budget.contender_seconds

    order = list(contenders)
    shuffle = random.Random(budget.seed).shuffle
    started = time.perf_counter()
    for number in range(budget.rounds):
        late = agree(time.perf_counter() - started) > budget.case_seconds
        if number >= min(MINIMUM_ROUNDS, budget.rounds) and (late or sits_out(first)):
            break
        shuffle(order)
        for key in order:
            if key == first or not sits_out(key):
                settle()
                before = page_faults()
                found[key].keep(number, time_of[key](found[key].loops), page_faults() - before)
    return found


def _calibrate(seconds_of: Callable[[int], float], min_sample_seconds: float) -> int:
    """The number of calls that last at least `min_sample_seconds`, found by trying."""
    seconds_of(1)  # first-call costs: lazy imports, caches, page tables
    loops = 1
    while True:
        seconds = seconds_of(loops)
        if seconds >= min_sample_seconds:
            return loops
        # Aims 10 % above the goal, and grows at most tenfold after one noisy sample.
        growth = 1.1 * min_sample_seconds / max(seconds, 1e-9)
        loops = max(loops + 1, int(loops * min(growth, 10.0)))
