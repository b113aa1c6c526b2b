"""The engine: asks a producer many plans, collects verdicts rule by rule, and makes each failure
small.

A run has three parts. First the *plans*: the declared capabilities one by one, then plans drawn by
Hypothesis (`strategies`), all of them fixed before the producer is touched. Then the *shrinking*:
for each rule that failed, Hypothesis looks for the smallest plan that fails it in the same way;
every plan is asked at most once, and the number of new ones is bounded, not the time, so that two
runs do the same. Last the *summary*: a rule's outcome is the worst of its verdicts.

Hypothesis is imported only when plans are drawn: `replay` and `check` work without it.
"""

from __future__ import annotations

import os
import platform
import random
import re
import shlex
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import catalogue, producers
from .abi.device import Devices, TableAccess
from .catalogue import Rule
from .consumer import Consumer, version_of
from .driver import PLAN_LIMIT_S, Description, LocalWorker, Result, Worker
from .events import EventLog, Listener
from .known import KnownFailures
from .outcomes import FAILED, Outcome, Verdict, worst
from .pinned import Pinned, State, declined_error, pinned_by_rule
from .plan import Plan
from .producer import Capabilities
from .report import SCHEMA, Report
from .targets import CannotLoad, load, name_of
from .version import __version__

if TYPE_CHECKING:
    from .strategies import Declared

__all__ = [
    "PROFILES",
    "Profile",
    "check",
    "check_plans",
    "check_producer",
    "profile_names",
    "replay",
]

SUITE_NAME = "gridbuf-conformance"


@dataclass(frozen=True)
class Profile:
    """How much a run asks: plans of each kind (`strategies`), and new plans that shrinking may ask.

    `time_box_s`: instead of one round with seed 0, rounds with new seeds until this time has
    passed.
    """

    name: str
    general: int
    boundary: int
    rank: int
    huge: int
    shrink_per_rule: int
    shrink_in_all: int
    time_box_s: float | None = None


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("smoke", 40, 30, 8, 6, shrink_per_rule=25, shrink_in_all=200),
        Profile("default", 200, 120, 16, 16, shrink_per_rule=150, shrink_in_all=1500),
        Profile("thorough", 2000, 1200, 60, 40, shrink_per_rule=600, shrink_in_all=10_000),
        Profile("soak", 600, 400, 30, 20, 300, 3000, time_box_s=15 * 60.0),
    )
}
"""By name. The first three are the same on every run; "soak" takes a new seed each time and reports
it.
"""

