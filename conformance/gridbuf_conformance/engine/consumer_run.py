"""The run of a consumer: like the run of a producer, with exports instead of plans.

First the run finds out which interfaces the consumer takes, with the simplest exports of each
interface. If the consumer refuses them, the rules of the interface are UNSUPPORTED with that
reason, unless the consumer is documented to take it. Then come the listed exports, one array after
another through every variant, then drawn exports. Failures are shrunk as in the run of a producer.

A consumer that dies on one kind of export (`Export.kind`: a variant, negative strides) dies every time.
After two deaths the run skips that kind, so that it reaches the other kinds.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..exports import Export, Interface, interfaces, variants_about
from ..exports.drawing import drawn, first_exports, listed
from ..info import ConsumerObservation
from ..known import KnownFailures
from ..outcomes import Outcome, Verdict, graded
from ..plan import Plan
from ..plan.profiles import Profile, profile_of
from ..render.events import EventLog, Listener
from ..render.report import Report
from ..rules import catalogue
from ..rules.catalogue import Rule
from ..targets import shown
from .driver import PLAN_LIMIT_S, Result, opened
from .results import guarded, scrubbed, suite_error
from .run import Run
from .shrink import Batch, shrink_all

__all__ = ["check_consumer", "check_exports", "replay"]

_DEATHS_OF_A_KIND = 2
_DEATHS_OF_A_KIND_WHILE_SHRINKING = 12
_DEATHS_IN_ALL = 60
_TIMEOUTS_IN_ALL = 6
_EXPORTS_OF_THE_RESULT = frozenset(
    {"probe", "ai", "as", "cai", "pb", "dp", "dl", "dx", "gt", "eyes"}
)
"""The steps, up to their colon, at which code of the result's own type runs."""
_EXIT_RULE = "DP-32"
"""The rule that fails if a process dies while it ends: no export is active then."""


def check_consumer(
    consumer: Any,
    *,
    profile: str = "smoke",
    rules: str | Iterable[str] | None = None,
    isolate: bool = True,
    seed: int | None = None,
    time_limit_s: float = PLAN_LIMIT_S,
    known: KnownFailures | None = None,
    on_event: Listener | None = None,
) -> Report:
    """Judges a consumer on the exports of a profile.

    `consumer` is a written target (`targets`) or a function of a module; without isolation any
    callable. The rest is as in `producer_run.check_producer`, and so are the errors raised.
    """
    chosen = profile_of(profile)
    patterns = rules if rules is None or isinstance(rules, str) else ",".join(rules)
    selected = catalogue.select(patterns, "consumer")
    if chosen.time_box_s is not None and seed is None:
        seed = random.SystemRandom().randrange(2**32)
    run = ConsumerRun(selected, _shown(consumer), chosen.name, seed or 0, EventLog(on_event))
    with opened(consumer, isolate, time_limit_s, "consumer") as worker:
        run.start(worker.description)
        if selected:
            run.replay_known(worker, known or KnownFailures())
            _ask(run, worker, chosen)
            run.judge_exit(worker.close())
    return run.finish()


def replay(consumer: Any, rule: str, export: Export, **options: Any) -> Report:
    """Judges one rule (or a pattern of rules) on one export. No Hypothesis."""
    return check_exports(consumer, [export], rules=rule, profile="replay", **options)


def check_exports(
    consumer: Any,
    exports: Iterable[Export],
    *,
    rules: str | None = None,
    profile: str = "plans",
    isolate: bool = True,
    time_limit_s: float = PLAN_LIMIT_S,
    on_event: Listener | None = None,
) -> Report:
    """Judges a consumer on exactly these exports; nothing is drawn, shrunk or found out first."""
    selected = catalogue.select(rules, "consumer")
    run = ConsumerRun(selected, _shown(consumer), profile, 0, EventLog(on_event))
    with opened(consumer, isolate, time_limit_s, "consumer") as worker:
        run.start(worker.description)
        run.ask(worker, exports)
        run.judge_exit(worker.close())
    return run.finish()


