"""The table of consumer checks: rule id → the function that decides it for a consumer.

A check gets the export's `Consumption`, and that of its plain form where there was one. It is only
asked about exports whose variant names the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..exports.consumption import Consumption
from ..outcomes import Verdict

__all__ = ["CONSUMER_CHECKS", "ConsumerCheck", "consumer_check"]

Decide = Callable[[Consumption, "Consumption | None"], Verdict]


@dataclass(frozen=True)
class ConsumerCheck:
    """One consumer check. `name` is what the catalogue's `consumer_check` holds."""

    rule: str
    function: Decide

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"


CONSUMER_CHECKS: dict[str, ConsumerCheck] = {}


def consumer_check(*rules: str) -> Callable[[Decide], Decide]:
    """Registers the decorated function as the consumer check of these rules."""

    def register(function: Decide) -> Decide:
        for rule in rules:
            if rule in CONSUMER_CHECKS:
                raise ValueError(f"{rule} has two consumer checks; decide it in one place")
            CONSUMER_CHECKS[rule] = ConsumerCheck(rule, function)
        return function

    return register
