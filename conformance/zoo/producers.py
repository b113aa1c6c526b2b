"""Producers that only the zoo uses.

A target names the file, relative to the folder `conformance`: `zoo/producers.py:QuadrantsProducer`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.producer import Capabilities, Unsupported
from gridbuf_conformance.producers.base import HostProducer

__all__ = ["CvxoptProducer", "Pybind11Producer", "QuadrantsProducer"]

_FORMATS = {"float64": "d", "float32": "f", "int32": "i", "uint8": "B"}
_KINDS = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int32": ctypes.c_int32,
    "uint8": ctypes.c_uint8,
}
_COMMON: dict[str, Any] = {
    "max_nbytes": 2**20,
    "layouts": "C",
    "byteorders": ("native",),
    "readonly": (False,),
}


class CvxoptProducer(HostProducer):
    """`cvxopt.matrix` of doubles, which is column-major."""

    name = "cvxopt"
    capabilities = Capabilities(
        dtypes=("float64",), min_ndim=2, max_ndim=2, byteorders=("native",), readonly=(False,)
    )

    def version(self) -> str:
        import cvxopt

        return str(cvxopt.__version__)

    def make(self, plan: Plan) -> Any:
        import cvxopt

        rows, columns = plan.shape
        if not plan.nbytes:
            return Unsupported("cvxopt: a matrix has at least one element")
        if plan.nbytes > _COMMON["max_nbytes"]:
            return Unsupported("cvxopt: the zoo makes small matrices only")
        numbers = struct.unpack(f"={rows * columns}d", plan.content())
        by_column = [numbers[r * columns + c] for c in range(columns) for r in range(rows)]
        return cvxopt.matrix(by_column, (rows, columns), "d")

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Unsupported:
        return Unsupported("cvxopt: its slices are copies")


class Pybind11Producer(HostProducer):
    """A class of pybind11 with `def_buffer`, over a memoryview: the suite's extension exports its argument again."""

    name = "pybind11"
    capabilities = Capabilities(dtypes=tuple(_FORMATS), min_ndim=1, max_ndim=8, **_COMMON)

    def version(self) -> str:
        import gridbuf_conformance_pybind11

        return str(gridbuf_conformance_pybind11.__version__)

    def make(self, plan: Plan) -> Any:
        import gridbuf_conformance_pybind11

        if not plan.nbytes:
            return gridbuf_conformance_pybind11.buffer(_empty(plan))
        memory = memoryview(bytearray(plan.content()))
        return gridbuf_conformance_pybind11.buffer(memory.cast(_FORMATS[plan.dtype], plan.shape))


def _empty(plan: Plan) -> Any:
    """An array of ctypes, because memoryview.cast refuses shapes without elements."""
    kind: Any = _KINDS[plan.dtype]
    for extent in reversed(plan.shape):
        kind = kind * extent
    return kind()


class QuadrantsProducer(HostProducer):
    """`quadrants.ndarray` on the CPU, wrapped so that `to_dlpack` is the protocol's method.

    The library returns a capsule; the wrapper adds only the two methods.
    """

    name = "quadrants"
    capabilities = Capabilities(
        dtypes=("float32", "float64", "int32"), min_ndim=1, max_ndim=3, **_COMMON
    )

    def __init__(self) -> None:
        import quadrants

        quadrants.init(arch=quadrants.cpu, log_level=quadrants.ERROR)
        self._library = quadrants

    def version(self) -> str:
        return ".".join(map(str, self._library.__version__))

    def make(self, plan: Plan) -> Any:
        import numpy as np

        short = {"float32": "f32", "float64": "f64", "int32": "i32"}[plan.dtype]
        array = self._library.ndarray(getattr(self._library, short), plan.shape)
        if plan.nbytes:
            array.from_numpy(np.frombuffer(plan.content(), plan.dtype).reshape(plan.shape))
        return _Exported(array)


class _Exported:
    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        if stream is not None:
            raise BufferError(f"stream is {stream!r}, must be None: host memory has no streams")
        return self._array.to_dlpack()
