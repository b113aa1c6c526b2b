"""The decorators that join a check to its rule, a row in the `rules.toml` of its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..exports.consumption import Consumption
from ..outcomes import Verdict
from .subject import Subject

Function = Callable[[Subject], Verdict]
Decide = Callable[[Consumption, "Consumption | None"], Verdict]


@dataclass(frozen=True)
class Check:
    """One check of a producer.

    `needs` names the interface without which it does not apply; `believable` says that it also
    needs that interface's descriptor, so that it is blocked by the rule that rejects it; `once`
    keeps it off views.
    """

    function: Function
    needs: str | None = None
    believable: bool = False
    once: bool = False


CHECKS: dict[str, Check] = {}
CONSUMER_CHECKS: dict[str, Decide] = {}
"""A check gets the export's `Consumption`, and that of its plain form where there was one. It is
only asked about exports whose variant names the rule."""


def check(
    rule: str, *, needs: str | None = None, believable: bool = False, once: bool = False
) -> Callable[[Function], Function]:
    """Registers the decorated function as the check of a rule for producers."""

    def register(function: Function) -> Function:
        _refuse_second(rule, rule in CHECKS)
        CHECKS[rule] = Check(function, needs, believable, once)
        return function

    return register


def consumer_check(*rules: str) -> Callable[[Decide], Decide]:
    """Registers the decorated function as the check of these rules for consumers."""

    def register(function: Decide) -> Decide:
        for rule in rules:
            _refuse_second(rule, rule in CONSUMER_CHECKS)
            CONSUMER_CHECKS[rule] = function
        return function

    return register


def _refuse_second(rule: str, known: bool) -> None:
    if known:
        raise ValueError(f"{rule} has two checks for one side; decide it in one place")
