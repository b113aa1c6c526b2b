"""The table of checks: rule id → the function that decides it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..outcomes import Verdict
from .subject import Subject

Function = Callable[[Subject], Verdict]

__all__ = ["CHECKS", "Check", "check"]


@dataclass(frozen=True)
class Check:
    """One check.

    `needs` names the interface without which it does not apply; `believable` says that it also needs that
    interface's descriptor, so that it is blocked by the rule that rejects it; `once` keeps it off views.
    """

    rule: str
    function: Function
    needs: str | None
    believable: bool
    once: bool

    @property
    def name(self) -> str:
        """What the catalogue's `check` column holds: module.function."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"


CHECKS: dict[str, Check] = {}


def check(
    rule: str, *, needs: str | None = None, believable: bool = False, once: bool = False
) -> Callable[[Function], Function]:
    """Registers the decorated function as the check of `rule`."""

    def register(function: Function) -> Function:
        if rule in CHECKS:
            raise ValueError(f"{rule} has two checks; one rule is decided in one place")
        CHECKS[rule] = Check(rule, function, needs, believable, once)
        return function

    return register
