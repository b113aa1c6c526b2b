"""The run of a consumer: like the run of a producer, with exports instead of plans.

First the run finds out which interfaces the consumer takes, with the simplest exports of each
interface. If the consumer refuses them, the rules of the interface are UNSUPPORTED with that
reason, unless the consumer is documented to take it. Then come the listed exports, one array after
another through every variant, then drawn exports. Failures are shrunk as in the run of a producer.

A consumer that dies on one kind of export (`Export.kind`: a variant, negative strides) dies every
time. After two deaths the run skips that kind, so that it reaches the other kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..exports import Export, Interface, interfaces, variants_about
from ..exports.drawing import drawn, first_exports, listed
from ..info import ConsumerObservation
from ..info.steps import Stage
from ..outcomes import Outcome, Verdict, graded
from ..plan import Plan
from ..plan.profiles import Profile
from ..render.events import EventLog
from ..render.report import Report
from ..rules import catalogue
from ..rules.catalogue import Rule
from .driver import Result
from .results import guarded, scrubbed, suite_error
from .run import Run
from .session import Options, run_plans, run_profile
from .shrink import Batch, ask_rounds, drawn_batch

_DEATHS_OF_A_KIND = 2
_DEATHS_OF_A_KIND_WHILE_SHRINKING = 12
_DEATHS_IN_ALL = 60
_TIMEOUTS_IN_ALL = 6
_EXPORTS_OF_THE_RESULT = frozenset(
    stage.value
    for stage in (Stage.PROBE, Stage.AI, Stage.AS, Stage.CAI, Stage.CS, Stage.PB)
    + (Stage.DP, Stage.DL, Stage.DX, Stage.GT, Stage.EYES)
)
"""The stages at which code of the result's own type runs."""


def check_consumer(consumer: Any, **options: Any) -> Report:
    """Judges a consumer on the exports of a profile; the options are those of `session.Options`.

    `consumer` is a written target (`targets`) or a function of a module; without isolation any
    callable. Raises as `session.run_profile`.
    """
    return run_profile(ConsumerRun, consumer, Options(**options))


def replay(consumer: Any, rule: str, export: Export, **options: Any) -> Report:
    """Judges one rule (or a pattern of rules) on one export."""
    return check_exports(consumer, [export], rules=rule, profile="replay", **options)


def check_exports(consumer: Any, exports: Iterable[Export], **options: Any) -> Report:
    """Judges a consumer on exactly these exports."""
    return run_plans(ConsumerRun, consumer, exports, Options(**{"profile": "plans", **options}))


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

    def ask_profile(self, worker: Any, profile: Profile) -> None:
        """Finds out what is taken; then asks the listed exports of that, and the drawn ones."""
        self.find_out(worker)
        if not self.taken:
            return
        exports = [
            export
            for interface in self.taken
            for export in listed(interface, self.tallies, threads=profile.threads)
        ]
        self.ask(worker, exports)
        counts = {"general": profile.general, "boundary": profile.boundary, "rank": profile.rank}

        def batches_of(seed: int) -> list[Batch]:
            kinds = drawn(self.taken, self.tallies, threads=profile.threads)
            return [drawn_batch(strategy, counts[kind], seed) for kind, strategy in kinds]

        ask_rounds(self, worker, profile, batches_of)

    # -- interfaces that the consumer takes --------------------------------------------------

    def find_out(self, worker: Any) -> None:
        """Finds the interfaces that the consumer takes; rules of others are UNSUPPORTED."""
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
            died = Verdict(Outcome.CRASH, expected="the process ends normally", actual=actual)
            self.take_verdict(catalogue.with_role("exit")[0], None, died)

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
