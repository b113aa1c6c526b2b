"""The zoo's consumer for gt4py.next. It is a separate file because the import is slow, and a file
has a longer time limit.
"""

from __future__ import annotations

from typing import Any

import gt4py.next as gtx
import numpy as np


def as_field(exporter: Any) -> Any:
    """The field of gt4py.next that is made of an array or a buffer."""
    array = np.asarray(
        exporter if hasattr(exporter, "__array_interface__") else memoryview(exporter)
    )
    return gtx.as_field([gtx.Dimension(f"D{axis}") for axis in range(array.ndim)], array).asnumpy()
