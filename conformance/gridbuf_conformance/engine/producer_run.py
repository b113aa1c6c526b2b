"""The run of a producer: many plans, the verdicts of each rule, and each failure shrunk.

A run has three parts. First the *plans*: the declared capabilities one by one, then plans drawn by
Hypothesis (`strategies`), all of them fixed before the producer is touched. Then the *shrinking*
(`shrink`). Last the *summary* (`run`).

Hypothesis is imported only when plans are drawn: `replay` and `check` work without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from .. import producers
from ..abi.device import Devices, TableAccess
from ..info import Observation
from ..info.values import attempt, type_name
from ..known import Known, KnownFailures, library_of
from ..outcomes import Outcome, Verdict
from ..plan import Plan
from ..plan.producer import Capabilities
from ..plan.profiles import Profile, profile_of
from ..producers.shared_library import RULES
from ..render.events import EventLog, Listener
from ..render.report import Report
from ..rules import catalogue
from ..rules.scope import Scope, chosen
from ..targets import is_shared_library, shown
from .driver import Description, Result
from .results import scrubbed
from .run import Run
from .session import Options, patterns, run_plans, run_profile
from .shrink import Batch, ask_rounds, drawn_batch, listed_batch
from .tally import FINDINGS
from .worker import system

if TYPE_CHECKING:
    from ..plan.strategies import Declared


def check_producer(producer: Any, **options: Any) -> Report:
    """Judges a producer on the plans of a profile; the options are those of `session.Options`.

    `producer` is a written target (`targets`) or a producer class; without isolation also an
    object. Raises as `session.run_profile`.
    """
    return run_profile(ProducerRun, producer, Options(**options))


def replay(producer: Any, rule: str, plan: Plan, **options: Any) -> Report:
    """Judges one rule (or a pattern of rules) on one plan."""
    return check_plans(producer, [plan], rules=rule, profile="replay", **options)


def check_plans(producer: Any, plans: Iterable[Plan], **options: Any) -> Report:
    """Judges a producer on exactly these plans."""
    return run_plans(ProducerRun, producer, plans, Options(**{"profile": "plans", **options}))


def check(
    obj: Any,
    *,
    rules: str | Iterable[str] | None = None,
    profile: str = "default",
    device_table: Any = None,
    storage: bool = False,
    spec: str | Iterable[str] | None = None,
    on_event: Listener | None = None,
) -> Report:
    """Judges a live object in this process: each interface, and the agreement of
    the interfaces.

    There is no plan, so the rules that compare with a plan are UNSUPPORTED. No address
    is followed that the rules on its description reject.
    """
    profile_of(profile)  # raises where there is none
    selected = catalogue.select(patterns(rules))
    run = ProducerRun(selected, "", profile, 0, EventLog(on_event))
    run.restrict(Scope(storage, chosen(spec)))
    run.start(_description_of_object(obj))
    devices = Devices(None if device_table is None else lambda: device_table)
    if device_table is not None:
        TableAccess(device_table)  # a capsule that is not a table is a mistake of the caller
    if selected:
        run.look_at(obj, devices)
    return run.finish()


class ProducerRun(Run):
    """The state of one run on a producer."""

    @classmethod
    def default_rules(cls, target: Any) -> str | None:
        """What the registry says of a built-in producer; for a shared library, rules on tensors."""
        if is_shared_library(target):
            return RULES
        entry = producers.BUILT_IN.get(shown(target))
        return entry.rules if entry else None

    def ask_profile(self, worker: Any, profile: Profile) -> None:
        """Asks the declared capabilities one by one, then the drawn plans."""
        from ..plan.strategies import declared_plans

        can = worker.description.capabilities
        declared = declared_plans(can)
        self.ask(worker, [capability.plan for capability in declared])
        ask_rounds(self, worker, profile, partial(_batches, can, profile))
        if not self.given_up:
            self._judge_declared(declared)

    def verdicts(self, plan: Plan | None, result: Result) -> dict[str, Verdict]:
        """Says of a failure by the code of another library that it is inherited."""
        found, seen = super().verdicts(plan, result), result.observation
        if not isinstance(seen, Observation) or not seen.origins:
            return found
        return {id_: self._attributed(id_, verdict, seen) for id_, verdict in found.items()}

    def _attributed(self, id_: str, verdict: Verdict, seen: Observation) -> Verdict:
        origin = seen.origin(catalogue.load()[id_].group)
        if library_of(origin) in ("", *self.libraries) or verdict.outcome not in FINDINGS:
            return verdict
        note = f"inherited from {origin}"
        return replace(verdict, note=f"{verdict.note}; {note}" if verdict.note else note)

    def inherited(self, worker: Any, known: KnownFailures) -> list[Known]:
        """Records of the libraries whose code this target inherits, if it fails as they do."""
        others = [o for o in known.entries if library_of(o.target) not in self.libraries]
        left = [one for one in others if one.side == self.side and one.rule in self.tallies]
        found = []
        for plan, result in worker.run_all([*dict.fromkeys(o.plan for o in left)], self._groups):
            verdicts, seen = self.verdicts(plan, result), result.observation
            for one in left if isinstance(seen, Observation) else ():
                origin = seen.origin(catalogue.load()[one.rule].group)
                if one.plan == plan and one.is_same(verdicts[one.rule]) and one.is_of(origin):
                    found.append(replace(one, reason=f"inherited from {origin}: {one.reason}"))
        return found

    def remember(self, plan: Plan, result: Result) -> None:
        """Keeps whether an object exported anything."""
        seen = result.observation
        refused = isinstance(seen, Observation) and seen.exports_nothing
        super().remember(plan, Result("refused") if refused else result)

    def _judge_declared(self, declared: Sequence[Declared]) -> None:
        """A declared capability that was declined on every plan fails the rule on requests."""
        (request,) = catalogue.with_role("request")
        for capability in declared:
            answers = [self.answers[p] for p in self.answers if capability.used_by(p)]
            if request in self.tallies and all(answer.kind == "unsupported" for answer in answers):
                verdict = Verdict(
                    Outcome.FAIL,
                    expected=f"the declared capability ({capability.name}) is made at least once",
                    actual=f"declined on all {len(answers)} plans that use it: "
                    f"{scrubbed(self.answers[capability.plan].reason)}",
                )
                self.take_verdict(request, capability.plan, verdict)


@lru_cache(maxsize=8)
def _batches(can: Capabilities, profile: Profile, seed: int) -> tuple[Batch, ...]:
    """The plans of one round. Drawing takes about half of a smoke run, so producers with the same
    capabilities share the plans.
    """
    from ..plan import strategies

    wanted = (
        (strategies.general_plans(can), profile.general),
        (strategies.boundary_plans(can), profile.boundary),
        (strategies.rank_plans(can), profile.rank),
    )
    drawn = [
        drawn_batch(strategy, count, seed) for strategy, count in wanted if strategy is not None
    ]
    huge = strategies.huge_plans(can, profile.huge, seed)
    return (*drawn, listed_batch(huge, seed)) if huge else tuple(drawn)


def _description_of_object(obj: Any) -> Description:
    module = attempt(lambda: type(obj).__module__)[0]
    module = module if isinstance(module, str) else ""
    top = module.partition(".")[0]
    version, _ = attempt(lambda: getattr(sys.modules.get(top), "__version__", ""))
    python, platform = system()
    return Description(
        name=f"{module}.{type_name(obj)}",
        version=version if isinstance(version, str) else "",
        python=python,
        platform=platform,
        capabilities=Capabilities(),
    )
