"""Outcomes of rules, the verdict of one rule on one plan, and the exit codes of the command.

A *verdict* is what the judge says about one rule on one plan. A rule's *outcome* over a whole run
is the worst of its verdicts, by the order of `worst`. A run's *exit code* follows from its rules'
outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

__all__ = ["FAILED", "ExitCode", "Outcome", "Verdict", "exit_code_of", "worst"]


class Outcome(str, Enum):
    """What became of one rule. The values are the words that reports print."""

    PASS = "PASS"
    FAIL = "FAIL"  # a MUST is broken
    ADVISORY = "ADVISORY"  # a SHOULD is not met, or published texts contradict each other here
    BLOCKED = "BLOCKED"  # a precondition failed, so this rule could say nothing of its own
    UNSUPPORTED = "UNSUPPORTED"  # the producer declined, or the object has no such interface
    UNTESTED = "UNTESTED"  # this machine or this run cannot decide it
    XFAIL = "XFAIL"  # a known failure, and it still fails the same way
    XPASS = "XPASS"  # a known failure that no longer fails: the list of known failures is stale
    CRASH = "CRASH"  # the producer's process died
    TIMEOUT = "TIMEOUT"  # the producer did not answer in time
    UNSTABLE = "UNSTABLE"  # the process died once and survived the same plan in a fresh worker
    ERROR = "ERROR"  # the suite itself went wrong

    def __str__(self) -> str:
        return self.value


FAILED = frozenset({Outcome.FAIL, Outcome.XPASS, Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNSTABLE})
"""The outcomes that make a producer non-conformant (exit code 1)."""


class ExitCode(IntEnum):
    """Exit codes of the command and of `Report.exit_code`."""

    CONFORMANT = 0
    NOT_CONFORMANT = 1
    USAGE = 2
    SUITE_ERROR = 3
    CANNOT_LOAD = 4
    NOTHING_SELECTED = 5


@dataclass(frozen=True)
class Verdict:
    """The judge's word on one rule for one plan.

    `expected` and `actual` are short sentences without addresses or absolute paths; `note` explains
    a verdict that is no failure (the blocking rule's id, the reason of a refusal); `drawing` is the
    data of a layout drawing, or None.
    """

    outcome: Outcome
    expected: str = ""
    actual: str = ""
    note: str = ""
    drawing: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """Whether this verdict counts against the producer."""
        return self.outcome in FAILED


_WORST_FIRST = (
    Outcome.CRASH,
    Outcome.TIMEOUT,
    Outcome.UNSTABLE,
    Outcome.FAIL,
    Outcome.XPASS,
    Outcome.ERROR,
    Outcome.XFAIL,
    Outcome.ADVISORY,
    Outcome.PASS,
    Outcome.BLOCKED,
    Outcome.UNTESTED,
    Outcome.UNSUPPORTED,
)
_SEVERITY = {outcome: rank for rank, outcome in enumerate(_WORST_FIRST)}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a rule over many plans; UNTESTED when there was none.

    A rule that passed somewhere and was unsupported elsewhere has passed: PASS stands above
    BLOCKED, UNTESTED and UNSUPPORTED because those say nothing about the producer.
    """
    return min(outcomes, key=_SEVERITY.__getitem__, default=Outcome.UNTESTED)


def exit_code_of(outcomes: Iterable[Outcome]) -> ExitCode:
    """The exit code for the outcomes of all selected rules: a suite error outweighs a failure."""
    seen = set(outcomes)
    if not seen:
        return ExitCode.NOTHING_SELECTED
    if Outcome.ERROR in seen:
        return ExitCode.SUITE_ERROR
    return ExitCode.NOT_CONFORMANT if seen & FAILED else ExitCode.CONFORMANT
