"""Apache TVM FFI's `Tensor`: what `tvm_ffi.from_dlpack` makes of NumPy's memory and exports again.

TVM FFI keeps the description of the memory. Its own part is the exchange: the capsules, their
arguments and flags, and the C table.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi

from ...plan import Plan
from ...producer import Capabilities
from ...producers.base import INTEGERS, HostProducer
from .numpy import NumPyProducer

_NUMPY = NumPyProducer()
_DTYPES = ("float64", "float32", "float16", *INTEGERS, "bool")


class TvmFfiProducer(HostProducer):
    """`tvm_ffi.from_dlpack` of a NumPy array, which stays the owner."""

    name = "tvm_ffi"
    no_views = "its tensors have no views"
    capabilities = Capabilities(
        dtypes=_DTYPES, layouts="any", byteorders=("native",), readonly=(False,)
    )

    def make(self, plan: Plan) -> Any:
        return tvm_ffi.from_dlpack(_NUMPY.make(plan))
