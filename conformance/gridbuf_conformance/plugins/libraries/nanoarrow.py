"""nanoarrow's buffers: `CBufferView`, the typed view of an Arrow array's buffer, read-only."""

from __future__ import annotations

from typing import Any

import nanoarrow
import numpy as np
from nanoarrow.c_buffer import CBufferBuilder

from ...plan import Plan
from ...producers.base import FlatBytesProducer, HostProducer, row_major
from .numpy import numpy_dtype

_TYPES = {
    **{"float64": nanoarrow.float64, "float32": nanoarrow.float32, "float16": nanoarrow.float16},
    **{
        f"{sign}int{bits}": getattr(nanoarrow, f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (64, 32, 16, 8)
    },
}


class BuilderProducer(FlatBytesProducer):
    """`CBufferBuilder`: bytes that can be appended to while nothing is exported."""

    name = "nanoarrow.builder"

    def make(self, plan: Plan) -> Any:
        builder = CBufferBuilder()
        builder.write(plan.content())
        return builder


class NanoarrowProducer(HostProducer):
    """The data buffer of `nanoarrow.c_array_from_buffers`."""

    name = "nanoarrow"
    no_views = "a buffer has no views"
    capabilities = row_major(_TYPES, min_ndim=1, max_ndim=1, readonly=(True,))

    def make(self, plan: Plan) -> Any:
        content = np.frombuffer(plan.content(), numpy_dtype(plan))
        array = nanoarrow.c_array_from_buffers(
            _TYPES[plan.dtype](), len(content), [None, content], null_count=0
        )
        return array.view().buffer(1)
