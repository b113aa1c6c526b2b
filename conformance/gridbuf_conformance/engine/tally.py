"""The state of one rule in a run: its outcomes, their reasons, and the plans that fail it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..known.replays import Pinned
from ..outcomes import FAILED, Outcome, Verdict, worst
from ..plan import Plan
from ..rules.catalogue import Rule

FINDINGS = FAILED | {Outcome.FRAGILE, Outcome.ADVISORY, Outcome.ERROR}

_SHOWN = 3
_NUMBERS = re.compile(r"bytes [0-9a-f]{2,}|\d[\d.]*(?:e[+-]?\d+)?j?|\b(?:None|nan|inf)\b|[\W_]+")
_ON_RECORD = (Outcome.XFAIL, Outcome.XPASS)


@dataclass
class Tally:
    """The state of one rule in a run."""

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
        """Adds a verdict without a change."""
        self.outcomes[verdict.outcome] += 1
        if verdict.note:
            self.notes.setdefault(verdict.outcome, Counter())[verdict.note] += 1
        is_replay = verdict.outcome is Outcome.XFAIL and bool(verdict.note)
        if verdict.outcome in FINDINGS or is_replay:
            self.findings[plan] = verdict

    @property
    def outcome(self) -> Outcome:
        return worst(self.outcomes)

    @property
    def news(self) -> Outcome | None:
        """The worst finding without a record: the finding to shrink."""
        found = {verdict.outcome for verdict in self.findings.values()}.difference(_ON_RECORD)
        return worst(found) if found else None

    @property
    def note(self) -> str:
        """The reason given most often for this outcome."""
        common = self.notes.get(self.outcome, Counter()).most_common(1)
        return common[0][0] if common else ""

    @property
    def plans_judged(self) -> int:
        """The number of plans on which the rule was judged."""
        silent = (Outcome.UNSUPPORTED, Outcome.UNTESTED, Outcome.BLOCKED)
        return sum(n for outcome, n in self.outcomes.items() if outcome not in silent)

    def smallest_failures(self) -> list[tuple[Plan | None, Verdict]]:
        """Of each outcome, worst first, the smallest findings: up to three that differ; of those on
        record, each.
        """
        by_outcome: dict[Outcome, list[tuple[Plan | None, Verdict]]] = {}
        for plan, verdict in self.findings.items():
            by_outcome.setdefault(verdict.outcome, []).append((plan, verdict))
        ordered = []
        while by_outcome:
            outcome = worst(by_outcome)
            found = sorted(by_outcome.pop(outcome), key=lambda found: weight(found[0]))
            different = {_defect(verdict): (plan, verdict) for plan, verdict in reversed(found)}
            smallest = sorted(different.values(), key=lambda found: weight(found[0]))
            ordered += found if outcome in _ON_RECORD else smallest[:_SHOWN]
        return ordered


def _defect(verdict: Verdict) -> tuple[str, str]:
    """What two findings of one defect have in common: their texts without numbers and shapes."""
    texts = (_NUMBERS.sub("", text) for text in (verdict.expected, verdict.actual))
    return next(texts), next(texts)


def weight(plan: Plan | None) -> tuple[Any, ...]:
    """Smaller for plans that are easier to read: the order among failures of one rule."""
    if plan is None:
        return (0,)
    changed = sum(plan[key] != default for key, default in Plan().items())
    text = plan.to_json(brief=True)
    parts = changed + len(plan.views) + abs(plan.ndim - 1)
    return (1, parts, sum(plan.shape), len(text), text)
