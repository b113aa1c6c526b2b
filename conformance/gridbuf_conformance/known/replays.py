"""Failures on record in a run: the result of each pinned plan's replay, and what it excuses.

`Pinned` is between the judge and the tally of one rule. It sees every verdict of the rule, the
pinned plans' first, and hands on what the report is to hold: XFAIL, XPASS, or the unchanged verdict
(`known` has the rules in words).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..outcomes import Outcome, Verdict
from ..plan import Plan
from ..render.report import Report
from ..rules.catalogue import with_role
from .records import Known, KnownError, KnownFailures, alike


def _declines_late(rule: str) -> bool:
    """Whether its pinned plan is always declined, which is known only at the end."""
    return rule in with_role("request")


class State:
    """What the replay of a pinned plan came to, in the words of the event stream."""

    SAME = "fails as known"
    PASSES = "passes"
    OTHERWISE = "fails otherwise"
    DECLINED = "declined"
    UNJUDGED = "not judged"


@dataclass
class Pinned:
    """The records of one rule in one run, and what their replays came to so far."""

    entries: tuple[Known, ...]
    states: dict[Known, str] = field(default_factory=dict)
    verdicts: dict[Known, Verdict] = field(default_factory=dict)
    _waiting: set[Known] = field(default_factory=set)

    @property
    def plans(self) -> list[Plan]:
        """The plans to replay, each once."""
        return list(dict.fromkeys(known.plan for known in self.entries))

    def seen(self, plan: Plan | None, verdict: Verdict) -> Verdict:
        """What the report holds for a verdict of this rule, on a pinned plan or any other."""
        for known in self.entries:
            if known.plan == plan:
                return self._replayed(known, verdict)
        if plan is None:
            for known in tuple(self._waiting):
                if known.is_same(verdict):
                    self._waiting.discard(known)
                    self.states[known] = State.SAME
                    return _excused(known, verdict)
        if verdict.failed and any(verdict.outcome in alike(o) for o in self._explained):
            return Verdict(Outcome.XFAIL)
        return verdict

    @property
    def _explained(self) -> list[Outcome]:
        return [known.outcome for known, state in self.states.items() if state == State.SAME]

    def _replayed(self, known: Known, verdict: Verdict) -> Verdict:
        self.verdicts[known] = verdict
        if verdict.outcome is Outcome.ERROR:
            self.states[known] = State.UNJUDGED
        elif verdict.failed:
            self._waiting.discard(known)
            same = known.is_same(verdict)
            self.states[known] = State.SAME if same else State.OTHERWISE
            return _excused(known, verdict) if same else _differing(known, verdict)
        elif verdict.outcome in (Outcome.PASS, Outcome.FRAGILE, Outcome.ADVISORY):
            return self._passed(known, verdict)
        else:
            declined = verdict.outcome is Outcome.UNSUPPORTED
            self.states[known] = State.DECLINED if declined else State.UNJUDGED
        return verdict

    def _passed(self, known: Known, verdict: Verdict) -> Verdict:
        if (
            known.outcome is Outcome.UNSTABLE
        ):  # one run without a crash says nothing about a process that dies sometimes
            self.states[known] = State.UNJUDGED
            return verdict
        self.states[known] = State.PASSES
        if known.outcome is Outcome.CRASH:  # the process may still die as it ends
            self._waiting.add(known)
            return verdict
        return _passing(known)

    def ended(self, *, complete: bool) -> list[tuple[Plan, Verdict]]:
        """The results after the end of the process: records of a CRASH that did not occur.

        `complete`: the run was not given up, so that declared things were judged as well.
        """
        return [
            (known.plan, _passing(known))
            for known in self.entries
            if known in self._waiting or (complete and self._is_kept_promise(known))
        ]

    def _is_kept_promise(self, known: Known) -> bool:
        """Whether a plan was declined by a library that makes other arrays of that kind by now."""
        return _declines_late(known.rule) and self.states.get(known) == State.DECLINED

    def unmatched(self) -> Known | None:
        """A record whose plan was declined, if there is one by now."""
        for known, state in self.states.items():
            if state == State.DECLINED and not _declines_late(known.rule):
                return known
        return None


def pinned_by_rule(entries: Iterable[Known]) -> dict[str, Pinned]:
    """The records by rule. Of two for a plan (layers with other versions) the later one holds."""
    by_rule: dict[str, dict[Plan, Known]] = {}
    for known in entries:
        by_rule.setdefault(known.rule, {})[known.plan] = known
    return {rule: Pinned(tuple(plans.values())) for rule, plans in by_rule.items()}


def declined_error(place: str, rule: str, reason: str) -> KnownError:
    """The error for a record whose plan a library declines."""
    return KnownError(
        f"{place}: {rule} matches nothing, for its plan is declined ({reason}); "
        "remove the record, or renew it with known --update"
    )


def require_matches(
    records: KnownFailures, reports: Sequence[Report], judged: Iterable[str]
) -> None:
    """After lenient runs: raises KnownError for a record that matched nothing in any of them.

    `judged` are further names of the target.
    """
    for side in {report.data["target"]["side"] for report in reports}:
        names = {report.data["target"]["name"] for report in reports}
        records.require_names(side, {*judged, *names})
    for report in reports:
        for event in report.events:
            declined = event["event"] == "known" and event["state"] == State.DECLINED
            if declined and not _declines_late(event["rule"]):
                raise declined_error(event["place"], event["rule"], event["note"])


def _excused(known: Known, verdict: Verdict) -> Verdict:
    return replace(verdict, outcome=Outcome.XFAIL, note=known.note)


def _passing(known: Known) -> Verdict:
    return Verdict(
        Outcome.XPASS,
        expected=f"{known.outcome} as recorded" + (f": {known.actual}" if known.actual else ""),
        actual="the rule holds: remove the record",
        note=f"{known.note}; {known.place}",
    )


def _differing(known: Known, verdict: Verdict) -> Verdict:
    recorded = f"{known.outcome}" + (f": {known.actual}" if known.actual else "")
    note = f"not as known ({known.place}), which is {recorded}"
    return replace(verdict, note=f"{verdict.note}; {note}" if verdict.note else note)
