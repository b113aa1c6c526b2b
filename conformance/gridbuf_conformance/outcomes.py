"""Outcomes of rules, the verdict of one rule on one plan, and the exit codes of the command.

A *verdict* is the result of one rule on one plan. The *outcome* of a rule over a whole run is its
worst verdict, in the order of `worst`. The *exit code* of a run follows from the outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import Any


class Outcome(str, Enum):
    """The result of one rule. The values are the words in reports."""

    PASS = "PASS"
    FAIL = "FAIL"  # a MUST is broken
    ADVISORY = "ADVISORY"  # a SHOULD is not met, or published texts contradict each other here
    FRAGILE = "FRAGILE"  # a ROBUST rule is not met: no text demands it, and a good library survives
    BLOCKED = "BLOCKED"  # a precondition failed, so this rule could not be judged
    UNSUPPORTED = "UNSUPPORTED"  # the producer declined, or the object has no such interface
    UNTESTED = "UNTESTED"  # this machine or this run cannot decide it
    XFAIL = "XFAIL"  # a known failure, and it still fails the same way
    XPASS = "XPASS"  # a known failure that no longer fails: its record is out of date
    CRASH = "CRASH"  # the producer's process died
    TIMEOUT = "TIMEOUT"  # the producer did not answer in time
    UNSTABLE = "UNSTABLE"  # the process died once and survived the same plan in a fresh worker
    ERROR = "ERROR"  # the suite itself failed

    def __str__(self) -> str:
        return self.value


FAILED = frozenset({Outcome.FAIL, Outcome.XPASS, Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNSTABLE})
"""The outcomes that make a producer non-conformant (exit code 1)."""


class ExitCode(IntEnum):
    """Exit codes of all commands, and of `Report.exit_code`."""

    CONFORMANT = 0, "conforms; other commands: done"
    NOT_CONFORMANT = 1, "does not conform; interop --compare: a cell differs"
    USAGE = 2, "wrong usage: an unknown name, option or key, or a file that cannot be used"
    SUITE_ERROR = 3, "the suite itself failed"
    CANNOT_LOAD = 4, "a library or target cannot be loaded or is not installed"
    NOTHING_SELECTED = 5, "nothing was judged; interop: no pair was run"
    INTERRUPTED = 130, "interrupted: no report is written"

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> ExitCode:
        """An exit code with its meaning in words."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


@dataclass(frozen=True)
class Verdict:
    """The result of one rule for one plan.

    Parameters
    ----------
    outcome : Outcome
        The result.
    expected, actual : str
        Short sentences without addresses or absolute paths.
    note : str
        Explains a verdict that is not a failure: the id of the blocking rule, or the reason of a
        refusal.
    drawing : dict, optional
        The data of a layout drawing.
    blocks : bool
        Whether a failure blocks the rules that build on this one. False if it is about something
        besides what they look at.
    """

    outcome: Outcome
    expected: str = ""
    actual: str = ""
    note: str = ""
    drawing: dict[str, Any] | None = None
    blocks: bool = True

    @property
    def failed(self) -> bool:
        """Whether this verdict is a failure of the producer."""
        return self.outcome in FAILED


_WORST_FIRST = (
    Outcome.CRASH,
    Outcome.TIMEOUT,
    Outcome.UNSTABLE,
    Outcome.FAIL,
    Outcome.XPASS,
    Outcome.ERROR,
    Outcome.XFAIL,
    Outcome.FRAGILE,
    Outcome.ADVISORY,
    Outcome.PASS,
    Outcome.BLOCKED,
    Outcome.UNTESTED,
    Outcome.UNSUPPORTED,
)
_SEVERITY = {outcome: rank for rank, outcome in enumerate(_WORST_FIRST)}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a rule over many plans; UNTESTED if there are no plans.

    A rule that passed on one plan and was unsupported on another plan has passed. PASS ranks above
    BLOCKED, UNTESTED and UNSUPPORTED, because these three say nothing about the producer.
    """
    return min(outcomes, key=_SEVERITY.__getitem__, default=Outcome.UNTESTED)


def graded(verdict: Verdict, level: str) -> Verdict:
    """A verdict in view of the level of its rule: only a MUST fails a run.

    A rule of level ROBUST is FRAGILE also if the process dies or hangs. A process that dies on a
    SHOULD is a CRASH.
    """
    if level == "ROBUST" and verdict.failed:
        if verdict.outcome is Outcome.FAIL:
            return replace(verdict, outcome=Outcome.FRAGILE)
        died = f"{verdict.outcome}: {verdict.actual}"
        return replace(verdict, outcome=Outcome.FRAGILE, actual=died)
    if verdict.outcome is Outcome.FAIL and level != "MUST":
        return replace(verdict, outcome=Outcome.ADVISORY)
    return verdict


def exit_code_of(outcomes: Iterable[Outcome]) -> ExitCode:
    """The exit code for the outcomes of all selected rules; a suite error precedes a failure."""
    seen = set(outcomes)
    if not seen:
        return ExitCode.NOTHING_SELECTED
    if Outcome.ERROR in seen:
        return ExitCode.SUITE_ERROR
    if Outcome.BLOCKED in seen and seen <= {Outcome.BLOCKED, Outcome.UNSUPPORTED, Outcome.UNTESTED}:
        return ExitCode.NOTHING_SELECTED  # what blocks is not among the selected rules
    return ExitCode.NOT_CONFORMANT if seen & FAILED else ExitCode.CONFORMANT


def exit_code_of_all(codes: Iterable[int]) -> ExitCode:
    """The exit code of several runs: the first of 3, 1 and 5 that one of them has, else 0."""
    seen = set(codes)
    order = (ExitCode.SUITE_ERROR, ExitCode.NOT_CONFORMANT, ExitCode.NOTHING_SELECTED)
    return next((code for code in order if code in seen), ExitCode.CONFORMANT)
