"""The state of one run: options, verdicts by rule, failures on record, events.

A rule's outcome is the worst of its verdicts. What a run asks is decided elsewhere: `producer_run`
and `consumer_run` draw plans, `shrink` makes failures small.
"""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..abi.device import Devices
from ..info import Observation
from ..info.values import type_name
from ..known import Known, KnownFailures, covered, library_of
from ..known.replays import State, declined_error, pinned_by_rule
from ..outcomes import Outcome, Verdict
from ..plan import Plan
from ..plan.profiles import Profile
from ..render.events import EventLog
from ..render.report import SCHEMA, Report
from ..rules import catalogue
from ..rules.catalogue import Rule
from ..rules.scope import Scope
from ..text import plural
from ..version import __version__
from .driver import Description, Result
from .results import no_interface, verdicts_of, verdicts_of_death
from .worker import contained
from .tally import FINDINGS, Tally

SUITE_NAME = "gridbuf-conformance"

_REMARKS = {
    State.UNJUDGED: "could not be judged here: it is neither confirmed nor out of date",
    State.DECLINED: "matches nothing: its plan is declined; renew it with known --update",
    State.OTHERWISE: "differs from the current failure; update it with known --update",
}

_OPINIONS = frozenset(Outcome) - {Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNSTABLE, Outcome.ERROR}

_TIMEOUTS_TAKEN = 3

_CRASHES_TAKEN = 12