_FINDINGS = FAILED | {Outcome.ADVISORY, Outcome.ERROR}
_ON_RECORD = (Outcome.XFAIL, Outcome.XPASS)
_REMARKS = {
    State.UNJUDGED: "could not be judged here: it is neither confirmed nor stale",
    State.DECLINED: "matches nothing: its plan is declined; renew it with known --update",
    State.OTHERWISE: "is not the one that is found there now; renew it with known --update",
}
_TIMEOUTS_TAKEN = 3
_CRASHES_TAKEN = 12
_RESET_BUDGET = 16
_SHRINK_COST = {"crash": 4, "unstable": 8, "timeout": 40}
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def profile_names() -> tuple[str, ...]:
    """The names that `profile` may have."""
    return tuple(PROFILES)


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
    chosen = PROFILES.get(profile)
    if chosen is None:
        raise ValueError(f"profile is {profile!r}, must be one of {', '.join(PROFILES)}; pick one")
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

    `profile` is what the report calls the run.
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
    """Judges a live object in this process, by what its interfaces say of themselves and of each
    other.

    Nothing was asked of anybody, so the rules that compare with a plan are UNSUPPORTED. No address
    is followed that the rules on its description reject.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile is {profile!r}, must be one of {', '.join(PROFILES)}; pick one")
    selected = catalogue.select(_patterns(rules, None))
    run = Run(selected, "", profile, 0, EventLog(on_event))
    run.start(_description_of_object(obj))
    devices = Devices(None if device_table is None else lambda: device_table)
    if device_table is not None:
        TableAccess(device_table)  # a capsule that is no table is the caller's mistake
    if selected:
        run.look_at(obj, devices)
    return run.finish()


# -- one run ---------------------------------------------------------------------------


@dataclass
class _Tally:
    """What is known of one rule so far."""

    rule: Rule
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    notes: dict[Outcome, Counter[str]] = field(default_factory=dict)
    findings: dict[Plan | None, Verdict] = field(default_factory=dict)
    known: Pinned | None = None

    def add(self, plan: Plan | None, verdict: Verdict) -> Verdict:
        """Takes in a verdict; returns what it is in view of the failures on record."""
        if self.known is not None:
            verdict = self.known.seen(plan, verdict)
        self.record(plan, verdict)
        return verdict

    def record(self, plan: Plan | None, verdict: Verdict) -> None:
        """Takes in a verdict as it is."""
        self.outcomes[verdict.outcome] += 1
        if verdict.note:
            self.notes.setdefault(verdict.outcome, Counter())[verdict.note] += 1
        is_replay = verdict.outcome is Outcome.XFAIL and bool(verdict.note)
        if verdict.outcome in _FINDINGS or is_replay:
            self.findings[plan] = verdict

    @property
    def outcome(self) -> Outcome:
        return worst(self.outcomes)

    @property
    def news(self) -> Outcome | None:
        """The worst finding that is not on record: what is worth a smaller plan."""
        found = {verdict.outcome for verdict in self.findings.values()}.difference(_ON_RECORD)
        return worst(found) if found else None

    @property
    def note(self) -> str:
        """The reason given most often for this outcome."""
        common = self.notes.get(self.outcome, Counter()).most_common(1)
        return common[0][0] if common else ""

    @property
    def plans_judged(self) -> int:
        """On how many plans the rule could say something of its own."""
        silent = (Outcome.UNSUPPORTED, Outcome.UNTESTED, Outcome.BLOCKED)
        return sum(n for outcome, n in self.outcomes.items() if outcome not in silent)

    def smallest_failures(self) -> list[tuple[Plan | None, Verdict]]:
        """The smallest finding of each outcome, worst outcome first; of those on record, each."""
        by_outcome: dict[Outcome, list[tuple[Plan | None, Verdict]]] = {}
        for plan, verdict in self.findings.items():
            by_outcome.setdefault(verdict.outcome, []).append((plan, verdict))
        ordered = []
        while by_outcome:
            outcome = worst(by_outcome)
            found = sorted(by_outcome.pop(outcome), key=lambda found: _weight(found[0]))
            ordered += found if outcome in _ON_RECORD else found[:1]
        return ordered


class Run:
    """The state of one run: verdicts by rule, answers by plan, events."""

    replay_options: tuple[str, ...] = ()

    def __init__(
        self, rules: Sequence[Rule], written: str, profile: str, seed: int, log: EventLog
    ) -> None:
        self.tallies = {rule.id: _Tally(rule) for rule in rules}
        self._selected = list(self.tallies)
        self.seed = seed
        self.answers: dict[Plan, Result] = {}
        self._kinds: Counter[str] = Counter()
        self._last_shown: tuple[Plan, dict[str, Any]] | None = None
        self._unforeseen: Counter[str] = Counter()
        self._written = written
        self._profile = profile
        self._log = log
        self._groups = _groups(rules)
        self._notes: list[str] = []
        self._pinned: set[Plan] = set()
        self._marks = [("start", time.perf_counter())]
        self._asked, self._of = 0, 0

    # -- the stream --------------------------------------------------------------------

    def start(self, description: Description) -> None:
        """The producer is there; says so."""
        self._log.emit(
            "start",
            schema=SCHEMA,
            suite={"name": SUITE_NAME, "version": suite_version()},
            target={
                key: getattr(description, key)
                for key in ("name", "version", "side", "python", "platform")
            },
            profile=self._profile,
            seed=self.seed,
            rules=list(self.tallies),
        )
        self.mark("plans")

    def mark(self, phase: str) -> None:
        """From here on, time counts for this phase."""
        self._marks.append((phase, time.perf_counter()))

    def note(self, text: str) -> None:
        """Something the reader of the report must know, once."""
        if text not in self._notes:
            self._notes.append(text)

    def finish(self) -> Report:
        """Writes the rules' outcomes and the end, and renders the report."""
        for tally in self.tallies.values():
            self._settle_known(tally)
        for tally in self.tallies.values():
            self._log.emit("rule", **self._rule_entry(tally))
        counts = Counter(tally.outcome for tally in self.tallies.values())
        self._log.emit(
            "end",
            summary={str(outcome): counts[outcome] for outcome in Outcome if counts[outcome]},
            plans=dict(sorted(self._kinds.items())),
            notes=self._notes,
            timing=self._timing(),
        )
        return Report.of(self._log.events)

    def _timing(self) -> dict[str, float]:
        """Seconds in all and by phase, and plans per second: the only part that differs between
        runs.
        """
        self.mark("")
        timing = {"total_s": round(self._marks[-1][1] - self._marks[0][1], 3)}
        for (phase, begin), (_, end) in zip(self._marks, self._marks[1:]):
            timing[f"{phase}_s"] = round(timing.get(f"{phase}_s", 0.0) + end - begin, 3)
        timing["plans_per_s"] = round(len(self.answers) / max(timing["total_s"], 1e-3), 1)
        return timing

    def _rule_entry(self, tally: _Tally) -> dict[str, Any]:
        return {
            "id": tally.rule.id,
            "level": tally.rule.level,
            "outcome": str(tally.outcome),
            "plans": tally.plans_judged,
            "failures": [self._failure(tally, *found) for found in tally.smallest_failures()],
            "note": "" if tally.findings else tally.note,
        }

    def _failure(self, tally: _Tally, plan: Plan | None, verdict: Verdict) -> dict[str, Any]:
        command = ["gridbuf-conformance", "replay", *self.replay_options]
        command += [self._written, tally.rule.id]
        return {
            "plan": plan.to_dict() if plan is not None else None,
            "outcome": str(verdict.outcome),
            "expected": verdict.expected,
            "actual": verdict.actual,
            "note": verdict.note,
            "drawing": verdict.drawing,
            "replay": shlex.join([*command, plan.to_json(brief=True)]) if plan is not None else "",
        }

    # -- asking ------------------------------------------------------------------------

    def ask(self, worker: Any, plans: Iterable[Plan]) -> None:
        """Asks the plans that were not asked before, and takes in what they come to."""
        new = [plan for plan in dict.fromkeys(plans) if plan not in self.answers]
        self._of += len(new)
        for plan, result in worker.run_all(self.affordable(new), self._groups):
            self._take(plan, result)

    def affordable(self, plans: Sequence[Plan]) -> Iterable[Plan]:
        """The plans, as long as the producer neither hangs nor dies time and again, and memory
        suffices.
        """
        for plan in plans:
            too_often = self.given_up
            if too_often:
                self.note(f"{too_often}; the plans after that were not asked")
                return
            if plan.fill is None and 2 * plan.nbytes > _memory_bytes():
                self._untested(plan, "this machine has less memory than twice the array asked for")
            else:
                yield plan

    @property
    def given_up(self) -> str:
        """Why no more plans are asked, or an empty string."""
        kinds = self._unforeseen
        if kinds["timeout"] >= _TIMEOUTS_TAKEN:
            return f"{kinds['timeout']} plans hung"
        dead = kinds["crash"] + kinds["unstable"]
        return f"the process died on {dead} plans" if dead >= _CRASHES_TAKEN else ""

    def _take(self, plan: Plan, result: Result) -> None:
        self.remember(plan, result)
        self._asked += 1
        shown = self._shown(plan)
        self._log.emit("plan", n=self._asked, of=self._of, plan=shown, result=result.kind)
        for rule, verdict in self.verdicts(plan, result).items():
            self.take_verdict(rule, plan, verdict)

    def verdicts(self, plan: Plan | None, result: Result) -> dict[str, Verdict]:
        """What each selected rule says of what a plan came to."""
        return _verdicts(plan, result, self._selected)

    def simplifications(self, plan: Plan) -> Iterable[Plan]:
        """Plans to try last, the simplest first; what makes a plan of this run easier to read."""
        return ()

    def simplest(self, worker: Any, plan: Plan) -> Plan:
        """What a failing plan is compared with, key by key, to make it smaller."""
        from .strategies import simplest_plan

        return simplest_plan(worker.description.capabilities)

    def remember(self, plan: Plan, result: Result) -> None:
        """Keeps what a plan came to, but not what was measured: a hundred kilobytes each time."""
        self.answers[plan] = Result(result.kind, reason=result.reason)
        self._kinds[result.kind] += 1
        self._unforeseen[result.kind] += plan not in self._pinned

    def take_verdict(self, rule: str, plan: Plan | None, verdict: Verdict) -> None:
        """Adds one verdict; a rule that was not selected joins if it kept the others from being
        judged.
        """
        if rule not in self.tallies:
            if not verdict.failed:
                return
            self.tallies[rule] = _Tally(catalogue.load()[rule])
            self.note(f"{rule} was not selected; its failure kept selected rules from being judged")
        verdict = self.tallies[rule].add(plan, verdict)
        if verdict.outcome in _FINDINGS:
            self._log.emit(
                "verdict",
                rule=rule,
                outcome=str(verdict.outcome),
                plan=self._shown(plan),
                expected=verdict.expected,
                actual=verdict.actual,
            )

    def _shown(self, plan: Plan | None) -> dict[str, Any] | None:
        """The plan in events: one dict for all the events of a plan, for there are many of both."""
        if plan is None:
            return None
        if self._last_shown is None or self._last_shown[0] is not plan:
            self._last_shown = plan, plan.to_dict()
        return self._last_shown[1]

    def _untested(self, plan: Plan, reason: str) -> None:
        self.remember(plan, Result("untested", reason=reason))
        for tally in self.tallies.values():
            tally.add(plan, Verdict(Outcome.UNTESTED, note=reason))

    # -- failures on record ------------------------------------------------------------

    def replay_known(self, worker: Any, known: KnownFailures) -> None:
        """Asks the pinned plans of what is on record for this library; raises KnownError for
        records that match nothing, unless they are to be looked at leniently.
        """
        description = worker.description
        names = (description.name, self._written)
        if not known.lenient:
            known.require_names(description.side, names)
        entries = known.concerning(description.side, names, description.version)
        entries = [one for one in entries if one.rule in self.tallies]
        for rule, pinned in pinned_by_rule(entries).items():
            self.tallies[rule].known = pinned
            self._pinned.update(pinned.plans)
        self.ask(worker, [one.plan for one in entries])
        for tally in self.tallies.values():
            unmatched = tally.known.unmatched() if tally.known is not None else None
            if unmatched is not None and not known.lenient:
                reason = self.answers[unmatched.plan].reason or tally.note
                raise declined_error(unmatched.place, unmatched.rule, reason)

    def _settle_known(self, tally: _Tally) -> None:
        """What is left to say of a rule's records: those that passed to the end, and remarks."""
        if tally.known is None:
            return
        for plan, verdict in tally.known.ended(complete=not self.given_up):
            tally.record(plan, verdict)
        for one in tally.known.entries:
            state = tally.known.states.get(one, State.UNJUDGED)
            found = tally.known.verdicts.get(one, Verdict(Outcome.UNTESTED))
            self._log.emit(
                "known",
                rule=one.rule,
                place=one.place,
                plan=one.plan.to_dict(),
                state=state,
                outcome=str(found.outcome),
                actual=found.actual,
                note=found.note,
            )
            remarks = [_REMARKS[state]] if state in _REMARKS else []
            remarks += [] if one.reason else ["has no reason; add one"]
            for remark in remarks:
                self.note(f"{one.rule}: the failure on record ({one.place}) {remark}")

    def look_at(self, obj: Any, devices: Devices) -> None:
        """Measures and judges a live object."""
        from .measure import observe

        try:
            observation = observe(obj, None, groups=self._groups, devices=devices)
            result = Result("observation", observation)
        except Exception:
            result = Result("error", reason=traceback.format_exc())
        for rule, verdict in self.verdicts(None, result).items():
            self.take_verdict(rule, None, verdict)

    def judge_exit(self, end: Result | None) -> None:
        """A process that dies while it ends is the producer's doing as well."""
        if end is not None:
            for rule, verdict in _verdicts_of_death(end, self._selected, Outcome.CRASH).items():
                if verdict.failed:
                    self.take_verdict(rule, None, verdict)

    def shrunk(self, rule: str, asked: int) -> None:
        """Says which plan a rule's failure came down to."""
        tally = self.tallies[rule]
        plan, verdict = next(
            found for found in tally.smallest_failures() if found[1].outcome is tally.news
        )
        self._log.emit(
            "shrunk",
            rule=rule,
            outcome=str(verdict.outcome),
            plan=plan.to_dict() if plan is not None else None,
            asked=asked,
        )


