"""Partners for the tests of the scoreboard, each wrong in one way, and a right one. They use NumPy
and memory addresses.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

import numpy as np

from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import FORMAT
from gridbuf_conformance.interfaces.buffer_protocol.slots import BufferExporter
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plugins.libraries.numpy import NumPyProducer


class _At:
    """An array at an address, described by `__array_interface__`; `owner` keeps the memory."""

    def __init__(self, array: np.ndarray, owner: object = None, **changes: object) -> None:
        self.__array_interface__ = {
            **array.__array_interface__,
            "strides": array.strides,
            **changes,
        }
        self.owner = owner


# -- consumers -----------------------------------------------------------------------------------


def right(x):
    return np.asarray(x)


def doubles(x):
    array = np.asarray(x)
    return array * 2 if array.dtype.kind in "iufc" else array


def swaps_axes(x):
    return np.asarray(x).T


def narrows(x):
    array = np.asarray(x)
    return array.astype("float32") if array.dtype == "float64" else array


def forgets_byte_order(x):
    array = np.asarray(x)
    return array.view(array.dtype.newbyteorder("=")) if not array.dtype.isnative else array


def drops_axes(x):
    return np.asarray(x).squeeze()


class Panic(BaseException):
    """What a panic of Rust is in Python."""


def panics(x):
    raise Panic("no array at all")


class _Image:
    """Integers of 4 bytes, and, as in Pillow, an interface to a temporary object."""

    def __init__(self, array):
        self.array = array.astype("<i4")

    @property
    def __array_interface__(self):
        data = self.array.tobytes()
        return {"version": 3, "shape": self.array.shape, "typestr": "<i4", "data": data}

    def tobytes(self):
        return self.array.tobytes()


def widens(x):
    array = np.asarray(x)
    if array.dtype.kind not in "bi" or array.itemsize > 4:
        raise TypeError("no such image")
    return _Image(array)


def forgets_read_only(x):
    array = np.asarray(x)
    address = array.__array_interface__["data"][0]
    return np.asarray(_At(array, array, data=(address, False)))


def keeps_no_owner(x):
    return np.asarray(_At(np.asarray(x)))


class _Cached(np.ndarray):
    def tolist(self):
        return self.cached

    def tobytes(self):
        return self.kept


def caches(x):
    result = np.asarray(x).view(_Cached)
    result.cached, result.kept = np.asarray(x).tolist(), np.asarray(x).tobytes()
    return result


class _Forgetful(np.ndarray):
    """Shows its elements, and computes with those in the order of memory."""

    def __add__(self, other):
        return np.asarray(self).ravel("K").reshape(self.shape) + other


def computes_in_memory_order(x):
    return np.asarray(x).view(_Forgetful)


def computes_on_the_first_page(x):
    """Shares large memory, and computes with zeros behind 64 KiB."""
    array = np.asarray(x)
    result = array.view(_FirstPage if array.nbytes > 2**16 else np.ndarray)
    return result


class _FirstPage(np.ndarray):
    def __add__(self, other):
        array = np.array(self)
        array.ravel()[2**16 // array.itemsize :] = 0
        return array + other


def locks(x):
    array = np.asarray(x).view()
    array.flags.writeable = False
    return array


class _Immutable(np.ndarray):
    def __setitem__(self, index, value):
        raise TypeError("these arrays are immutable")


def is_immutable(x):
    return locks(x).view(_Immutable)


def joins_bytes(x):
    array = np.asarray(x)
    return np.asarray(array.tobytes()) if array.dtype == "uint8" and array.ndim == 1 else array


class _NeedsFormat(BufferExporter):
    """Dies of a request without a format, as pygame's surfaces do."""

    def __init__(self, array):
        self.array = array

    def get_buffer(self, view, flags):
        if not flags & FORMAT:
            os.kill(os.getpid(), signal.SIGSEGV)
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(self.array), ctypes.byref(view), flags)


def needs_format(x):
    return _NeedsFormat(memoryview(x))


def dies(x):
    if np.asarray(x).ndim == 4:
        os.kill(os.getpid(), signal.SIGSEGV)
    return np.asarray(x)


def hangs(x):
    if np.asarray(x).ndim == 5 and np.asarray(x).flags.aligned:
        time.sleep(600)
    return np.asarray(x)


def refuses_bool(x):
    if np.asarray(x).dtype == bool:
        raise TypeError("no bool here")
    return np.asarray(x)


def copies(x):
    return np.array(x)


def shows_nothing(x):
    return object()


def logical_bytes(x):
    return np.asarray(x).tobytes()


def memory_bytes(x):
    return np.asarray(x).tobytes("A")


def fortran_bytes(x):
    return np.asarray(x).tobytes("F")


for function in (logical_bytes, memory_bytes, fortran_bytes):
    function.gives_bytes = True


# -- producers -----------------------------------------------------------------------------------


class _Export:
    """Shows the right values, and exports others."""

    def __init__(self, array: np.ndarray, **changes: object) -> None:
        self.shape, self.tolist, self.tobytes = array.shape, array.tolist, array.tobytes
        self.__array_interface__ = _At(array, **changes).__array_interface__
        self.owner = array


class _Wrong(NumPyProducer):
    """A producer whose arrays are exported with `changes(array)`."""

    def produce(self, plan: Plan):
        made = super().produce(plan)
        if not isinstance(made, np.ndarray) or plan.dtype == "struct":
            return made
        for operation in plan.views:
            made = super().apply_view(made, operation)
        return self.exported(made)

    def apply_view(self, obj, operation):
        return obj


class SwapsStrides(_Wrong):
    def exported(self, array):
        is_wrong = array.shape == (2, 3) and array.flags.c_contiguous
        return _Export(array, strides=array.strides[::-1]) if is_wrong else array


class ForgetsOffset(_Wrong):
    def exported(self, array):
        base = array.base
        if array.ndim != 1 or base is None or array.strides[0] < 0 or not array.size:
            return array
        start = base.__array_interface__["data"][0]
        return _Export(array, data=(start, not array.flags.writeable))


class LiesOfWriting(_Wrong):
    def exported(self, array):
        return _Export(array, data=(array.__array_interface__["data"][0], False))


class FreesEarly(_Wrong):
    def exported(self, array):
        if array.dtype != "int16" or not array.dtype.isnative:
            return array
        result = _Export(array.copy())
        values, raw = array.tolist(), array.tobytes()
        result.tolist, result.tobytes, result.owner = (lambda: values), (lambda: raw), None
        return result
