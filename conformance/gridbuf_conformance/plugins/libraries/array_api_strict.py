"""array-api-strict's arrays: the standard and nothing else, over NumPy's memory.

The memory and its buffer are NumPy's, so that by default it answers for the methods that are its
own: those of DLPack, and what they say next to the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_strict as xp

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import INTEGERS, HostProducer, viewed
from .numpy import NumPyProducer

_NUMPY = NumPyProducer()
_DTYPES = ("float64", "float32", *INTEGERS, "bool", "complex64", "complex128")


class StrictProducer(HostProducer):
    """`array_api_strict.asarray` of a NumPy array, without a copy."""

    name = "array_api_strict"
    capabilities = Capabilities(
        dtypes=_DTYPES, layouts="any", byteorders=("native",), readonly=(False, True)
    )

    def make(self, plan: Plan) -> Any:
        return xp.asarray(_NUMPY.make(plan), copy=False)

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        name, *arguments = operation
        if name == "transpose":
            return xp.permute_dims(obj, tuple(arguments[0]))
        if name == "slice" and arguments[1] is None and arguments[2] is None:
            return viewed(obj, operation, broadcast=xp.broadcast_to)
        if name in ("newaxis", "reverse", "empty"):
            axis = arguments[0]
            selected = {"newaxis": None, "reverse": slice(None, None, -1), "empty": slice(0, 0)}[
                name
            ]
            return obj[(*(slice(None),) * axis, selected, ...)]
        return Unsupported(f"array_api_strict: {name} of {arguments} is not in the standard")


class DeviceProducer(StrictProducer):
    """Arrays on the devices "device1" and "device2", which are names: the memory is the host's."""

    name = "array_api_strict.devices"

    def make(self, plan: Plan) -> Any:
        device = xp.Device(f"device{1 + (plan.fill or 0) % 2}")
        return xp.asarray(_NUMPY.make(plan), device=device, copy=False)
