"""The offer: the plan of one case for a consumer.

It is a `Plan` with one key more. The keys of a plan say what memory is offered (shape, element
type, read-only, the content) and, by `views`, how its elements lie: reversed axes have negative
strides, broadcast ones stride 0. The key `offer` says through which interface, and with which
twist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..plan import UNTOUCHED_FROM_BYTES, Plan
from .registry import interface_of, split, twist_of
from .twist import PLAIN, Interface, Twist

__all__ = ["Offer", "offered", "plan_of_dict"]


@dataclass(frozen=True)
class Offer(Plan):
    """A plan's array, offered through `offer`: "INTERFACE" or "INTERFACE:TWIST".

    Raises ValueError as a plan does, for an interface or a twist that there is not, and where the
    twist does not fit the array.
    """

    offer: str = "dlpack"

    @property
    def interface(self) -> Interface:
        return interface_of(self.offer)

    @property
    def twist(self) -> Twist:
        return twist_of(self.offer)

    @property
    def plan(self) -> Plan:
        """The array alone."""
        return Plan(**{key: self[key] for key in Plan.keys_of()})

    @cached_property
    def has_unusual_strides(self) -> bool:
        """Whether an axis of several elements is walked backwards, or not at all."""
        view = self.view_map
        if 0 in view.shape:
            return False
        return any(step <= 0 for extent, step in zip(view.shape, view.steps) if extent > 1)

    @property
    def kind(self) -> str:
        """The offer with what is unusual about its array: what a consumer dies of is one of these."""
        view = self.view_map
        steps = [step for extent, step in zip(view.shape, view.steps) if extent > 1]
        marks = {
            "no elements": 0 in view.shape,
            "no dimensions": not view.shape,
            "negative strides": any(step < 0 for step in steps),
            "zero strides": any(step == 0 for step in steps),
            "read-only": self.readonly,
        }
        named = [mark for mark, holds in marks.items() if holds]
        return self.offer + (f" with {' and '.join(named)}" if named else "")

    @property
    def control(self) -> Offer | None:
        """The plain offer that a consumer must have taken before a refusal of this one counts.

        None for the plain offer of an interface that stands for itself.
        """
        interface, twist = self.interface, self.twist
        if twist.name == PLAIN:
            return None if interface.base is None else offered(self.plan, interface.base)
        return offered(twist.control(self.plan), interface.name)

    def validate(self) -> None:
        """Raises ValueError naming the value, its bound and what to do."""
        super().validate()
        twist = twist_of(self.offer)
        if split(self.offer)[1] == PLAIN and ":" in self.offer:
            raise ValueError(f"offer is {self.offer!r}, the plain one is written without a colon")
        if self.fill is None or self.nbytes >= UNTOUCHED_FROM_BYTES:
            raise ValueError("plan key 'fill' is None, must be a seed: offers have content")
        misfit = twist.misfit(self.plan)
        if misfit:
            raise ValueError(f"offer {self.offer!r} does not fit this plan: {misfit}; change it")


def offered(plan: Plan, written: str) -> Offer:
    """A plan's array as an offer; raises as the constructor."""
    return Offer(**{key: plan[key] for key in Plan.keys_of()}, offer=written)


def plan_of_dict(raw: str | Mapping[str, Any], *, side: str = "producer") -> Plan:
    """The plan or the offer of a JSON object, by the side that it is for; raises ValueError."""
    return (Offer if side == "consumer" else Plan).from_json(raw)
