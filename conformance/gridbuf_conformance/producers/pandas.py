"""pandas' dataframe interchange protocol: the one place where pandas itself lends memory.

Its Series, Index and extension arrays offer `__array__` only, which hands out NumPy's arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas

from ..plan import Plan
from ..producer import Capabilities, Unsupported
from .base import TOUCHED_BYTES, HostProducer
from .numpy import numpy_dtype

__all__ = ["InterchangeProducer"]

_DTYPES = (
    *("float64", "float32"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (64, 32, 16, 8)),
)


class InterchangeProducer(HostProducer):
    """The data buffer of a column of `DataFrame.__dataframe__()`."""

    name = "pandas.interchange"
    capabilities = Capabilities(
        dtypes=_DTYPES,
        min_ndim=1,
        max_ndim=1,
        max_nbytes=TOUCHED_BYTES,
        layouts="C",
        byteorders=("native",),
        readonly=(False,),
    )

    def version(self) -> str:
        return pandas.__version__

    def make(self, plan: Plan) -> Any:
        column = np.frombuffer(bytearray(plan.content()), numpy_dtype(plan))
        with warnings.catch_warnings():
            # pandas 3 wants the Arrow capsules used instead; the protocol is there all the same.
            warnings.simplefilter("ignore")
            frame = pandas.DataFrame({"column": column}, copy=False).__dataframe__()
        return frame.get_column_by_name("column").get_buffers()["data"][0]

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Unsupported:
        return Unsupported("pandas: an interchange buffer has no views")
