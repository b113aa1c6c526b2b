"""Judging: from info on one observation to one verdict a rule. Pure: it touches no array.

Every array of the observation (the produced one, and what the plan's views made of it) is held
against each rule. A rule whose precondition failed on that array, or on the array that it is a view
of, is BLOCKED and names it, so that one defect is one failure; a rule without its interface is
UNSUPPORTED. The verdict of a rule is its worst over the arrays.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from ..exports import Export
from ..exports.consumption import Consumption
from ..info import ConsumerObservation, Observation
from ..outcomes import Outcome, Verdict, graded, worst
from ..plan import Plan
from ..rules import CHECKS, CONSUMER_CHECKS, Subject, catalogue
from ..rules.catalogue import Rule
from ..rules.scope import Scope


def judge(
    observation: Observation, plan: Plan | None, rule_ids: Iterable[str], scope: Scope
) -> dict[str, Verdict]:
    """One verdict for each of `rule_ids` on `observation`, the result of `measure.observe`.

    Raises KeyError for an id that the catalogue does not have or does not judge.
    """
    root = _Judged(Subject(observation.root, observation, plan, scope))
    judged = [root]
    view = observation.view
    if view is not None and view.probes is not None:
        judged.append(_Judged(Subject(view, observation, plan, scope, root.subject), root))
    rules = catalogue.load()
    return {id_: _verdict_over(rules[id_], judged) for id_ in rule_ids}


def judge_export(
    observation: ConsumerObservation, export: Export, rule_ids: Iterable[str]
) -> dict[str, Verdict]:
    """A verdict for each of `rule_ids` on a consumer's use of an export (`measure.consumption`).

    Where a wrong plain export blocks them, the rules that it breaks are among the verdicts.

    Raises KeyError for an id without a consumer check.
    """
    main = Consumption(observation.main, export)
    info, plain = observation.control, export.control
    control = None if info is None or plain is None else Consumption(info, plain)
    others = [Consumption(other, export) for other in observation.others]
    for call in (main, *others):
        call.siblings = [main, *others]
    rules = catalogue.load()
    found = {id_: _verdict_of_calls(rules[id_], main, control, others) for id_ in rule_ids}
    is_blocked = any(one.outcome is Outcome.BLOCKED for one in found.values())
    if control is None or plain is None or plain.control is not None or not is_blocked:
        return found
    causes = {id_: _verdict_of_consumer(rules[id_], control, None) for id_ in plain.variant.rules}
    return {**{id_: cause for id_, cause in causes.items() if cause.failed}, **found}


def _verdict_of_calls(
    rule: Rule, main: Consumption, control: Consumption | None, others: list[Consumption]
) -> Verdict:
    """The worst verdict on the plain call and on those with a keyword."""
    first = _verdict_of_consumer(rule, main, control)
    verdicts = [first]
    for call in others:
        verdict = _verdict_of_consumer(rule, call, None)
        ((name, value),) = call.info.keywords.items()
        note = f"called with {name}={value!r}"
        verdicts.append(replace(verdict, note=f"{verdict.note}; {note}" if verdict.note else note))
    outcome = worst(verdict.outcome for verdict in verdicts)
    return first if first.outcome is outcome else next(v for v in verdicts if v.outcome is outcome)


def _verdict_of_consumer(rule: Rule, main: Consumption, control: Consumption | None) -> Verdict:
    try:
        verdict = CONSUMER_CHECKS[rule.id](main, control)
    except Exception:
        return Verdict(
            Outcome.ERROR, expected="the check decides", actual=_last_frame(), note=rule.id
        )
    return graded(verdict, level_on(rule, main.export))


def level_on(rule: Rule, export: Export) -> str:
    """The level of a rule on an export: that of the variant, if the variant is about this rule.

    No text promises anything to threads that race, so all is ROBUST there.
    """
    variant = export.variant
    if variant.threads or (variant.is_robust and variant.rules[0] == rule.id):
        return "ROBUST"
    return rule.level_of("consumer")


def _verdict_over(rule: Rule, judged: list[_Judged]) -> Verdict:
    if rule.untestable is not None:
        return Verdict(Outcome.UNTESTED, note=rule.untestable)
    verdicts = [one.verdict(rule.id) for one in judged]
    outcome = worst(verdict.outcome for verdict in verdicts)
    chosen = next(verdict for verdict in verdicts if verdict.outcome is outcome)
    on_view = len(verdicts) > 1 and chosen is verdicts[1] and outcome is not Outcome.PASS
    if on_view and not CHECKS[rule.id].once and chosen.actual:
        note = (
            f"{chosen.note}; after the view operations"
            if chosen.note
            else "after the view operations"
        )
        return replace(chosen, note=note)
    return chosen


class _Judged:
    """The verdicts on one array, each found once."""

    def __init__(self, subject: Subject, root: _Judged | None = None) -> None:
        self.subject = subject
        self._root = root
        self._rules = catalogue.load()
        self._verdicts: dict[str, Verdict] = {}

    def verdict(self, rule_id: str) -> Verdict:
        """The verdict of one rule on this array; rules judged once give the produced array's."""
        if self._root is not None and CHECKS[rule_id].once:
            return self._root.verdict(rule_id)
        if rule_id not in self._verdicts:
            self._verdicts[rule_id] = self._decide(self._rules[rule_id])
        return self._verdicts[rule_id]

    def _decide(self, rule: Rule) -> Verdict:
        blocked = self._blocked(rule)
        if blocked is not None:
            return blocked
        try:
            verdict = CHECKS[rule.id].function(self.subject)
        except Exception:
            return Verdict(
                Outcome.ERROR, expected="the check decides", actual=_last_frame(), note=rule.id
            )
        verdict = graded(verdict, rule.level)
        return self._with_halves(rule, verdict) if rule.on_device else verdict

    def _with_halves(self, rule: Rule, verdict: Verdict) -> Verdict:
        """Says which half of a rule on devices was judged: metadata, or the device, too."""
        driver = self.subject.observation.driver.name
        if verdict.outcome is Outcome.UNTESTED and verdict.note == self.subject.no_driver:
            return replace(verdict, note=f"{verdict.note}; what can be told without it holds")
        if verdict.outcome is Outcome.PASS and driver and not verdict.note:
            return replace(verdict, note=f"by the metadata and by {driver}")
        return verdict

    def _blocked(self, rule: Rule) -> Verdict | None:
        """BLOCKED or UNSUPPORTED, if the rule cannot be judged; else None."""
        check, subject = CHECKS[rule.id], self.subject
        excluded = subject.scope.excluded(rule, subject.observation)
        if excluded:
            return Verdict(Outcome.UNSUPPORTED, note=excluded)
        interface = check.needs
        if interface is not None and not subject.has(interface):
            if subject.probe_error(interface):
                return _blocked_by(catalogue.with_role("probe")[0])
            return Verdict(Outcome.UNSUPPORTED, note=_MISSING[interface])
        for id_, judged in product(rule.preconditions, filter(None, (self._root, self))):
            needs = CHECKS[id_].needs
            if needs not in (None, interface) and judged.subject.probe_error(needs or ""):
                continue  # of this rule, it is an interface that the object does not have
            before = judged.verdict(id_)
            if before.outcome is Outcome.FAIL and before.blocks:
                return _blocked_by(id_)
            if before.outcome in (Outcome.BLOCKED, Outcome.ERROR):
                return before if before.outcome is Outcome.BLOCKED else _blocked_by(id_)
        if check.believable and interface in subject.rejected:
            broken = subject.rejected[interface]
            return _NO_WHOLE_BYTES if broken is None else _blocked_by(broken)
        return None


_MISSING = {
    "AI": "the object has no __array_interface__",
    "AS": "the object has no __array_struct__",
    "CAI": "the object has no __cuda_array_interface__",
    "CS": "the object has no __cuda_stream__",
    "DX": "the object's type has no __dlpack_c_exchange_api__",
    "GTD": "the object has no __gt_data_interface__",
    "PB": "the object does not support the buffer protocol",
    "DL": "the object gave no DLPack capsule",
    "DLPACK": "the object has no __dlpack__",
}


_NO_WHOLE_BYTES = Verdict(
    Outcome.UNSUPPORTED, note="elements that are not whole bytes are judged by DL-25 and DL-26"
)


def _blocked_by(rule_id: str) -> Verdict:
    return Verdict(Outcome.BLOCKED, note=f"{rule_id} failed")


def _last_frame() -> str:
    lines = traceback.format_exc().strip().splitlines()
    place = next((line.strip() for line in reversed(lines) if line.strip().startswith("File ")), "")
    return f"{lines[-1]} at {place.rpartition('/')[2]}"
