"""Verdicts on what a plan came to: an observation goes to the judge, the rest is decided here."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable

from .driver import Result
from .info import Observation
from .outcomes import Outcome, Verdict
from .plan import Plan

__all__ = ["guarded", "scrubbed", "suite_error", "verdicts_of", "verdicts_of_death"]

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def verdicts_of(plan: Plan | None, result: Result, rules: list[str]) -> dict[str, Verdict]:
    """What each selected rule says of a result, be it an observation or none."""
    if isinstance(result.observation, Observation):
        return _judged(result.observation, plan, rules)
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
    return verdicts_of_death(result, rules, Outcome(result.kind.upper()), plan)


def _judged(observation: Observation, plan: Plan | None, rules: list[str]) -> dict[str, Verdict]:
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


def verdicts_of_death(
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


def scrubbed(text: str) -> str:
    """A reason without what differs from run to run: addresses, and the folders of files."""
    text = _ADDRESS.sub("0x…", text)
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)
