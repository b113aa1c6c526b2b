"""Numba's device arrays (`numba.cuda`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import cuda

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import INTEGERS, HostProducer, viewed
from .numpy import numpy_dtype

_DTYPES = ("float64", "float32", *INTEGERS, "complex64", "complex128")


class NumbaProducer(HostProducer):
    """`numba.cuda.to_device` of a host array in the plan's order."""

    name = "numba"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        max_nbytes=2**26,
        layouts="CF",
        byteorders=("native",),
        readonly=(False,),
        devices=("gpu",),
    )

    def make(self, plan: Plan) -> Any:
        order: Any = "C" if plan.layout in (None, (*range(plan.ndim),)) else "F"
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        return cuda.to_device(np.array(content, order=order))

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        if operation[0] == "broadcast":
            return Unsupported("numba: its device arrays do not broadcast")
        return viewed(obj, operation, broadcast=None)
