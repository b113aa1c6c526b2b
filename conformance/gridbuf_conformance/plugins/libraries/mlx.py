"""MLX's arrays on the processor. Slices and transposed arrays share memory after evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import mlx.core as mx
import numpy as np

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import TOUCHED_BYTES, HostProducer, viewed
from .numpy import numpy_dtype

mx.set_default_device(mx.cpu)

_DTYPES = (
    *("float32", "float16", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8", "bool", "complex64", "bfloat16"),
)


class MlxProducer(HostProducer):
    """`mlx.core.array` of a copy, transposed for other layouts."""

    name = "mlx"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        max_ndim=32,
        max_nbytes=TOUCHED_BYTES,
        layouts="any",
        byteorders=("native",),
        readonly=(False,),
    )

    def version(self) -> str:
        return version("mlx")

    def make(self, plan: Plan) -> Any:
        special = plan.dtype == "bfloat16"
        dtype = np.dtype(np.uint16) if special else numpy_dtype(plan)
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
        content = np.frombuffer(plan.content(), dtype).reshape(plan.shape)
        memory = mx.array(np.ascontiguousarray(content.transpose(slowest_first)))
        memory = memory.view(mx.bfloat16) if special else memory
        return _evaluated(
            memory.transpose(*layout) if plan.ndim > 1 else memory.reshape(plan.shape)
        )

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        if operation[0] == "transpose" and not operation[1]:
            return obj
        if operation[0] == "broadcast":
            return Unsupported("mlx: broadcasting may copy")
        return _evaluated(viewed(obj, operation, broadcast=mx.broadcast_to))


def _evaluated(array: Any) -> Any:
    mx.eval(array)
    return array