# -- plans and shrinking ---------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Plans drawn together: what is needed to draw them again when one of them is to be shrunk."""

    strategy: Any
    draws: int
    seed: int
    plans: tuple[Plan, ...]


def _ask_rounds(run: Run, worker: Any, profile: Profile) -> None:
    from .strategies import declared_plans

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
    """The plans of one round. Drawing takes about half of a smoke run, so that producers that declare alike share it."""
    from . import strategies

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
    """A declared capability that was refused on every plan is a broken promise (GT-20)."""
    for capability in declared:
        answers = [run.answers[p] for p in run.answers if capability.used_by(p)]
        if "GT-20" in run.tallies and all(answer.kind == "unsupported" for answer in answers):
            verdict = Verdict(
                Outcome.FAIL,
                expected=f"what is declared ({capability.name}) is made at least once",
                actual=f"declined on all {len(answers)} plans that use it: "
                f"{scrubbed(run.answers[capability.plan].reason)}",
            )
            run.take_verdict("GT-20", capability.plan, verdict)


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
    from . import strategies

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
            smallest = min(candidates, key=_weight)
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
    tally: _Tally
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
        """Gives each key its value in the simplest plan for which the plan still fails."""
        for key, value in simplest.items():
            try:
                simpler = plan.replaced(**{key: value})
            except ValueError:  # another key depends on this one
                continue
            if simpler != plan and self(simpler):
                plan = simpler
        for simpler in self.run.simplifications(plan):
            if self(simpler):
                return

    def is_known_to_fail(self, plan: Plan) -> bool:
        """The same, from what is known already."""
        verdict = self.tally.findings.get(plan)
        return verdict is not None and verdict.outcome is self.outcome


