"""OpenUSD's `Vt` arrays of numbers; the buffers they export are read-only."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Usd, Vt

from ...plan import Plan
from ...producers.base import HostProducer, row_major
from .numpy import numpy_dtype

_ARRAYS = {
    **{"float64": "DoubleArray", "float32": "FloatArray", "float16": "HalfArray"},
    **{"int64": "Int64Array", "int32": "IntArray", "int16": "ShortArray"},
    **{"uint64": "UInt64Array", "uint32": "UIntArray", "uint16": "UShortArray"},
    **{"uint8": "UCharArray", "bool": "BoolArray"},
}


class VtProducer(HostProducer):
    """`Vt.DoubleArray` and the like, of a copy."""

    name = "usd"
    no_views = "slices of its arrays are copies"
    capabilities = row_major(_ARRAYS, min_ndim=1, max_ndim=1, readonly=(True,))

    def version(self) -> str:
        return ".".join(map(str, Usd.GetVersion()))

    def make(self, plan: Plan) -> Any:
        content = np.frombuffer(plan.content(), numpy_dtype(plan))
        return getattr(Vt, _ARRAYS[plan.dtype]).FromNumpy(content)
