"""Judging: from the info on one observation to one verdict for each rule. Pure: it touches no array.

Every array of the observation (the produced one, and what the plan's views made of it) is held against each
rule. A rule whose precondition failed on that array is BLOCKED and names it, so that one defect is one
failure; a rule without its interface is UNSUPPORTED. The verdict of a rule is its worst over the arrays.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType

from ..abi.pybuffer import REQUESTS
from ..exports import Export
from ..exports.consumption import Consumption
from ..info import ConsumerObservation, Observation
from ..measure.interface import HOOKS
from ..outcomes import Outcome, Verdict, graded, worst
from ..plan import Plan
from ..rules import CHECKS, CONSUMER_CHECKS, Subject, catalogue
from ..rules.catalogue import Rule

__all__ = ["STEP_RULES", "judge", "judge_export", "level_on"]

STEP_RULES: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "import": ("GT-20",),
        "produce": ("GT-20",),
        "again": ("GT-20",),
        "again:threads": ("XA-13",),
        "probe": ("XA-18",),
        "ai": ("XA-18",),
        "as": ("XA-18",),
        "as:struct": ("AS-01",),
        "cai": ("XA-18",),
        "cai:stream": ("CAI-17",),
        "cai:stream-after": ("CAI-22",),
        "dx": ("DX-01",),
        "dx:export": ("DX-05",),
        "dx:deleter": ("DX-06",),
        "dx:bare": ("DX-07",),
        "dx:import": ("DX-08",),
        "dx:stream": ("DX-09",),
        "dx:allocate": ("DX-10",),
        "slow": ("DP-18",),
        "pb": ("PB-02",),
        "pb:metadata": ("PB-25",),
        "pb:memoryview": ("PB-02",),
        "pb:__buffer__=FULL_RO": ("PB-28",),
        "pb:__buffer__=WRITABLE": ("PB-30",),
        "pb:__release_buffer__": ("PB-29",),
        "dp": ("DP-03",),
        "dp:device": ("DP-02",),
        **dict.fromkeys(("dp:call=stream=1", "dp:call=stream=0", "dp:call=stream=-1"), ("DP-15",)),
        **dict.fromkeys(("dp:call=stream=2", "dp:call=stream='1'"), ("DP-16",)),
        "dp:call=slow": ("DP-18",),
        **dict.fromkeys(("dp:call=dl_device=(8,0)", "dp:call=dl_device='cpu'"), ("DP-23",)),
        **dict.fromkeys(("dp:call=max_version=(0,1)", "dp:call=max_version=(0,8)"), ("DP-12",)),
        "dp:call=max_version=[1,0]": ("DP-13",),
        "dp:call=max_version=(1,0,0)": ("DP-13",),
        "dp:call=max_version='1.0'": ("DP-13",),
        "dp:call=copy=True": ("DP-20",),
        "dp:call=copy=False": ("DP-21",),
        "dl": ("DL-01",),
        "dl:unconsumed": ("DP-06",),
        "dl:consumed": ("DP-07",),
        "dl:deleter": ("DL-19",),
        "dl:foreign-thread": ("DL-20",),
        "walk": ("XA-10",),
        "poke": ("XA-09",),
        "view": ("XA-12",),
        "life": ("XA-11",),
        **dict.fromkeys((f"pb:release={name}" for name in REQUESTS), ("PB-24",)),
        "life:release": ("PB-24",),
        "gt": ("GT-15",),
        "gt:data-interface": ("GT-01",),
        **dict.fromkeys(
            (f"gt:hook={hook} of {key}" for hook in HOOKS for key in ("None", "gpu")), ("GT-03",)
        ),
        "gt:write": ("GT-09",),
        "teardown": ("XA-11",),
        "idle": ("XA-11",),
        "exit": ("XA-11",),
    }
)
"""Which rules a death or a hang counts against, by step (`steps.enter`) or by the step's part before ":"."""