def _weight(plan: Plan | None) -> tuple[Any, ...]:
    """Smaller for plans that are easier to read: the order among failures of one rule."""
    if plan is None:
        return (0,)
    changed = sum(plan[key] != default for key, default in Plan().items())
    text = plan.to_json(brief=True)
    parts = changed + len(plan.views) + abs(plan.ndim - 1)
    return (1, parts, sum(plan.shape), len(text), text)


# -- verdicts of what is no observation ------------------------------------------------


def _verdicts(plan: Plan | None, result: Result, rules: list[str]) -> dict[str, Verdict]:
    """What each selected rule says of a result, be it an observation or none."""
    if result.kind == "observation":
        return _judged(result.observation or {}, plan, rules)
    if result.kind == "unsupported":
        declined = Verdict(Outcome.UNSUPPORTED, note=scrubbed(result.reason))
        return dict.fromkeys(rules, declined)
    if result.kind == "raised":
        return _verdicts_of_raising(result, rules)
    if result.kind == "error":
        return dict.fromkeys(rules, suite_error(result.reason))
    if plan is not None and plan.fill is None and "SIGKILL" in result.reason:
        reason = "the system ended the process, probably for want of memory"
        return dict.fromkeys(rules, Verdict(Outcome.UNTESTED, note=reason))
    return _verdicts_of_death(result, rules, Outcome(result.kind.upper()), plan)


