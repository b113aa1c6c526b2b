"""NumPy arrays of ml_dtypes' element types, whose names and sizes come from ml_dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ...plan import Plan
from ...producers.base import HostProducer, row_major
from .numpy import NumPyProducer

_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


class MlDtypesProducer(HostProducer):
    """`numpy.array` of `ml_dtypes.bfloat16` and the 8-bit floats."""

    name = "ml_dtypes"
    capabilities = row_major(_DTYPES, readonly=(False, True))

    def make(self, plan: Plan) -> np.ndarray:
        dtype = np.dtype(getattr(ml_dtypes, plan.dtype))
        result = np.frombuffer(plan.content(), dtype).reshape(plan.shape).copy()
        result.flags.writeable = not plan.readonly
        return result

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)
