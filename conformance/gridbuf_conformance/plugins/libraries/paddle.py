"""PaddlePaddle's tensors on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import TOUCHED_BYTES, HostProducer, viewed
from .numpy import numpy_dtype

_DTYPES = (
    *("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"),
    *("complex64", "complex128", "bfloat16"),
)


class PaddleProducer(HostProducer):
    """`paddle.to_tensor` of a copy, transposed for other layouts; at most 9 dimensions."""

    name = "paddle"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        max_ndim=9,
        max_nbytes=TOUCHED_BYTES,
        layouts="any",
        byteorders=("native",),
        readonly=(False,),
    )

    def __init__(self) -> None:
        paddle.set_device("cpu")

    def make(self, plan: Plan) -> Any:
        # Paddle takes NumPy's uint16 for bfloat16.
        dtype = np.dtype(np.uint16) if plan.dtype == "bfloat16" else numpy_dtype(plan)
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
        content = np.frombuffer(plan.content(), dtype).reshape(plan.shape)
        tensor = paddle.to_tensor(np.ascontiguousarray(content.transpose(slowest_first)))
        if plan.ndim == 0:
            return tensor.reshape([])
        return tensor.transpose(list(layout))

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        name, *arguments = operation
        if name == "transpose":
            return obj.transpose(list(arguments[0])) if arguments[0] else obj
        if name == "slice" and arguments[3] > 0:
            return viewed(obj, operation, broadcast=lambda tensor, shape: tensor)
        return Unsupported(f"paddle: no {name} of {arguments} without a copy")