def _judged(observation: dict[str, Any], plan: Plan | None, rules: list[str]) -> dict[str, Verdict]:
    from .judge import judge

    return guarded(lambda: judge(observation, plan, rules), rules)


def guarded(judged: Callable[[], dict[str, Verdict]], rules: list[str]) -> dict[str, Verdict]:
    """The verdicts of a judge; if it raises itself, each rule has the suite's own ERROR."""
    try:
        return judged()
    except Exception:
        return dict.fromkeys(rules, suite_error(traceback.format_exc()))


def suite_error(text: str) -> Verdict:
    """The suite's own fault: the last line of a traceback says what, its innermost frame where."""
    last = text.strip().splitlines()[-1]
    places = re.findall(r'File "(?:.*/)?([^/"]+)", line (\d+)', text)
    where = f" ({places[-1][0]}:{places[-1][1]})" if places else ""
    return Verdict(Outcome.ERROR, expected="the suite itself works", actual=scrubbed(last) + where)


def _verdicts_of_raising(result: Result, rules: list[str]) -> dict[str, Verdict]:
    """`produce` raised: it neither gave what was asked nor declined (GT-20); nothing else can be
    said.
    """
    broken = Verdict(
        Outcome.FAIL,
        expected="produce returns an object, or Unsupported(reason)",
        actual=f"produce raised {scrubbed(result.reason)}",
    )
    blocked = Verdict(Outcome.BLOCKED, note="GT-20: produce raised")
    return {**dict.fromkeys(rules, blocked), "GT-20": broken}


