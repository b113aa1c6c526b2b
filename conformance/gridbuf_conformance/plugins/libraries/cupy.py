"""CuPy's `ndarray`: device memory, and managed and pinned memory through its allocators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np

from ...plan import Plan
from ...producer import Capabilities
from ...producers.base import INTEGERS, HostProducer, viewed
from .numpy import numpy_dtype

_DTYPES = ("float64", "float32", "float16", *INTEGERS, "bool", "complex64", "complex128")


class CuPyProducer(HostProducer):
    """`cupy.empty` in row-major order of the transposed shape, transposed back."""

    name = "cupy"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        layouts="any",
        byteorders=("native",),
        readonly=(False,),
        devices=("gpu", "managed"),
    )

    def on_stream(self, stream: int) -> Any:
        return cp.cuda.ExternalStream(stream)

    def make(self, plan: Plan) -> cp.ndarray:
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
        shape = [plan.shape[axis] for axis in slowest_first]
        allocate = cp.cuda.malloc_managed if plan.device == "managed" else cp.cuda.alloc
        with cp.cuda.using_allocator(allocate):
            result = cp.empty(shape, numpy_dtype(plan)).transpose(layout)
        if plan.fill is not None and plan.nbytes:
            content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
            result[...] = cp.asarray(content)
        return result

    def apply_view(self, obj: cp.ndarray, operation: Sequence[Any]) -> cp.ndarray:
        return viewed(obj, operation, broadcast=cp.broadcast_to)
