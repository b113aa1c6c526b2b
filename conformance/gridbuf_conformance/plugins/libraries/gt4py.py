"""GT4Py's plain-array allocators (`gt4py.storage`), judged by the storage spec's allocation rules.

Layout and alignment are not arguments there: they belong to a named preset. So each request
registers a separate preset through the public `gt4py.storage.register`. The alignment of a preset
is a number of elements (the code multiplies by the item size), so the plan's bytes become the least
multiple of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt4py.storage
import numpy as np

from ...plan import ALIGNMENT_LIMIT_BYTES, Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import INTEGERS, HostProducer
from .numpy import NumPyProducer, numpy_dtype, write_content

_DTYPES = ("float64", "float32", *INTEGERS, "bool")
_PRESET = "gridbuf-conformance"


class GT4PyProducer(HostProducer):
    """`gt4py.storage.empty` with a preset that has the plan's layout and alignment."""

    name = "gt4py"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        layouts="any",
        alignment_bytes=(1, ALIGNMENT_LIMIT_BYTES),
        byteorders=("native",),
        readonly=(False,),
        declares=frozenset({"layout", "alignment_size", "aligned_index"}),
    )

    def make(self, plan: Plan) -> np.ndarray | Unsupported:
        if 0 in plan.shape:
            return Unsupported("gt4py: extents must be positive")
        self._register_preset(plan)
        result = gt4py.storage.empty(
            plan.shape, numpy_dtype(plan), backend=_PRESET, aligned_index=plan.aligned_element
        )
        write_content(result, plan)
        return result

    @staticmethod
    def _register_preset(plan: Plan) -> None:
        layout = tuple(range(plan.ndim)) if plan.layout is None else plan.layout
        preset = gt4py.storage.layout.LayoutInfo(
            alignment=math.lcm(plan.alignment_size, plan.itemsize) // plan.itemsize,
            device="cpu",
            layout_map=lambda dimensions: layout,
            is_optimal_layout=lambda field, dimensions: True,
        )
        gt4py.storage.register(_PRESET, preset)

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)
