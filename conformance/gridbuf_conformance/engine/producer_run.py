"""The run of a producer: sends it many plans, collects the verdicts of each rule, and shrinks each failure.

A run has three parts. First the *plans*: the declared capabilities one by one, then plans drawn by
Hypothesis (`strategies`), all of them fixed before the producer is touched. Then the *shrinking*
(`shrink`). Last the *summary* (`run`).

Hypothesis is imported only when plans are drawn: `replay` and `check` work without it.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .. import producers
from ..abi.device import Devices, TableAccess
from ..known import KnownFailures
from ..outcomes import Outcome, Verdict
from ..plan import Plan
from ..plan.producer import Capabilities
from ..plan.profiles import Profile, profile_of
from ..render.events import EventLog, Listener
from ..render.report import Report
from ..rules import catalogue
from ..targets import shown
from .driver import PLAN_LIMIT_S, Description, opened
from .results import scrubbed
from .run import Run
from .shrink import Batch, shrink_all

if TYPE_CHECKING:
    from ..plan.strategies import Declared

__all__ = ["check", "check_plans", "check_producer", "replay"]


def check_producer(
    producer: Any,
    *,
    profile: str = "smoke",
    rules: str | Iterable[str] | None = None,
    isolate: bool = True,
    seed: int | None = None,
    time_limit_s: float = PLAN_LIMIT_S,
    known: KnownFailures | None = None,
    on_event: Listener | None = None,
) -> Report:
    """Judges a producer on the plans of a profile.

    `producer` is a written target (`targets`) or a producer class; without isolation also an
    object. `rules` selects by ids and wildcards ("DL-*,XA-03"); None takes all, or what the
    producer's registry entry says. `seed` varies the plans. `time_limit_s` bounds each plan. `known`
    are failures on record, whose plans are asked first (`known`).

    Raises CannotLoad if the producer cannot be loaded, ValueError for a profile or a rule that is
    unknown, KnownError for a record that matches nothing.
    """
    chosen = profile_of(profile)
    selected = catalogue.select(_patterns(rules, producer))
    if chosen.time_box_s is not None and seed is None:
        seed = random.SystemRandom().randrange(2**32)
    run = Run(selected, shown(producer), chosen.name, seed or 0, EventLog(on_event))
    with opened(producer, isolate, time_limit_s) as worker:
        run.start(worker.description)
        if selected:
            run.replay_known(worker, known or KnownFailures())
            _ask_rounds(run, worker, chosen)
            run.judge_exit(worker.close())
    return run.finish()


def replay(
    producer: str | type | Any,
    rule: str,
    plan: Plan,
    *,
    isolate: bool = True,
    time_limit_s: float = PLAN_LIMIT_S,
    on_event: Listener | None = None,
) -> Report:
    """Judges one rule (or a pattern of rules) on one plan; raises as `check_producer`. No
    Hypothesis.
    """
    return check_plans(
        producer,
        [plan],
        rules=rule,
        profile="replay",
        isolate=isolate,
        time_limit_s=time_limit_s,
        on_event=on_event,
    )


def check_plans(
    producer: str | type | Any,
    plans: Iterable[Plan],
    *,
    rules: str | None = None,
    profile: str = "plans",
    isolate: bool = True,
    time_limit_s: float = PLAN_LIMIT_S,
    on_event: Listener | None = None,
) -> Report:
    """Judges a producer on exactly these plans; nothing is drawn or shrunk. Raises as
    `check_producer`.

    `profile` is the name of the run in the report.
    """
    run = Run(catalogue.select(rules), shown(producer), profile, 0, EventLog(on_event))
    with opened(producer, isolate, time_limit_s) as worker:
        run.start(worker.description)
        run.ask(worker, plans)
        run.judge_exit(worker.close())
    return run.finish()


def check(
    obj: Any,
    *,
    rules: str | Iterable[str] | None = None,
    profile: str = "default",
    device_table: Any = None,
    on_event: Listener | None = None,
) -> Report:
    """Judges a live object in this process: each interface, and the agreement of
    the interfaces.

    There is no plan, so the rules that compare with a plan are UNSUPPORTED. No address
    is followed that the rules on its description reject.
    """
    profile_of(profile)  # raises where there is none
    selected = catalogue.select(_patterns(rules, None))
    run = Run(selected, "", profile, 0, EventLog(on_event))
    run.start(_description_of_object(obj))
    devices = Devices(None if device_table is None else lambda: device_table)
    if device_table is not None:
        TableAccess(device_table)  # a capsule that is not a table is a mistake of the caller
    if selected:
        run.look_at(obj, devices)
    return run.finish()


def _ask_rounds(run: Run, worker: Any, profile: Profile) -> None:
    from ..plan.strategies import declared_plans

    can = worker.description.capabilities
    declared = declared_plans(can)
    run.ask(worker, [capability.plan for capability in declared])
    begin, round_number = time.monotonic(), 0
    while True:
        batches = _ask_round(run, worker, can, profile, run.seed + round_number)
        run.mark("shrinking")
        shrink_all(run, worker, batches, profile)
        round_number += 1
        over = profile.time_box_s is None or time.monotonic() - begin > profile.time_box_s
        if over or run.given_up:
            break
        run.mark("plans")
    if not run.given_up:
        _judge_declared(run, declared)


def _ask_round(
    run: Run, worker: Any, can: Capabilities, profile: Profile, seed: int
) -> tuple[Batch, ...]:
    batches = _batches(can, profile, seed)
    run.ask(worker, [plan for batch in batches for plan in batch.plans])
    return batches


@lru_cache(maxsize=8)
def _batches(can: Capabilities, profile: Profile, seed: int) -> tuple[Batch, ...]:
    """The plans of one round. Drawing takes about half of a smoke run, so producers with the same capabilities share the plans."""
    from ..plan import strategies

    wanted = (
        (strategies.general_plans(can), profile.general),
        (strategies.boundary_plans(can), profile.boundary),
        (strategies.rank_plans(can), profile.rank),
        (strategies.huge_plans(can), profile.huge),
    )
    return tuple(
        Batch(
            strategy,
            strategies.DRAWS_PER_PLAN * count,
            seed,
            tuple(strategies.sample(strategy, count, seed)),
        )
        for strategy, count in wanted
        if strategy is not None
    )


def _judge_declared(run: Run, declared: Sequence[Declared]) -> None:
    """A declared capability that was declined on every plan fails GT-20."""
    for capability in declared:
        answers = [run.answers[p] for p in run.answers if capability.used_by(p)]
        if "GT-20" in run.tallies and all(answer.kind == "unsupported" for answer in answers):
            verdict = Verdict(
                Outcome.FAIL,
                expected=f"the declared capability ({capability.name}) is made at least once",
                actual=f"declined on all {len(answers)} plans that use it: "
                f"{scrubbed(run.answers[capability.plan].reason)}",
            )
            run.take_verdict("GT-20", capability.plan, verdict)


def _patterns(rules: str | Iterable[str] | None, producer: Any) -> str | None:
    if rules is None and isinstance(producer, str) and producer in producers.BUILT_IN:
        return producers.BUILT_IN[producer].rules
    return rules if rules is None or isinstance(rules, str) else ",".join(rules)


def _description_of_object(obj: Any) -> Description:
    kind = type(obj)
    top = kind.__module__.partition(".")[0]
    version = getattr(sys.modules.get(top), "__version__", "")
    return Description(
        name=f"{kind.__module__}.{kind.__qualname__}",
        version=version if isinstance(version, str) else "",
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}".lower(),
        capabilities=Capabilities(),
    )
