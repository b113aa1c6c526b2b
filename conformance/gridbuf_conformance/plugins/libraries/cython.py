"""The memoryview type that Cython's modules hand to Python, as in scikit-learn's `KDTree.data`.

The type is Cython's and compiled into each module; the version in the report is scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from sklearn.neighbors import KDTree

from ...plan import Plan
from ...producer import Unsupported, python_view
from ...producers.base import HostProducer, row_major
from .numpy import numpy_dtype


class CythonProducer(HostProducer):
    """A typed memoryview of two dimensions of float64, with slices and transposition."""

    name = "cython"
    capabilities = row_major(("float64",), min_ndim=2, max_ndim=2, max_nbytes=2**20)

    def version(self) -> str:
        return f"scikit-learn {sklearn.__version__}"

    def make(self, plan: Plan) -> Any:
        if 0 in plan.shape:
            return Unsupported("cython: the tree that exports the memory has at least one point")
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape).copy()
        return KDTree(content).data

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        name, *arguments = operation
        if name == "transpose":
            return obj.T if tuple(arguments[0]) == (1, 0) else obj
        if name in ("slice", "reverse", "empty"):
            return python_view(obj, operation)
        return Unsupported(f"cython: its memoryviews have no {name}")
