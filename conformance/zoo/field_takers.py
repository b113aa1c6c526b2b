"""The consumer of the zoo for gt4py.next, which is slow to import: the suite waits longer for a file than for a call."""

from __future__ import annotations

from typing import Any

import gt4py.next as gtx
import numpy as np

__all__ = ["as_field"]


def as_field(exporter: Any) -> Any:
    """The field of gt4py.next that is made of an array or a buffer."""
    array = np.asarray(
        exporter if hasattr(exporter, "__array_interface__") else memoryview(exporter)
    )
    return gtx.as_field([gtx.Dimension(f"D{axis}") for axis in range(array.ndim)], array).asnumpy()
