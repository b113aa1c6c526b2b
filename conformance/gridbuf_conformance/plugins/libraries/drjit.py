"""Dr.Jit's tensors of the scalar backend, which needs neither LLVM nor CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np
from drjit import scalar

from ...plan import Plan
from ...producers.base import HostProducer, row_major
from .numpy import numpy_dtype

_NAMES = {
    "float64": "TensorXf64",
    "float32": "TensorXf",
    "float16": "TensorXf16",
    "int64": "TensorXi64",
    "int32": "TensorXi",
    "int8": "TensorXi8",
    "uint64": "TensorXu64",
    "uint32": "TensorXu",
    "uint8": "TensorXu8",
    "bool": "TensorXb",
}
_DTYPES = {name: getattr(scalar, kind) for name, kind in _NAMES.items() if hasattr(scalar, kind)}


class DrJitProducer(HostProducer):
    """`drjit.scalar.TensorXf` and the like, of a copy."""

    name = "drjit"
    no_views = "its slices are new arrays"
    capabilities = row_major(_DTYPES)

    def make(self, plan: Plan) -> Any:
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        return _DTYPES[plan.dtype](content)