def judge(
    observation: Observation, plan: Plan | None, rule_ids: Iterable[str]
) -> dict[str, Verdict]:
    """One verdict for each of `rule_ids`; the observation is the result of `measure.observe` for `plan`.

    Raises KeyError for an id that the catalogue does not have or does not judge.
    """
    root = _Judged(Subject(observation.root, observation, plan))
    judged = [root]
    view = observation.view
    if view is not None and view.probes is not None:
        judged.append(_Judged(Subject(view, observation, plan, root.subject), root))
    rules = catalogue.load()
    return {id_: _verdict_over(rules[id_], judged) for id_ in rule_ids}


def judge_export(
    observation: ConsumerObservation, export: Export, rule_ids: Iterable[str]
) -> dict[str, Verdict]:
    """One verdict for each of `rule_ids` on what a consumer made of an export (`measure.consumption`).

    Raises KeyError for an id without a consumer check.
    """
    main = Consumption(observation.main, export)
    info, plain = observation.control, export.control
    control = None if info is None or plain is None else Consumption(info, plain)
    others = [Consumption(other, export) for other in observation.others]
    rules = catalogue.load()
    return {id_: _verdict_of_calls(rules[id_], main, control, others) for id_ in rule_ids}


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
        verdict = CONSUMER_CHECKS[rule.id].function(main, control)
    except Exception:
        return Verdict(
            Outcome.ERROR, expected="the check decides", actual=_last_frame(), note=rule.id
        )
    return graded(verdict, level_on(rule, main.export))


def level_on(rule: Rule, export: Export) -> str:
    """The level of a rule on an export: that of the variant, if the variant is about this rule."""
    variant = export.variant
    if variant.is_robust and variant.rules[0] == rule.id:
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
        return self._with_halves(rule, verdict) if rule.id in _DEVICE_HALVES else verdict

    def _with_halves(self, rule: Rule, verdict: Verdict) -> Verdict:
        """Says of a rule on devices which half was judged: what the metadata tells, or the device's answer as well."""
        driver = self.subject.observation.driver.name
        if verdict.outcome is Outcome.UNTESTED and verdict.note == self.subject.no_driver:
            return replace(verdict, note=f"{verdict.note}; what can be told without it holds")
        if verdict.outcome is Outcome.PASS and driver and not verdict.note:
            return replace(verdict, note=f"by the metadata and by {driver}")
        return verdict

    def _blocked(self, rule: Rule) -> Verdict | None:
        """BLOCKED or UNSUPPORTED, if the rule cannot be judged; else None."""
        check, subject = CHECKS[rule.id], self.subject
        interface = check.needs
        if interface is not None and not subject.has(interface):
            if subject.probe_error(interface):
                return _blocked_by("XA-18")
            return Verdict(Outcome.UNSUPPORTED, note=_MISSING[interface])
        for id_ in rule.preconditions:
            before = self.verdict(id_)
            if before.outcome is Outcome.FAIL and before.blocks:
                return _blocked_by(id_)
            if before.outcome in (Outcome.BLOCKED, Outcome.ERROR):
                return before if before.outcome is Outcome.BLOCKED else _blocked_by(id_)
        if check.believable and interface in subject.rejected:
            broken = subject.rejected[interface]
            return _NO_WHOLE_BYTES if broken is None else _blocked_by(broken)
        return None


_DEVICE_HALVES = frozenset(
    {
        *("CAI-07", "CAI-12", "CAI-17", "CAI-18", "CAI-19", "CAI-21", "CAI-22", "CAI-25", "CAI-26"),
        *("DL-18", "DP-18", "DP-24", "DX-09", "GT-08", "GT-09", "GT-24", "XA-08", "XA-10", "XA-17"),
    }
)
"""Rules that only the device's own answer can settle; the documentation of device memory lists both halves."""

_MISSING = {
    "AI": "the object has no __array_interface__",
    "AS": "the object has no __array_struct__",
    "CAI": "the object has no __cuda_array_interface__",
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
