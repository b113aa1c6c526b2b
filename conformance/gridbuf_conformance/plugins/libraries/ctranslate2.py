"""CTranslate2's `StorageView`, as input and output; of a NumPy array it shares the memory."""

from __future__ import annotations

from typing import Any

import ctranslate2
import numpy as np

from ...plan import Plan
from ...producers.base import HostProducer, row_major
from .numpy import numpy_dtype

_DTYPES = ("float32", "float16", "int32", "int16", "int8", "bfloat16")


class StorageViewProducer(HostProducer):
    """`StorageView.from_array`; bfloat16 by a conversion that is exact."""

    name = "ctranslate2"
    no_views = "a StorageView has no views"
    capabilities = row_major(_DTYPES, min_ndim=1)

    def make(self, plan: Plan) -> Any:
        if plan.dtype != "bfloat16":
            content = np.frombuffer(bytearray(plan.content()), numpy_dtype(plan))
            return ctranslate2.StorageView.from_array(content.reshape(plan.shape))
        upper_halves = np.frombuffer(plan.content(), np.uint16).astype(np.uint32) << 16
        as_float32 = upper_halves.view(np.float32).reshape(plan.shape)
        return ctranslate2.StorageView.from_array(as_float32).to(ctranslate2.DataType.bfloat16)
