"""Awkward Array's `Index`: the offsets inside its arrays, the part of it that exports memory.

Its arrays have only `__array__`, which returns NumPy's arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import awkward

from ...plan import Plan
from ...producer import Unsupported
from ...producers.base import HostProducer, row_major, viewed
from .numpy import NumPyProducer

_NUMPY = NumPyProducer()
_DTYPES = ("int64", "int32", "uint32", "int8", "uint8")


class IndexProducer(HostProducer):
    """`awkward.index.Index` over a NumPy array; the element type selects the subclass."""

    name = "awkward"
    capabilities = row_major(_DTYPES, min_ndim=1, max_ndim=1, readonly=(False, True))

    def make(self, plan: Plan) -> awkward.index.Index:
        return awkward.index.Index(_NUMPY.make(plan))

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        if operation[0] in ("slice", "empty") and operation[-1] in (0, 1):
            return viewed(obj, operation, broadcast=lambda index, shape: index)
        return Unsupported(f"awkward: an index has slices with step 1, not {operation[0]}")
