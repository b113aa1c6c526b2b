"""Exports of an object with three interfaces that disagree in one property.

Each interface of it is right, and leads to memory with the elements of the plan, except that of an
unknown device. So a consumer that follows one interface gets the right array. A consumer that takes
the address from one and the strides, the device or the read-only flag from another does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...plan import Plan
from ...exports import plans
from ..buffer_protocol.answers import BytesExporter
from ..dlpack_protocol.exports import PLAIN_CAPABILITIES
from ...exports.export import (
    PLAIN,
    Export,
    Interface,
    ObservedExport,
    Variant,
    export_of,
    interface_of,
)
from ...exports.memory import Block

_PARTS = ("buffer", "array-interface", "dlpack")


@dataclass(frozen=True)
class SeveralVariant(Variant):
    """`apart`: how the plan of some interfaces differs; each of them has a separate block.
    `tensor`: the export through DLPack."""

    apart: Mapping[str, Callable[[Plan], Plan]] = field(default_factory=dict)
    tensor: str = "dlpack"


class _Exporter(BytesExporter):
    def __init__(self, buffer: Any, array: Any, tensor: Any) -> None:
        super().__init__(buffer)
        self._array, self._tensor = array, tensor

    @property
    def __array_interface__(self) -> Any:
        return self._array.answer()

    def __dlpack_device__(self) -> Any:
        return self._tensor.device

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._tensor.hand_out(arguments, keywords)


class ObservedSeveral(ObservedExport):
    """An exporter with a buffer, `__array_interface__` and `__dlpack__`."""

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        variant = self.variant
        assert isinstance(variant, SeveralVariant)
        self._parts = []
        for name in (*_PARTS[:2], variant.tensor):
            change = variant.apart.get(name.partition(":")[0])
            mine = block if change is None else Block(change(block.plan))
            self._parts.append(interface_of(name).make(export_of(mine.plan, name), mine))
        self.make(lambda _: _Exporter(*self._parts))

    def was_asked(self) -> bool:
        return any(part.was_asked() for part in self._parts)

    def is_free(self) -> bool:
        return super().is_free() and all(part.is_free() for part in self._parts)

    def forget(self) -> None:
        super().forget()
        for part in self._parts:
            part.forget()

    def close(self) -> None:
        super().close()
        for part in self._parts:
            part.close()


# -- variants ------------------------------------------------------------------------------------


def _rows(plan: Plan) -> Plan:
    """At least two rows of two elements: their order in memory can be another one."""
    shape = (1, 1, *plans.plain(plan).shape)
    return plans.plain(plan).replaced(
        shape=(*shape[2:-2], *(max(extent, 2) for extent in shape[-2:]))
    )


def _in_columns(plan: Plan) -> Plan:
    return plan.replaced(layout=tuple(reversed(range(plan.ndim))))


def _elsewhere(name: str) -> Variant:
    about = f"{name} leads to other memory, where the same elements are in another order"
    more: dict[str, Any] = {"adapt": _rows, "apart": {name: _in_columns}, "is_robust": True}
    return SeveralVariant(f"{name}-elsewhere", ("XA-15",), "right-or-error", about, **more)


def _read_only(name: str) -> Variant:
    about = f"{name} alone leads to read-only memory, which has the same elements"
    others = dict.fromkeys(set(_PARTS) - {name}, plans.plain)
    more: dict[str, Any] = {"adapt": plans.readonly, "apart": others}
    return SeveralVariant(f"{name}-read-only", ("XA-06",), "right-or-error", about, **more)


_VARIANTS: tuple[Variant, ...] = (
    SeveralVariant(PLAIN, ("XA-15", "XA-06"), "right-or-error", "they agree", adapt=_rows),
    *map(_elsewhere, _PARTS),
    *map(_read_only, _PARTS),
    SeveralVariant(
        "dlpack-device",
        ("XA-15",),
        "right-or-error",
        "DLPack alone leads to a device that there is none of, with other elements",
        adapt=plans.plain,
        is_robust=True,
        apart={"dlpack": Plan.with_other_content},
        tensor="dlpack:unknown-device",
    ),
)

INTERFACES = (
    Interface(
        "several",
        "a buffer, __array_interface__ and __dlpack__ of one object",
        ("XA",),
        replace(PLAIN_CAPABILITIES, dtypes=("float64", "float32", "int32", "uint8")),
        ObservedSeveral,
        _VARIANTS,
        taken_rule="XA-15",
        position=80,
    ),
)
