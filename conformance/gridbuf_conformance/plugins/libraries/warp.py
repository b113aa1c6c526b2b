"""NVIDIA Warp's `array` on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp

from ...plan import Plan
from ...producer import Unsupported
from ...producers.base import HostProducer, row_major, viewed
from .numpy import numpy_dtype
from .standard import MmapProducer

warp.config.quiet = True  # the worker's answers are on the standard output

_DTYPES = {
    **{name: getattr(warp, name) for name in ("float64", "float32", "float16")},
    **{
        f"{sign}int{bits}": getattr(warp, f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (64, 32, 16, 8)
    },
    "bool": warp.bool,
    **({"bfloat16": warp.bfloat16} if hasattr(warp, "bfloat16") else {}),
}


@warp.struct
class _Record:
    """The record of the element type "padded"."""

    a: warp.int8
    b: warp.float64
    c: warp.types.matrix(shape=(2, 3), dtype=warp.int16)  # type: ignore[valid-type]


class WarpProducer(HostProducer):
    """`warp.empty(device="cpu")`, filled through NumPy; 1 to 4 dimensions are Warp's own limit."""

    name = "warp"
    capabilities = row_major(_DTYPES, min_ndim=1, max_ndim=4)

    def make(self, plan: Plan) -> Any:
        dtype = _Record if plan.dtype == "padded" else _DTYPES[plan.dtype]
        result = warp.empty(plan.shape, dtype=dtype, device="cpu")
        if plan.fill is not None and plan.nbytes:
            raw = np.frombuffer(bytearray(plan.content()), np.uint8)
            source = warp.array(ptr=raw.ctypes.data, shape=plan.shape, dtype=dtype, device="cpu")
            warp.copy(result, source)
            warp.synchronize_device("cpu")
        return result

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        name, *arguments = operation
        if name == "transpose" and arguments[0]:
            return obj.transpose(tuple(arguments[0]))
        if (
            name == "slice"
            and arguments[3] > 0
            and len(range(obj.shape[arguments[0]])[slice(*arguments[1:])])
        ):
            return viewed(obj, operation, broadcast=lambda array, shape: array)
        return Unsupported(f"warp: no {name} of {arguments} without a copy")


class StructProducer(WarpProducer):
    """`warp.empty` of a `warp.struct`."""

    name = "warp.struct"
    capabilities = row_major(("padded",), min_ndim=1, max_ndim=4)


class ReadOnlyProducer(WarpProducer):
    """`warp.array` over NumPy's array of read-only pages, which does not record it."""

    name = "warp.readonly"
    capabilities = row_major(("float64", "float32"), min_ndim=1, max_ndim=4, readonly=(True,))

    def make(self, plan: Plan) -> Any:
        pages = MmapProducer().make(plan)
        if isinstance(pages, Unsupported):
            return pages
        source = np.frombuffer(pages, numpy_dtype(plan)).reshape(plan.shape)
        return warp.array(source, dtype=_DTYPES[plan.dtype], device="cpu", copy=False)
