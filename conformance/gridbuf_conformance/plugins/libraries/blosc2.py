"""Blosc2's `NDArray`: compressed; `__array_interface__` exports a decompressed copy."""

from __future__ import annotations

import blosc2
import numpy as np

from ...plan import Plan
from ...producers.base import HostProducer, row_major
from .numpy import NumPyProducer, numpy_dtype

_DTYPES = tuple(
    name
    for name in NumPyProducer.capabilities.dtypes or ()
    if name not in ("struct", "padded", "str1", "longdouble", "clongdouble")
)


class Blosc2Producer(HostProducer):
    """`blosc2.asarray` of a NumPy array, of at most 8 dimensions: Blosc2's own limit."""

    name = "blosc2"
    no_views = "its slices are new arrays"
    capabilities = row_major(_DTYPES, min_ndim=1, max_ndim=8, max_nbytes=2**22)

    def make(self, plan: Plan) -> blosc2.NDArray:
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        return blosc2.asarray(content.copy())
