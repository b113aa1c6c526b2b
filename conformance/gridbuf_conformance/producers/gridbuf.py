"""gridbuf's two doors: the native `Buffer` with every interface, and the plain-array functions.

Both are judged from outside like everyone else's: only their public allocation functions are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gridbuf
import numpy as np

from ..plan import ALIGNMENT_LIMIT_BYTES, Plan
from ..producer import Capabilities
from .base import HostProducer, viewed
from .numpy import NumPyProducer, numpy_dtype, write_content

__all__ = ["BufferProducer", "PlainProducer"]

_KEYS = frozenset({"layout", "alignment_size", "aligned_index", "dims"})


def _keywords(plan: Plan) -> dict[str, Any]:
    """gridbuf's keywords for the plan; what the plan does not ask is not passed."""
    asked = {key: plan[key] for key in ("layout", "aligned_index", "dims") if plan[key] is not None}
    if plan.alignment_size != 1:
        asked["alignment_size"] = plan.alignment_size
    return asked


class _Described:
    """The array interface alone: NumPy would take the buffer, and cannot read the format of a swapped `g`."""

    def __init__(self, array: gridbuf.Buffer) -> None:
        self.owner = array
        self.__array_interface__ = array.__array_interface__


class BufferProducer(HostProducer):
    """`gridbuf.allocate`: a `gridbuf.Buffer`."""

    name = "gridbuf"
    capabilities = Capabilities(
        dtypes=NumPyProducer.capabilities.dtypes,
        layouts="any",
        alignment_bytes=(1, ALIGNMENT_LIMIT_BYTES),
        byteorders=("native", "swapped"),
        readonly=(False,),
        dims=True,
        declares=_KEYS,
    )

    def version(self) -> str:
        return gridbuf.__version__

    def make(self, plan: Plan) -> gridbuf.Buffer:
        result = gridbuf.allocate(plan.shape, numpy_dtype(plan), **_keywords(plan))
        write_content(np.asarray(_Described(result)), plan)
        return result

    def apply_view(self, obj: gridbuf.Buffer, operation: Sequence[Any]) -> Any:
        return viewed(obj, operation, broadcast=gridbuf.Buffer.broadcast_to)


class PlainProducer(HostProducer):
    """`gridbuf.empty` and `gridbuf.zeros`: NumPy arrays placed by the storage spec's rules."""

    name = "gridbuf.plain"
    capabilities = BufferProducer.capabilities

    def version(self) -> str:
        return gridbuf.__version__

    def make(self, plan: Plan) -> np.ndarray:
        # Plans without content come as large as the system allows: zeros must not touch those pages either.
        allocate = gridbuf.zeros if plan.fill is None else gridbuf.empty
        result = allocate(plan.shape, numpy_dtype(plan), **_keywords(plan))
        write_content(result, plan)
        return result

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)
