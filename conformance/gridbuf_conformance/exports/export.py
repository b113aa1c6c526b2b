"""The export: the plan of one case for a consumer.

It is a `Plan` with one key more. The keys of a plan say what memory is exported (shape, element
type, read-only, the content) and, by `views`, how its elements lie: reversed axes have negative
strides, broadcast ones stride 0. The key `export` says through which interface, and with which
variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from ..plan import UNTOUCHED_FROM_BYTES, Plan
from .registry import interface_of, split, variant_of
from .variant import PLAIN, Interface, Variant

__all__ = ["Export", "export_of", "plan_of_dict"]


@dataclass(frozen=True)
class Export(Plan):
    """A plan's array, exported through `export`: "INTERFACE" or "INTERFACE:VARIANT".

    Raises ValueError as a plan does, for an interface or a variant that there is not, and where the
    variant does not fit the array.
    """

    RENAMED: ClassVar[Mapping[str, str]] = MappingProxyType({"offer": "export"})

    export: str = "dlpack"

    @property
    def interface(self) -> Interface:
        return interface_of(self.export)

    @property
    def variant(self) -> Variant:
        return variant_of(self.export)

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
        """The kind of the export, with the unusual properties of its array: one of them causes a crash."""
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
        return self.export + (f" with {' and '.join(named)}" if named else "")

    @property
    def control(self) -> Export | None:
        """The plain export that a consumer must have taken before a refusal of this one counts.

        None for the plain export of an interface without a base.
        """
        interface, variant = self.interface, self.variant
        if variant.name == PLAIN:
            return None if interface.base is None else export_of(self.plan, interface.base)
        return export_of(variant.control(self.plan), interface.name)

    def validate(self) -> None:
        """Raises ValueError naming the value, its bound and what to do."""
        super().validate()
        variant = variant_of(self.export)
        if split(self.export)[1] == PLAIN and ":" in self.export:
            raise ValueError(f"export is {self.export!r}, the plain one is written without a colon")
        if self.fill is None or self.nbytes >= UNTOUCHED_FROM_BYTES:
            raise ValueError("plan key 'fill' is None, must be a seed: exports have content")
        misfit = variant.misfit(self.plan)
        if misfit:
            raise ValueError(f"export {self.export!r} does not fit this plan: {misfit}; change it")


def export_of(plan: Plan, written: str) -> Export:
    """A plan's array as an export; raises as the constructor."""
    return Export(**{key: plan[key] for key in Plan.keys_of()}, export=written)


def plan_of_dict(raw: str | Mapping[str, Any], *, side: str = "producer") -> Plan:
    """The plan or the export of a JSON object, by the side that it is for; raises ValueError."""
    return (Export if side == "consumer" else Plan).from_json(raw)
