"""PyArrow's arrays (1-d, DLPack); tensors (n-d) and buffers (bytes), by the buffer protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import INTEGERS, TOUCHED_BYTES, HostProducer, flat_bytes, row_major
from .numpy import MAX_NDIM, NumPyProducer, numpy_dtype

_DTYPES = ("float64", "float32", "float16", *INTEGERS)


class _ArrowProducer(HostProducer):
    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        name, *arguments = operation
        if name == "slice" and isinstance(obj, pyarrow.Array) and arguments[3] == 1:
            start, stop = arguments[1] or 0, arguments[2]
            return obj.slice(start, None if stop is None else max(stop - start, 0))
        return Unsupported(f"pyarrow: it has slices of arrays with step 1, not {name}")


class ArrayProducer(_ArrowProducer):
    """`pyarrow.Array` over a buffer of Arrow's own memory; arrays are immutable."""

    name = "pyarrow"
    capabilities = row_major(_DTYPES, min_ndim=1, max_ndim=1, readonly=(True,))

    def make(self, plan: Plan) -> pyarrow.Array:
        buffer = pyarrow.allocate_buffer(plan.nbytes)
        memoryview(buffer).cast("B")[:] = plan.content()
        dtype = pyarrow.from_numpy_dtype(numpy_dtype(plan))
        return pyarrow.Array.from_buffers(dtype, plan.shape[0], [None, buffer])


class NullsProducer(ArrayProducer):
    """Arrays that DLPack has no words for: one element is null, and truth values are bits."""

    name = "pyarrow.nulls"
    capabilities = row_major(
        ("float64", "int32", "bool"), min_ndim=1, max_ndim=1, max_nbytes=2**16, readonly=(True,)
    )
    has_memory = False

    def make(self, plan: Plan) -> pyarrow.Array | Unsupported:
        if not plan.nbytes:
            return Unsupported("pyarrow.nulls: an array without elements has no null")
        content = np.frombuffer(plan.content(), numpy_dtype(plan))
        mask = np.arange(len(content)) == (-1 if plan.dtype == "bool" else 0)
        return pyarrow.array(content, mask=mask)


class TensorProducer(_ArrowProducer):
    """`pyarrow.Tensor` over a NumPy array."""

    name = "pyarrow.tensor"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        min_ndim=1,
        max_ndim=MAX_NDIM,
        max_nbytes=TOUCHED_BYTES,
        layouts="CF",
        byteorders=("native",),
        readonly=(False, True),
    )

    def make(self, plan: Plan) -> pyarrow.Tensor:
        return pyarrow.Tensor.from_numpy(NumPyProducer().make(plan))


class BufferProducer(_ArrowProducer):
    """`pyarrow.Buffer`: of `allocate_buffer`, which can be resized, when it can be written, else of
    bytes. It calls its bytes signed.
    """

    name = "pyarrow.buffer"
    capabilities = flat_bytes(dtype="int8", readonly=(False, True))

    def make(self, plan: Plan) -> pyarrow.Buffer:
        if plan.readonly:
            return pyarrow.py_buffer(bytes(bytearray(plan.content())))
        result = pyarrow.allocate_buffer(plan.nbytes, resizable=True)
        memoryview(result).cast("B")[:] = plan.content()
        return result