class Run:
    """The state of one run: verdicts by rule, answers by plan, events."""

    replay_options: tuple[str, ...] = ()
    side = "producer"

    def __init__(
        self, rules: Sequence[Rule], written: str, profile: str, seed: int, log: EventLog
    ) -> None:
        self.tallies = {rule.id: Tally(rule) for rule in rules}
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
        self.restrict(Scope())
        self._pinned: set[Plan] = set()
        self._marks = [("start", time.perf_counter())]
        self._asked, self._of = 0, 0

    @classmethod
    def default_rules(cls, target: Any) -> str | None:
        """The rules that a target is judged by if the caller selects none; None for all."""
        return None

    def ask_profile(self, worker: Any, profile: Profile) -> None:
        """Asks the plans of a profile, and shrinks the failures."""
        raise NotImplementedError(f"{type(self).__name__}.ask_profile() must ask the plans")

    # -- the stream --------------------------------------------------------------------

    def restrict(self, scope: Scope) -> None:
        """Which rules judge. Those whose text is newer than the chosen editions do not."""
        self._scope = scope
        self._replay_scope = ["--storage"] if scope.storage else []
        self._spec = [f"{name}-{edition}" for name, edition in scope.editions.items()]
        self._replay_scope += ["--spec", ",".join(self._spec)] if self._spec else []
        reasons = {rule.id: scope.newer(rule) for rule in catalogue.load().values()}
        self._newer = {id_ for id_, reason in reasons.items() if reason}
        left_out = [tally for id_, tally in self.tallies.items() if id_ in self._newer]
        for tally in left_out:
            tally.add(None, Verdict(Outcome.UNSUPPORTED, note=reasons[tally.rule.id]))
        if left_out:
            count = plural(len(left_out), "rule")
            self.note(f"{count} newer than {', '.join(self._spec)}: not judged")

    def race(self) -> None:
        """Before the start: several threads export each object at the same time."""
        self._groups |= {"threads"}
        self._replay_scope.append("--threads")

    def start(self, description: Description) -> None:
        """The producer is there; says so."""
        self.libraries = {library_of(description.name), library_of(self._written)}
        is_storage = self._scope.storage or bool(description.capabilities.asked_keys)
        self._scope = replace(self._scope, storage=is_storage)
        self._log.emit(
            "start",
            schema=SCHEMA,
            suite={
                "name": SUITE_NAME,
                "version": __version__,
                "catalogue": catalogue.VERSION,
            },
            target={
                key: getattr(description, key)
                for key in ("name", "version", "side", "python", "platform")
            },
            profile=self._profile,
            spec=self._spec,
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

    def _rule_entry(self, tally: Tally) -> dict[str, Any]:
        return {
            "id": tally.rule.id,
            "level": tally.rule.level_of(self.side),
            "outcome": str(tally.outcome),
            "plans": tally.plans_judged,
            "failing": tally.outcomes[tally.outcome] if tally.findings else 0,
            "failures": [self._failure(tally, *found) for found in tally.smallest_failures()],
            "note": "" if tally.findings else tally.note,
        }

    def _failure(self, tally: Tally, plan: Plan | None, verdict: Verdict) -> dict[str, Any]:
        command = ["gridbuf-conformance", "replay", *self._replay_scope]
        command += [*self.replay_options, self._written, tally.rule.id]
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
        return verdicts_of(plan, result, self._selected, self._scope)

    def simplifications(self, plan: Plan) -> Iterable[Plan]:
        """Plans to try last, the simplest first; what makes a plan of this run easier to read."""
        return ()

    def simplest(self, worker: Any, plan: Plan) -> Plan:
        """What a failing plan is compared with, key by key, to make it smaller."""
        from ..plan.strategies import simplest_plan

        return simplest_plan(worker.description.capabilities)

    def remember(self, plan: Plan, result: Result) -> None:
        """Keeps the verdicts of a plan, but not its measurements, which are a hundred kilobytes."""
        self.answers[plan] = Result(result.kind, reason=result.reason)
        self._kinds[result.kind] += 1
        self._unforeseen[result.kind] += plan not in self._pinned

    def take_verdict(self, rule: str, plan: Plan | None, verdict: Verdict) -> None:
        """Adds one verdict; a rule that was not selected joins if it kept the others from being
        judged. A rule that is too new for the chosen editions takes no part, unless the process
        died or hung.
        """
        if rule in self._newer and verdict.outcome in _OPINIONS:
            return
        if rule not in self.tallies:
            if not verdict.failed:
                return
            self.tallies[rule] = Tally(catalogue.load()[rule])
            self.note(f"{rule} was not selected; its failure kept selected rules from being judged")
        verdict = self.tallies[rule].add(plan, verdict)
        if verdict.outcome in FINDINGS:
            self._log.emit(
                "verdict",
                rule=rule,
                outcome=str(verdict.outcome),
                plan=self._shown(plan),
                expected=verdict.expected,
                actual=verdict.actual,
            )

    def _shown(self, plan: Plan | None) -> dict[str, Any] | None:
        """The plan in events: one dict for all events of a plan, because there are many of both."""
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

    def inherited(self, worker: Any, known: KnownFailures) -> list[Known]:
        """Records of other libraries that are about this target as well."""
        return []

    def replay_known(self, worker: Any, known: KnownFailures) -> None:
        """Runs the pinned plans of the records of this library; raises KnownError for
        records that match nothing, unless they are to be looked at leniently.
        """
        description = worker.description
        names = (description.name, self._written)
        if not known.lenient:
            known.require_names(description.side, names)
        judged = self.tallies.keys() - self._newer
        entries = known.concerning(description.side, names, description.version)
        entries = [one for one in entries if one.rule in judged]
        entries += self.inherited(worker, known)
        others = [o for o in known.of_target(description.side, names) if o.rule in judged]
        if others and not entries:
            self.note(
                f"known: {description.name} {covered(others)} is covered, "
                f"{description.version} is installed; the records do not apply"
            )
        for rule, pinned in pinned_by_rule(entries).items():
            self.tallies[rule].known = pinned
            self._pinned.update(pinned.plans)
        self.ask(worker, [one.plan for one in entries])
        for tally in self.tallies.values():
            unmatched = tally.known.unmatched() if tally.known is not None else None
            if unmatched is not None and not known.lenient:
                reason = self.answers[unmatched.plan].reason or tally.note
                raise declined_error(unmatched.place, unmatched.rule, reason)

    def _settle_known(self, tally: Tally) -> None:
        """The remaining results of the records of a rule: records that passed, and remarks."""
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
        from ..measure import observe

        result = Result(
            **contained(
                lambda: {
                    "kind": "observation",
                    "observation": observe(obj, None, groups=self._groups, devices=devices),
                }
            )
        )
        seen = result.observation
        if isinstance(seen, Observation) and not seen.has_interface:
            raise ValueError(f"{no_interface(type_name(obj))}; pass an array")
        for rule, verdict in self.verdicts(None, result).items():
            self.take_verdict(rule, None, verdict)

    def judge_exit(self, end: Result | None) -> None:
        """A process that dies while it ends is the producer's doing as well."""
        if end is not None:
            for rule, verdict in verdicts_of_death(end, self._selected, Outcome.CRASH).items():
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
        groups |= catalogue.GROUPS.keys()
    return frozenset(groups)


def _memory_bytes() -> int:
    if not hasattr(os, "sysconf"):  # Windows: not known, so no large array is asked for
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
