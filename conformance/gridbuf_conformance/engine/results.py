"""Verdicts on results of plans: the judge decides on observations, this module on the rest."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable

from ..info import INTERFACE_ATTRIBUTES, Observation
from ..outcomes import Outcome, Verdict, graded
from ..plan import Plan
from ..rules.catalogue import rule_of_step, with_role
from ..rules.scope import Scope
from .driver import Result

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def verdicts_of(
    plan: Plan | None, result: Result, rules: list[str], scope: Scope
) -> dict[str, Verdict]:
    """The verdict of each selected rule on a result, with or without an observation."""
    if isinstance(result.observation, Observation):
        return _judged(result.observation, plan, rules, scope)
    if result.kind == "unsupported":
        declined = Verdict(Outcome.UNSUPPORTED, note=scrubbed(result.reason))
        return dict.fromkeys(rules, declined)
    if result.kind == "raised":
        return _verdicts_of_raising(result, rules)
    if result.kind == "error":
        return dict.fromkeys(rules, suite_error(result.reason))
    if plan is not None and plan.fill is None and "SIGKILL" in result.reason:
        reason = "the system ended the process, probably out of memory"
        return dict.fromkeys(rules, Verdict(Outcome.UNTESTED, note=reason))
    return verdicts_of_death(result, rules, Outcome(result.kind.upper()), plan)


def _judged(
    observation: Observation, plan: Plan | None, rules: list[str], scope: Scope
) -> dict[str, Verdict]:
    from .judge import judge

    is_array = observation.has_interface or observation.array_attribute is not None
    if observation.has_memory and not is_array:
        return _verdicts_of_nothing(observation.type, rules)
    return guarded(lambda: judge(observation, plan, rules, scope), rules)


def guarded(judged: Callable[[], dict[str, Verdict]], rules: list[str]) -> dict[str, Verdict]:
    """The verdicts of a judge; if the judge raises, each rule is an ERROR."""
    try:
        return judged()
    except Exception:
        return dict.fromkeys(rules, suite_error(traceback.format_exc()))


def suite_error(text: str) -> Verdict:
    """An error of the suite: the traceback's last line, file and line of the innermost frame."""
    last = text.strip().splitlines()[-1]
    places = re.findall(r'File "(?:.*/)?([^/"]+)", line (\d+)', text)
    where = f" ({places[-1][0]}:{places[-1][1]})" if places else ""
    return Verdict(Outcome.ERROR, expected="the suite itself works", actual=scrubbed(last) + where)


def no_interface(kind: str) -> str:
    """What is said of an object that exports nothing."""
    return f"{kind} has no buffer and none of {', '.join(INTERFACE_ATTRIBUTES)}"


def _verdicts_of_nothing(kind: str, rules: list[str]) -> dict[str, Verdict]:
    """The object has no interface; no other rule can be judged."""
    broken = Verdict(
        Outcome.FAIL, expected="an object that exports its memory", actual=no_interface(kind)
    )
    return _all_by_request(broken, "the object has no interface", rules)


def _verdicts_of_raising(result: Result, rules: list[str]) -> dict[str, Verdict]:
    """`produce` raised instead of returning or declining; no other rule can be judged."""
    broken = Verdict(
        Outcome.FAIL,
        expected="produce returns an object, or Unsupported(reason)",
        actual=f"produce raised {scrubbed(result.reason)}",
    )
    return _all_by_request(broken, "produce raised", rules)


def _all_by_request(broken: Verdict, why: str, rules: list[str]) -> dict[str, Verdict]:
    """The rule on requests fails, and blocks all others."""
    (request,) = with_role("request")
    blocked = Verdict(Outcome.BLOCKED, note=f"{request}: {why}")
    return {**dict.fromkeys(rules, blocked), request: broken}


def verdicts_of_death(
    result: Result, rules: list[str], outcome: Outcome, plan: Plan | None = None
) -> dict[str, Verdict]:
    """The process died or hung: the rule of its step fails, and the other rules are blocked."""
    prefix = result.step.partition(":")[0]
    failing = rule_of_step(result.step)
    if prefix == "dp" and plan is not None and plan.dtype_info.dlpack is None:
        (failing,) = with_role("undescribed")
    broken = Verdict(
        outcome, expected="the process answers and lives on", actual=scrubbed(result.reason)
    )
    if prefix == "race":
        broken = graded(broken, "ROBUST")
    blocked = Verdict(Outcome.BLOCKED, note=f"{failing}: the process ended at step {result.step}")
    return {**dict.fromkeys(rules, blocked), failing: broken}


def scrubbed(text: str) -> str:
    """A reason without parts that differ between runs: addresses, and the folders of files."""
    text = _ADDRESS.sub("0x…", text)
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)