class ConsumerRun(Run):
    """The state of one run on a consumer."""

    replay_options = ("--consumer",)
    side = "consumer"

    def __init__(
        self, rules: Sequence[Rule], written: str, profile: str, seed: int, log: EventLog
    ) -> None:
        super().__init__(rules, written, profile, seed, log)
        self._dead: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._finding_out = self._is_shrinking = False
        self._refusals: dict[str, str] = {}
        self.taken: list[Interface] = []

    # -- interfaces that the consumer takes --------------------------------------------------

    def find_out(self, worker: Any) -> None:
        """Finds the interfaces that the consumer takes; rules of other interfaces are UNSUPPORTED."""
        documented = worker.description.takes or ()
        for interface in interfaces().values():
            if not self._is_wanted(interface):
                continue
            if interface.unavailable():
                continue
            if interface.base is not None:
                if any(taken.name == interface.base for taken in self.taken):
                    self.taken.append(interface)
                continue
            if self._takes(worker, interface):
                self.taken.append(interface)
            elif interface.name in documented:
                self._refuses_documented(interface)
        self._say_what_is_not_judged()

    def _is_wanted(self, interface: Interface) -> bool:
        """Whether a selected rule tests the interface, or an interface based on it."""
        family = [other for other in interfaces().values() if other.base == interface.name]
        rules = {
            rule
            for member in (interface, *family)
            for variant in member.variants.values()
            for rule in variant.rules
        }
        return bool(rules & self.tallies.keys())

    def _takes(self, worker: Any, interface: Interface) -> bool:
        exports = first_exports(interface)
        for export in exports:
            self._finding_out = True
            self.ask(worker, [export])
            self._finding_out = False
            answer = self.answers.get(export)
            if answer is not None and answer.kind == "taken":
                return True
        first = self.answers.get(exports[0])
        self._refusals[interface.name] = first.reason if first else "it gave no answer"
        return False

    def _refuses_documented(self, interface: Interface) -> None:
        export = first_exports(interface)[0]
        verdict = Verdict(
            Outcome.FAIL,
            expected=f"the simplest export of {interface.name}, which it is documented to take",
            actual=self._refusals[interface.name],
        )
        level = catalogue.load()[interface.taken_rule].level_of("consumer")
        self.take_verdict(interface.taken_rule, export, graded(verdict, level))

    def _say_what_is_not_judged(self) -> None:
        names = {interface.name for interface in self.taken}
        for id_, tally in self.tallies.items():
            about = {interface.name for interface, _ in variants_about(id_)}
            if about & names or tally.outcomes:
                continue
            lacking = [interfaces()[name].unavailable() for name in sorted(about)]
            if lacking and all(lacking):
                tally.add(None, Verdict(Outcome.UNTESTED, note=lacking[0]))
            else:
                tally.add(None, Verdict(Outcome.UNSUPPORTED, note=self._why_not(about)))

    def _why_not(self, names: Iterable[str]) -> str:
        reasons = [f"{name} is not taken: {why}" for name, why in self._refusals.items()]
        about = [reason for reason in reasons if reason.partition(" ")[0] in names]
        return "; ".join(about) or "no interface that the rule is about is taken"

    # -- what an export comes to --------------------------------------------------------------

    def affordable(self, plans: Sequence[Plan]) -> Iterable[Plan]:
        """The exports, but for those of a variant that the consumer died on already."""
        for plan in plans:
            if self.given_up:
                self.note(f"{self.given_up}; the exports after that were not made")
                return
            if not isinstance(plan, Export) or self._dead[plan.kind] < self._deaths_allowed:
                yield plan
            elif not self._is_shrinking:
                self.note(f"{plan.kind}: no more exports after {_DEATHS_OF_A_KIND} deaths")

    def mark(self, phase: str) -> None:
        """From here on, time counts for this phase."""
        super().mark(phase)
        self._is_shrinking = phase == "shrinking"

    @property
    def _deaths_allowed(self) -> int:
        return _DEATHS_OF_A_KIND_WHILE_SHRINKING if self._is_shrinking else _DEATHS_OF_A_KIND

    @property
    def given_up(self) -> str:
        """Why no more exports are made, or an empty string."""
        if self._ended["timeout"] >= _TIMEOUTS_IN_ALL:
            return f"{self._ended['timeout']} exports hung"
        dead = self._ended["crash"] + self._ended["unstable"]
        return f"the process died on {dead} exports" if dead >= _DEATHS_IN_ALL else ""

    def remember(self, plan: Plan, result: Result) -> None:
        """Keeps whether an export was taken, and why not; counts what a variant dies of."""
        kind, reason = result.kind, result.reason
        if isinstance(result.observation, ConsumerObservation):
            kind, reason = _taken_or_refused(result.observation)
        elif isinstance(plan, Export):
            self._dead[plan.kind] += 1
        self._ended[kind] += 1
        super().remember(plan, Result(kind, reason=scrubbed(reason)))

    def verdicts(self, plan: Plan | None, result: Result) -> dict[str, Verdict]:
        """What each selected rule says of what an export came to."""
        from .judge import judge_export

        assert isinstance(plan, Export)
        about = [rule for rule in plan.variant.rules if rule in self.tallies]
        observation = result.observation
        if isinstance(observation, ConsumerObservation):
            if self._finding_out and self.answers[plan].kind != "taken":
                return {}
            return guarded(lambda: judge_export(observation, plan, about), about)
        if result.kind == "error":
            return dict.fromkeys(about, suite_error(result.reason))
        return self._verdicts_of_death(plan, result, about)

    def _verdicts_of_death(
        self, export: Export, result: Result, about: list[str]
    ) -> dict[str, Verdict]:
        """A crash or a hang fails the rule of the active export. It does not if the result crashes
        when the suite reads its exports: that is a failure of a producer, which another run
        judges."""
        if result.step.partition(":")[0] in _EXPORTS_OF_THE_RESULT:
            note = f"the result could not be looked into: {scrubbed(result.reason)}"
            return dict.fromkeys(about, Verdict(Outcome.UNTESTED, note=note))
        from .judge import level_on

        control = export.control
        asked = control if result.step.startswith("control") and control else export
        failing_rule = asked.variant.rules[0]
        broken = Verdict(
            Outcome(result.kind.upper()),
            expected="the process answers and lives on",
            actual=scrubbed(result.reason),
        )
        blocked = Verdict(Outcome.BLOCKED, note=f"{failing_rule}: the process ended on this export")
        level = level_on(catalogue.load()[failing_rule], asked)
        return {**dict.fromkeys(about, blocked), failing_rule: graded(broken, level)}

    def judge_exit(self, end: Result | None) -> None:
        """A process that dies while it ends is a failure of the consumer, too."""
        if end is not None:
            actual = scrubbed(end.reason)
            died = Verdict(Outcome.CRASH, expected="the process ends in peace", actual=actual)
            self.take_verdict(_EXIT_RULE, None, died)

    def simplifications(self, plan: Plan) -> Iterable[Plan]:
        """The same export with all extents cut to 1, 2 or 3."""
        for extent in (1, 2, 3):
            try:
                yield plan.replaced(shape=tuple(min(n, extent) for n in plan.shape))
            except ValueError:  # a view, or the variant, needs more
                continue

    def simplest(self, worker: Any, plan: Plan) -> Plan:
        """The plain export of the interface: the reference for a failing export, key by key."""
        assert isinstance(plan, Export)
        return first_exports(plan.interface)[0].replaced(shape=(1,))