def _verdicts_of_death(
    result: Result, rules: list[str], outcome: Outcome, plan: Plan | None = None
) -> dict[str, Verdict]:
    """The process died or hung: that counts against its step, and hides everything else."""
    from .judge import STEP_RULES

    prefix = result.step.partition(":")[0]
    blamed = STEP_RULES.get(result.step) or STEP_RULES.get(prefix) or ("GT-20",)
    if prefix == "dp" and plan is not None and plan.dtype_info.dlpack is None:
        blamed = ("DP-25",)  # what DLPack has no word for had to be refused
    broken = Verdict(
        outcome, expected="the process answers and lives on", actual=scrubbed(result.reason)
    )
    blocked = Verdict(Outcome.BLOCKED, note=f"{blamed[0]}: the process ended at step {result.step}")
    return {**dict.fromkeys(rules, blocked), **dict.fromkeys(blamed, broken)}


# -- small things ----------------------------------------------------------------------


def suite_version() -> str:
    """The version of this distribution."""
    return __version__


def opened(
    producer: Any, isolate: bool, time_limit_s: float, side: str = "producer"
) -> Worker | LocalWorker:
    """A started worker; without isolation, classes and objects are taken as they are."""
    if side == "consumer" and sys.platform == "win32":
        raise CannotLoad("offers to consumers need mmap and mprotect, absent on Windows; use Linux")
    if isolate:
        return Worker(name_of(producer, side), time_limit_s=time_limit_s)
    if isinstance(producer, str):
        return LocalWorker(load(name_of(producer, side)))
    if isinstance(producer, Consumer):
        return LocalWorker(producer)
    if side == "consumer":
        return LocalWorker(Consumer(producer, shown(producer, side), version_of(producer)))
    return LocalWorker(producer() if isinstance(producer, type) else producer)


def shown(producer: Any, side: str = "producer") -> str:
    """How reports and replay commands name what is judged: as a person would write it."""
    try:
        return name_of(producer, side).shown
    except CannotLoad:
        kind = producer if isinstance(producer, type) else type(producer)
        return f"{kind.__module__}:{kind.__qualname__}"


def _patterns(rules: str | Iterable[str] | None, producer: Any) -> str | None:
    if rules is None and isinstance(producer, str) and producer in producers.BUILT_IN:
        return producers.BUILT_IN[producer].rules
    return rules if rules is None or isinstance(rules, str) else ",".join(rules)


def _groups(rules: Sequence[Rule]) -> frozenset[str]:
    """The rule groups that must be measured: those of the rules and of all their preconditions."""
    known, groups, pending = catalogue.load(), set(), [rule.id for rule in rules]
    seen = set(pending)
    while pending:
        rule = known[pending.pop()]
        groups.add(rule.group)
        pending += [id_ for id_ in rule.preconditions if id_ not in seen]
        seen.update(rule.preconditions)
    if groups & {"XA", "GT"}:
        groups |= {rule.group for rule in known.values() if rule.in_scope}
    return frozenset(groups)


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


def _memory_bytes() -> int:
    if not hasattr(os, "sysconf"):  # Windows: not known, so no large array is asked for
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def scrubbed(text: str) -> str:
    """A reason without what differs from run to run: addresses, and the folders of files."""
    text = _ADDRESS.sub("0x…", text)
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)
