"""MLIR's `DenseElementsAttr`: a program's constants, exported as buffers by JAX's bindings."""

from __future__ import annotations

from typing import Any, cast

import jaxlib
import numpy as np
from jaxlib.mlir import ir

from ...plan import Plan
from ...producer import Capabilities
from ...producers.base import TOUCHED_BYTES, HostProducer
from .numpy import numpy_dtype

_DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16")


class DenseElementsProducer(HostProducer):
    """`DenseElementsAttr.get` of a copy, which keeps equal elements as one, with strides 0."""

    name = "mlir"
    no_views = "an attribute has no views"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        max_nbytes=TOUCHED_BYTES,
        byteorders=("native",),
        readonly=(True,),
    )

    def __init__(self) -> None:
        self._context = ir.Context()  # owns the attributes' memory

    def version(self) -> str:
        return f"jaxlib {jaxlib.__version__}"

    def make(self, plan: Plan) -> Any:
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        with self._context, ir.Location.unknown():
            return ir.DenseElementsAttr.get(cast("Any", content))