def _taken_or_refused(observation: ConsumerObservation) -> tuple[str, str]:
    """("taken" | "refused", reason). A consumer that never uses the exporter does not take it."""
    info = observation.main
    if info.error is not None:
        text = info.error.text.strip().partition("\n")[0][:200]
        return "refused", f"{info.error.type}: {text}".rstrip(": ")
    return ("taken", "") if info.asked else ("refused", "the interface was not used")


# -- exports ------------------------------------------------------------------------------------


def _ask(run: ConsumerRun, worker: Any, profile: Profile) -> None:
    run.find_out(worker)
    if not run.taken:
        return
    run.ask(
        worker, [export for interface in run.taken for export in listed(interface, run.tallies)]
    )
    begin, round_number = time.monotonic(), 0
    while True:
        batches = _ask_round(run, worker, profile, run.seed + round_number)
        run.mark("shrinking")
        shrink_all(run, worker, batches, profile)
        round_number += 1
        over = profile.time_box_s is None or time.monotonic() - begin > profile.time_box_s
        if over or run.given_up:
            return
        run.mark("plans")


def _ask_round(run: ConsumerRun, worker: Any, profile: Profile, seed: int) -> list[Batch]:
    from ..plan import strategies

    counts = {"general": profile.general, "boundary": profile.boundary, "rank": profile.rank}
    batches = [
        Batch(
            strategy,
            strategies.DRAWS_PER_PLAN * counts[kind],
            seed,
            tuple(strategies.sample(strategy, counts[kind], seed)),
        )
        for kind, strategy in drawn(run.taken, run.tallies)
    ]
    run.ask(worker, [plan for batch in batches for plan in batch.plans])
    return batches


def _shown(consumer: Any) -> str:
    """The name of a consumer in reports and replay commands, as a user writes it."""
    return shown(consumer, "consumer")
