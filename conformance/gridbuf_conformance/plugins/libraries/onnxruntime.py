"""ONNX Runtime's `OrtValue`: a session's input or output; on the host it shares NumPy's memory."""

from __future__ import annotations

from typing import Any

import onnxruntime

from ...plan import Plan
from ...producers.base import INTEGERS, HostProducer, row_major
from .numpy import NumPyProducer

_DTYPES = ("float64", "float32", "float16", *INTEGERS, "bool")


class OrtValueProducer(HostProducer):
    """`OrtValue.ortvalue_from_numpy` on the processor."""

    name = "onnxruntime"
    no_views = "a value has no views"
    capabilities = row_major(_DTYPES, readonly=(False, True))

    def make(self, plan: Plan) -> Any:
        return onnxruntime.OrtValue.ortvalue_from_numpy(NumPyProducer().make(plan))
