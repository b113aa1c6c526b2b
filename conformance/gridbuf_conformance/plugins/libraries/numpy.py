"""NumPy's `ndarray`, by `numpy.empty` and a transposition; its scalars, and unusual arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...plan import DTYPES, Plan
from ...plan.dtypes import DType
from ...producer import Capabilities, Unsupported
from ...producers.base import HostProducer, row_major, viewed

MAX_NDIM = 64 if int(np.__version__.partition(".")[0]) >= 2 else 32
"""The most dimensions that this NumPy's arrays have."""
_STRINGS: Any = getattr(getattr(np, "dtypes", None), "StringDType", None)
"""The type of strings of any width: NumPy has it from version 2 on."""


def _dtypes() -> dict[str, np.dtype]:
    """NumPy's type for each of the plans' element types that it has one for."""
    records = {info.name: _record(info) for info in DTYPES.values() if info.fields}
    texts = {"bytes5": np.dtype("S5"), "str3": np.dtype("U3"), "str1": np.dtype("U1")}
    special = {**records, **texts}
    plain = (name for name in DTYPES if name not in special and DTYPES[name].typestr is not None)
    return {**{name: np.dtype(name) for name in plain}, **special}


def _record(info: DType) -> np.dtype:
    return np.dtype(
        {
            "names": [name for name, _, _, _ in info.fields],
            "formats": [(kind, repeat) for _, kind, _, repeat in info.fields],
            "offsets": [offset for _, _, offset, _ in info.fields],
            "itemsize": info.itemsize,
        }
    )


_DTYPES = _dtypes()


def numpy_dtype(plan: Plan) -> np.dtype:
    """NumPy's type for the plan's element type and byte order; KeyError if it has none."""
    dtype = _DTYPES[plan.dtype]
    return dtype.newbyteorder() if plan.byteorder == "swapped" else dtype


def write_content(target: np.ndarray, plan: Plan) -> None:
    """Copy the plan's content in, if it has any, by index and not by address."""
    if plan.fill is not None:
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        if plan.dtype_info.padding:  # records are copied field by field
            target, content = target.view(f"V{plan.itemsize}"), content.view(f"V{plan.itemsize}")
        target[...] = content


class NumPyProducer(HostProducer):
    """`numpy.empty` in row-major order of the transposed shape, transposed back."""

    name = "numpy"
    capabilities = Capabilities(
        dtypes=tuple(_DTYPES),
        max_ndim=MAX_NDIM,
        layouts="any",
        byteorders=("native", "swapped"),
        readonly=(False, True),
    )

    def make(self, plan: Plan) -> np.ndarray:
        layout = range(plan.ndim) if plan.layout is None else plan.layout
        slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
        memory = np.empty([plan.shape[axis] for axis in slowest_first], numpy_dtype(plan))
        result = memory.transpose(layout)
        write_content(result, plan)
        result.flags.writeable = not plan.readonly
        return result

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        view = viewed(obj, operation, broadcast=np.broadcast_to)
        if operation[0] == "broadcast" and obj.flags.writeable:
            # broadcast_to answers read-only to protect its callers from one write seen many times;
            # the memory is as writable as before.
            view = np.lib.stride_tricks.as_strided(view, view.shape, view.strides, writeable=True)
        return view


class ScalarProducer(HostProducer):
    """NumPy's scalars, such as `numpy.float64(1)`: immutable, with the interfaces of 0-d arrays.

    What `__array_interface__` describes is a temporary array; whether it says that a temporary can
    be written is not judged, so that by default the scalars answer for its address and for their
    buffers. `numpy.bytes_` is left out: its buffer is that of `bytes`.
    """

    name = "numpy.scalar"
    no_views = "a scalar has no views"
    capabilities = Capabilities(
        dtypes=tuple(name for name in _DTYPES if name not in ("struct", "padded", "bytes5")),
        max_ndim=0,
        byteorders=("native",),
        readonly=(True,),
    )

    def make(self, plan: Plan) -> np.generic | Unsupported:
        if plan.dtype == "bool":
            return Unsupported("numpy: it has one shared object each for true and false")
        return np.frombuffer(plan.content(), numpy_dtype(plan))[0]


class ReferencesProducer(HostProducer):
    """Arrays of references, whose elements are elsewhere: Python objects and strings of any width.

    `bytes5` is asked as `object`, `str3` as `StringDType` (from NumPy 2 on).
    """

    name = "numpy.references"
    capabilities = row_major(
        ("bytes5", *(("str3",) if _STRINGS is not None else ())), max_ndim=4, max_nbytes=2**12
    )

    def make(self, plan: Plan) -> np.ndarray:
        values = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        return values.astype(object if plan.dtype == "bytes5" else _STRINGS())

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)


class FieldProducer(NumPyProducer):
    """A packed record's field: strides need not be multiples of the item's size.

    Axes of extent 1, and those of arrays without elements, have any stride at all.
    """

    name = "numpy.field"
    capabilities = replace(NumPyProducer.capabilities, layouts="C", max_nbytes=2**20)

    def make(self, plan: Plan) -> np.ndarray:
        record = np.dtype([("before", "i1"), ("value", numpy_dtype(plan))])
        result = np.zeros(plan.shape, record)["value"]
        write_content(result, plan)
        pairs = zip(result.strides, plan.shape)
        strides = [
            17 - 1000 * axis if extent == 1 or not result.size else stride
            for axis, (stride, extent) in enumerate(pairs)
        ]
        writable = not plan.readonly
        return np.lib.stride_tricks.as_strided(result, plan.shape, strides, writeable=writable)


class MappedProducer(HostProducer):
    """`numpy.memmap` of a temporary file: for read-only plans the pages refuse writing."""

    name = "numpy.memmap"
    capabilities = replace(NumPyProducer.capabilities, layouts="C", max_nbytes=2**20)

    def make(self, plan: Plan) -> np.ndarray | Unsupported:
        if not plan.nbytes:
            return Unsupported("numpy.memmap: a mapping has at least one byte")
        with tempfile.TemporaryFile() as file:
            file.write(plan.content())
            file.flush()
            dtype = numpy_dtype(plan)
            if plan.readonly:
                return np.memmap(file, dtype, "r", shape=plan.shape)
            return np.memmap(file, dtype, "r+", shape=plan.shape)

    def apply_view(self, obj: np.ndarray, operation: Sequence[Any]) -> np.ndarray:
        return NumPyProducer().apply_view(obj, operation)
