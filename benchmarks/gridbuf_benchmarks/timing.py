"""Times several expressions against each other, fairly on a machine whose speed drifts.

All contenders of a case run in one process. A *sample* is one run of a contender's inner loop, long
enough (`min_sample_seconds`) for the clock not to matter. A *round* takes one sample of every contender,
in a new random order. A ratio is formed within each round, from samples taken within milliseconds of
each other, and the reported ratio is the median over the rounds: a slow phase of the machine hits both
sides of a quotient and cancels. The spread is the interquartile range.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from timeit import Timer
from typing import Any

__all__ = ["Budget", "Samples", "Spread", "measure", "ratio_of", "spread_of"]

MINIMUM_ROUNDS = 5
"""Fewer rounds have no quartiles worth printing; a case takes them even when they exceed its time."""

_NANOSECONDS = 1e9


@dataclass(frozen=True)
class Budget:
    """How much time one case may take.

    `rounds` is the number wished for; a case ends earlier, but not before `MINIMUM_ROUNDS`, when
    `case_seconds` have passed.
    """

    rounds: int
    min_sample_seconds: float
    case_seconds: float
    seed: int = 20210401

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds}; it must be at least 1")
        if self.min_sample_seconds <= 0:
            raise ValueError(
                f"a sample of {self.min_sample_seconds} s is impossible; give a positive time"
            )


@dataclass(frozen=True)
class Samples:
    """One contender's times, in nanoseconds per call, one per round; each the mean over `loops` calls."""

    loops: int
    nanoseconds: tuple[float, ...]


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of a series."""

    median: float
    lower_quartile: float
    upper_quartile: float

    @property
    def relative(self) -> float:
        """Half the interquartile range as a fraction of the median: what stands after ± in the table."""
        return (self.upper_quartile - self.lower_quartile) / 2 / self.median


def spread_of(values: Sequence[float]) -> Spread:
    """Median and quartiles, all three the same value for a single one."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, lower, upper)


def ratio_of(numerator: Samples, denominator: Samples) -> Spread:
    """The quotient of two contenders of one case, formed round by round."""
    pairs = zip(numerator.nanoseconds, denominator.nanoseconds, strict=True)
    return spread_of([above / below for above, below in pairs])


def measure(
    contenders: Mapping[str, tuple[str, dict[str, Any]]],
    budget: Budget,
    on_round: Callable[[int, int], None] = lambda done, wanted: None,
) -> dict[str, Samples]:
    """Times every contender (expression and globals) in interleaved rounds.

    The garbage collector is off while a sample runs, as in `timeit`. Calibration doubles as warm-up: its
    samples are dropped.
    """
    timers = {
        key: Timer(statement, globals=names) for key, (statement, names) in contenders.items()
    }
    loops = {key: _calibrate(timer, budget.min_sample_seconds) for key, timer in timers.items()}
    times: dict[str, list[float]] = {key: [] for key in timers}
    order = list(timers)
    shuffle = random.Random(budget.seed).shuffle
    minimum = min(MINIMUM_ROUNDS, budget.rounds)
    started = time.perf_counter()
    for done in range(budget.rounds):
        if done >= minimum and time.perf_counter() - started > budget.case_seconds:
            break
        shuffle(order)
        for key in order:
            times[key].append(timers[key].timeit(loops[key]) / loops[key] * _NANOSECONDS)
        on_round(done + 1, budget.rounds)
    return {key: Samples(loops[key], tuple(times[key])) for key in timers}


def _calibrate(timer: Timer, min_sample_seconds: float) -> int:
    """The number of calls that last at least `min_sample_seconds`, found by trying."""
    timer.timeit(1)  # first-call costs: lazy imports, caches, page tables
    loops = 1
    while True:
        seconds = timer.timeit(loops)
        if seconds >= min_sample_seconds:
            return loops
        # Aims at the goal with a tenth to spare, and grows at most tenfold on one noisy reading.
        growth = 1.1 * min_sample_seconds / max(seconds, 1e-9)
        loops = max(loops + 1, int(loops * min(growth, 10.0)))
