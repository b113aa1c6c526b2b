"""Producers that only the zoo uses.

A target names the file, relative to the folder `conformance`: `zoo/producers.py:QuadrantsProducer`.
"""

from __future__ import annotations

import ctypes
import struct
import warnings
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.producer import Capabilities, Unsupported
from gridbuf_conformance.producers.base import INTEGERS, HostProducer, row_major

_FORMATS = {"float64": "d", "float32": "f", "int32": "i", "uint8": "B"}
_KINDS = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int32": ctypes.c_int32,
    "uint8": ctypes.c_uint8,
}
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}
"""DLPack's codes of element types."""
_COMPLEX = ("complex64", "complex128")
_COMMON: dict[str, Any] = {
    "max_nbytes": 2**20,
    "layouts": "C",
    "byteorders": ("native",),
    "readonly": (False,),
}


class CudaCoreStreamProducer(HostProducer):
    """cuda.core's default streams, which need no device."""

    name = "cuda.core.stream"
    no_views = "a stream has no views"
    capabilities = row_major(("uint8",), max_ndim=0)

    def version(self) -> str:
        return metadata.version("cuda-core")

    def make(self, plan: Plan) -> Any:
        from cuda.core import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM

        return (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM)[(plan.fill or 0) % 2]


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


class _FrameProducer(HostProducer):
    """The data buffer of a column of a data frame, by `__dataframe__`: DLPack, without a type or a
    shape.
    """

    no_views = "a buffer has no views"
    capabilities = row_major(
        ("float64", "float32", *INTEGERS), min_ndim=1, max_ndim=1, readonly=(False, True)
    )

    def version(self) -> str:
        return metadata.version(self.name.partition(".")[0])

    def make(self, plan: Plan) -> Any:
        import numpy as np

        frame = self.frame({"x": np.frombuffer(bytearray(plan.content()), plan.dtype)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas calls the protocol deprecated
            (buffer, _) = frame.__dataframe__().get_column(0).get_buffers()["data"]
        return buffer

    def frame(self, columns: dict[str, Any]) -> Any:
        """The data frame of these columns."""
        raise NotImplementedError


class PandasFrameProducer(_FrameProducer):
    """Buffers of `pandas.DataFrame.__dataframe__`."""

    name = "pandas.__dataframe__"

    def frame(self, columns: dict[str, Any]) -> Any:
        import pandas

        return pandas.DataFrame(columns)


class PyArrowFrameProducer(_FrameProducer):
    """Buffers of `pyarrow.Table.__dataframe__`."""

    name = "pyarrow.__dataframe__"

    def frame(self, columns: dict[str, Any]) -> Any:
        import pyarrow

        return pyarrow.table(columns)


class NanobindProducer(HostProducer):
    """`nb::ndarray<nb::array_api>` with an owner, and `nb::ro` for read-only plans, as the suite's
    extension returns it.
    """

    name = "nanobind"
    no_views = "an nb::ndarray has no views in Python"
    owned = True
    capabilities = Capabilities(
        dtypes=("float64", "float32", "float16", "bfloat16", *INTEGERS, "bool", *_COMPLEX),
        max_ndim=8,
        **{**_COMMON, "layouts": "CF", "readonly": (False, True)},
    )

    def version(self) -> str:
        import gridbuf_conformance_nanobind

        return str(gridbuf_conformance_nanobind.__version__)

    def make(self, plan: Plan) -> Any:
        import gridbuf_conformance_nanobind as extension
        import numpy as np

        is_fortran = plan.layout not in (None, (*range(plan.ndim),))
        rows = np.frombuffer(plan.content(), f"V{plan.itemsize}").reshape(plan.shape)
        content = rows.tobytes("F" if is_fortran else "C")
        kind = plan.dtype.rstrip("0123456789")
        described = (plan.shape, _CODES[kind], 8 * plan.itemsize, is_fortran, self.owned)
        make = extension.made_readonly if plan.readonly else extension.made
        return make(content, *described)


class UnownedNanobindProducer(NanobindProducer):
    """`nb::ndarray<nb::array_api>` without an owner, returned with `rv_policy::reference` over
    memory that stays.
    """

    name = "nanobind.unowned"
    owned = False


class Pybind11Producer(HostProducer):
    """A class of pybind11 with `def_buffer`, over a memoryview: the suite's extension exports its
    argument again.
    """

    name = "pybind11"
    capabilities = Capabilities(
        dtypes=tuple(_FORMATS), min_ndim=1, max_ndim=8, **{**_COMMON, "readonly": (False, True)}
    )

    def version(self) -> str:
        import gridbuf_conformance_pybind11

        return str(gridbuf_conformance_pybind11.__version__)

    def make(self, plan: Plan) -> Any:
        import gridbuf_conformance_pybind11

        if not plan.nbytes:
            empty = memoryview(_empty(plan))
            return gridbuf_conformance_pybind11.buffer(
                empty.toreadonly() if plan.readonly else empty
            )
        memory = memoryview(bytes(plan.content()) if plan.readonly else bytearray(plan.content()))
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

        if 0 in plan.shape:
            return Unsupported("quadrants: an array has at least one element")
        short = {"float32": "f32", "float64": "f64", "int32": "i32"}[plan.dtype]
        array = self._library.ndarray(getattr(self._library, short), plan.shape)
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
