"""One run from its options to its report, the same for both sides: start, plans, end."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..known import KnownFailures
from ..plan import Plan
from ..plan.profiles import DEFAULT, PLAN_LIMIT_S, profile_of
from ..render.events import EventLog, Listener
from ..render.report import Report
from ..rules import catalogue
from ..rules.scope import Scope, chosen
from ..targets import shown
from .driver import opened
from .run import Run


@dataclass(frozen=True)
class Options:
    """How a target is judged. The function `check_producer` of the API says what each option is."""

    profile: str = DEFAULT
    rules: str | Iterable[str] | None = None
    isolate: bool = True
    seed: int | None = None
    time_limit_s: float = PLAN_LIMIT_S
    known: KnownFailures | None = None
    storage: bool = False
    threads: bool = False
    spec: str | Iterable[str] | None = None
    on_event: Listener | None = None


def patterns(rules: str | Iterable[str] | None) -> str | None:
    """A selection of rules as one text."""
    return rules if rules is None or isinstance(rules, str) else ",".join(rules)


def run_profile(kind: type[Run], target: Any, options: Options) -> Report:
    """Judges a target on the plans of a profile.

    Raises CannotLoad if the target cannot be loaded, ValueError for a profile or a rule that is
    unknown, KnownError for a record that matches nothing.
    """
    profile, seed = profile_of(options.profile), options.seed
    if profile.time_box_s is not None and seed is None:
        seed = random.SystemRandom().randrange(2**32)
    rules = patterns(kind.default_rules(target) if options.rules is None else options.rules)
    options = replace(options, threads=profile.threads)
    run = _begun(kind, target, rules, profile.name, seed or 0, options)
    with opened(target, options.isolate, options.time_limit_s, kind.side) as worker:
        run.start(worker.description)
        if run.tallies:
            run.replay_known(worker, options.known or KnownFailures())
            run.ask_profile(worker, profile)
            run.judge_exit(worker.close())
    return run.finish()


def run_plans(kind: type[Run], target: Any, plans: Iterable[Plan], options: Options) -> Report:
    """Judges a target on exactly these plans: draws, shrinks and finds out nothing. No Hypothesis.

    The profile is the name of the run in the report.
    """
    run = _begun(kind, target, patterns(options.rules), options.profile, 0, options)
    with opened(target, options.isolate, options.time_limit_s, kind.side) as worker:
        run.start(worker.description)
        run.ask(worker, plans)
        run.judge_exit(worker.close())
    return run.finish()


def _begun(
    kind: type[Run], target: Any, rules: str | None, profile: str, seed: int, options: Options
) -> Run:
    selected = catalogue.select(rules, kind.side)
    run = kind(selected, shown(target, kind.side), profile, seed, EventLog(options.on_event))
    run.restrict(Scope(options.storage, chosen(options.spec)))
    if options.threads and kind.side == "producer":
        run.race()
    return run
