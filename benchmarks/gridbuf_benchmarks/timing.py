"""Times several expressions against each other, fairly on a machine whose speed drifts.

All contenders of a case run in one process. A *sample* is one run of a contender's inner loop, long
enough (`min_sample_seconds`) for the clock not to matter. A *round* takes one sample of every contender,
in a new random order. A ratio is formed within each round, from samples taken within milliseconds of
each other, and the reported ratio is the median over the rounds: a slow phase of the machine hits both
sides of a quotient and cancels. The spread is the interquartile range.

A contender that takes a hundred times as long as the others would eat the time of all: it sits out once it has used
up its share, and its ratios are those of the rounds that it took part in.
"""

from __future__ import annotations

import random
import resource
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from timeit import Timer
from typing import Any

__all__ = [
    "Budget",
    "Contender",
    "Samples",
    "Spread",
    "measure",
    "others_run",
    "page_faults",
    "ratio_of",
    "settle",
    "spread_of",
]

MINIMUM_ROUNDS = 5
"""Fewer rounds have no quartiles worth printing; a case takes them even when they exceed its time."""

_NANOSECONDS = 1e9


SETTLE_SECONDS = 0.05
"""The longest wait for other threads of the process before a sample."""

_LONG_SECONDS = 0.05
"""A call of this length needs no loop, and none to find that out."""


@dataclass(frozen=True)
class Budget:
    """How much time one case may take.

    `rounds` is the number wished for; a case ends earlier, but not before `MINIMUM_ROUNDS`, when
    `case_seconds` have passed. A contender sits out after `contender_seconds` of its own samples; of one whose
    single call took twice as long when it was checked, that call is the sample.
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
    """A statement with the names it uses, what runs untimed before each sample, and how long one call took before.

    The last is 0 where nobody knows; `known_faults` are the page faults of that call.
    An `essential` one has `MINIMUM_ROUNDS` samples at least, however long they take.
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

    `rounds` says of which round each is, and `page_faults` how many the process had during it; both are empty where
    every round has a sample and nobody counted.
    """

    loops: int
    nanoseconds: tuple[float, ...]
    rounds: tuple[int, ...] = ()
    page_faults: tuple[int, ...] = ()

    def by_round(self) -> dict[int, float]:
        return dict(zip(self.rounds or range(len(self.nanoseconds)), self.nanoseconds))


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of a series of `count` values."""

    median: float
    lower_quartile: float
    upper_quartile: float
    count: int


def spread_of(values: Sequence[float]) -> Spread:
    """Median and quartiles, all three the same value for a single one."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, lower, upper, len(values))


def ratio_of(numerator: Samples, denominator: Samples) -> Spread:
    """The quotient of two contenders of one case, formed in every round that has both."""
    below = denominator.by_round()
    return spread_of(
        [value / below[number] for number, value in numerator.by_round().items() if number in below]
    )


def settle() -> None:
    """Waits until no other thread of this process runs, at most 50 ms.

    Some libraries' threads wait for more work by spinning: PyTorch's for 10 ms, in which who comes next would have
    a processor less. Work that goes on in the background is waited for, too.
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


class _Series:
    """The samples of one contender while they are taken."""

    def __init__(
        self, contender: Contender, budget: Budget, clock: Callable[[], float], *, always: bool
    ) -> None:
        self._timer = Timer(contender.statement, contender.setup, clock, contender.names)
        self._budget = budget
        self._essential = contender.essential
        self._spent_seconds = 0.0
        self._loops = (
            1
            if contender.known_seconds >= _LONG_SECONDS
            else _calibrate(self._timer, budget.min_sample_seconds)
        )
        self._rounds: list[int] = []
        self._nanoseconds: list[float] = []
        self._faults: list[int] = []
        if contender.known_seconds > 2 * budget.contender_seconds and not (
            always or contender.essential
        ):
            self._keep(0, contender.known_seconds, contender.known_faults)

    @property
    def sits_out(self) -> bool:
        enough = len(self._rounds) >= MINIMUM_ROUNDS or not self._essential
        return enough and self._spent_seconds > self._budget.contender_seconds

    def sample(self, number: int) -> None:
        settle()
        before = page_faults()
        seconds = self._timer.timeit(self._loops)
        self._keep(number, seconds, page_faults() - before)

    def _keep(self, number: int, seconds: float, faults: int) -> None:
        self._faults.append(faults)
        self._spent_seconds += seconds
        self._rounds.append(number)
        self._nanoseconds.append(seconds / self._loops * _NANOSECONDS)

    def samples(self) -> Samples:
        return Samples(
            self._loops, tuple(self._nanoseconds), tuple(self._rounds), tuple(self._faults)
        )


def measure(
    contenders: Mapping[str, Contender],
    budget: Budget,
    on_round: Callable[[int, int], None] = lambda done, wanted: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Samples]:
    """Times every contender in interleaved rounds; the first is in all of them.

    The garbage collector is off while a sample runs, as in `timeit`. Calibration doubles as warm-up: its
    samples are dropped.
    """
    series = {
        key: _Series(contender, budget, clock, always=number == 0)
        for number, (key, contender) in enumerate(contenders.items())
    }
    first = next(iter(series.values()))
    order = list(series.values())
    shuffle = random.Random(budget.seed).shuffle
    minimum = min(MINIMUM_ROUNDS, budget.rounds)
    started = time.perf_counter()
    for done in range(budget.rounds):
        late = time.perf_counter() - started > budget.case_seconds
        if done >= minimum and (late or first.sits_out):
            break
        shuffle(order)
        for one in order:
            if one is first or not one.sits_out:
                one.sample(done)
        on_round(done + 1, budget.rounds)
    return {key: one.samples() for key, one in series.items()}


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
