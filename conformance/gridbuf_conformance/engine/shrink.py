"""Makes failures small: for each rule that failed, the smallest plan that fails it in the same way.

Every plan is asked at most once, and the number of new ones is bounded, not the time, so that two
runs do the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..outcomes import Outcome
from ..plan import Plan
from ..plan.profiles import Profile
from .run import Run
from .tally import Tally, weight

_RESET_BUDGET = 16

_SHRINK_COST = {"crash": 4, "unstable": 8, "timeout": 40}


@dataclass(frozen=True)
class Batch:
    """Plans asked together, with the data to draw them again when the run shrinks one of them."""

    strategy: Any
    draws: int
    seed: int
    plans: tuple[Plan, ...]


def drawn_batch(strategy: Any, count: int, seed: int) -> Batch:
    """So many plans of a strategy."""
    from ..plan import strategies

    plans = tuple(strategies.sample(strategy, count, seed))
    return Batch(strategy, strategies.DRAWS_PER_PLAN * count, seed, plans)


def listed_batch(plans: Sequence[Plan], seed: int) -> Batch:
    """Plans of a list; the simplest one that fails is the first."""
    from hypothesis.strategies import sampled_from

    from ..plan.strategies import DRAWS_PER_PLAN

    return Batch(sampled_from(plans), DRAWS_PER_PLAN * len(plans), seed, tuple(plans))


def ask_rounds(
    run: Run, worker: Any, profile: Profile, batches_of: Callable[[int], Sequence[Batch]]
) -> None:
    """Asks the batches of a seed, and shrinks what fails; again with the next seed, until the time
    of the profile is over.
    """
    begin, seed = time.monotonic(), run.seed
    while True:
        batches = batches_of(seed)
        run.ask(worker, [plan for batch in batches for plan in batch.plans])
        run.mark("shrinking")
        shrink_all(run, worker, batches, profile)
        seed += 1
        over = profile.time_box_s is None or time.monotonic() - begin > profile.time_box_s
        if over or run.given_up:
            return
        run.mark("plans")


def shrink_all(run: Run, worker: Any, batches: Sequence[Batch], profile: Profile) -> None:
    """Shrinks each failing rule, those included that fail for the first time while others are
    shrunk.
    """
    left, done = profile.shrink_in_all, set()
    while True:
        failing = [id_ for id_, tally in run.tallies.items() if tally.news and id_ not in done]
        if not failing:
            return
        rule = failing[0]
        done.add(rule)
        spent = _shrink(run, worker, rule, batches, min(left, profile.shrink_per_rule))
        left -= spent
        run.shrunk(rule, spent)


def _shrink(run: Run, worker: Any, rule: str, batches: Sequence[Batch], budget: int) -> int:
    """Looks for a smaller plan that fails the rule as badly; returns what that cost.

    Hypothesis shrinks within the kind of plan that failed. What it leaves at a value for no reason
    (the last plan of a kind whose simplest is not reachable from there) is then simplified, key by
    key.
    """
    from ..plan import strategies

    tally = run.tallies[rule]
    assert tally.news is not None, "rules without news are not shrunk"
    search = _Search(run, worker, tally, tally.news, budget)
    for batch in batches:
        if any(search.is_known_to_fail(plan) for plan in batch.plans):
            strategies.smallest(batch.strategy, search, batch.draws, batch.seed)
            break
    search.begun, search.budget = True, search.spent + _RESET_BUDGET
    failing = [
        plan for plan in tally.findings if plan is not None and search.is_known_to_fail(plan)
    ]
    for candidates in (failing, [plan for plan in failing if not plan.views]):
        if candidates:
            smallest = min(candidates, key=weight)
            search.reset_keys(smallest, run.simplest(worker, smallest))
    return search.spent


@dataclass
class _Search:
    """Whether a plan fails one rule as badly as the worst so far: the question that Hypothesis
    asks.

    No plan is asked of the producer before Hypothesis has drawn its way to a failure that is known,
    none twice, and none when the budget is spent.
    """

    run: Run
    worker: Any
    tally: Tally
    outcome: Outcome
    budget: int
    spent: int = 0
    begun: bool = False

    def __call__(self, plan: Plan) -> bool:
        if self.begun and plan not in self.run.answers and self.spent < self.budget:
            self.run.ask(self.worker, [plan])
            answer = self.run.answers.get(plan)
            self.spent += _SHRINK_COST.get(answer.kind, 1) if answer is not None else 0
        fails = self.is_known_to_fail(plan)
        self.begun = self.begun or fails
        return fails

    def reset_keys(self, plan: Plan, simplest: Plan) -> None:
        """Gives each key its value in the simplest plan for which the plan still fails, but for an
        element type that a huge plan could need more memory for.
        """
        for key, value in simplest.items():
            try:
                simpler = plan.replaced(**{key: value})
            except ValueError:  # another key depends on this one
                continue
            grows = plan.fill is None and simpler.nbytes > plan.nbytes
            if simpler != plan and not grows and self(simpler):
                plan = simpler
        for simpler in self.run.simplifications(plan):
            if self(simpler):
                return

    def is_known_to_fail(self, plan: Plan) -> bool:
        """The same, from known answers."""
        verdict = self.tally.findings.get(plan)
        return verdict is not None and verdict.outcome is self.outcome
