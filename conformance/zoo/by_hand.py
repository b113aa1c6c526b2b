"""Findings seen without the suite: ctypes and the library, nothing else.

    python by_hand.py show NAME            what an object of a library answers to each request
    python by_hand.py take LIBRARY CASE    what a library makes of a DLPack capsule that is made here

It runs in an environment that has the library (`zoo.py run` makes them), prints what it sees, and judges nothing. A
crash is shown by the exit code. `python by_hand.py` lists the names.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

# -- the buffer protocol ---------------------------------------------------------------------------


class PyBuffer(ctypes.Structure):
    _fields_ = (
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    )


REQUESTS = {
    "SIMPLE": 0,
    "WRITABLE": 0x1,
    "FORMAT": 0x4,
    "ND": 0x8,
    "STRIDES": 0x18,
    "C": 0x38,
    "F": 0x58,
    "ANY": 0x98,
    "INDIRECT": 0x118,
    "FULL": 0x11D,
    "FULL_RO": 0x11C,
}

_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(PyBuffer)]
_release.restype = None


def buffer(obj: Any) -> None:
    """Prints what an object answers to each request for its buffer."""
    print(type(obj).__name__)
    for name, flags in REQUESTS.items():
        view = PyBuffer()
        try:
            _get_buffer(obj, view, flags)
        except Exception as error:
            print(f"  {name:9}{type(error).__name__}: {str(error)[:70]}")
            continue
        shape, strides = (_numbers(p, view.ndim) for p in (view.shape, view.strides))
        print(
            f"  {name:9}len {view.len}, itemsize {view.itemsize}, readonly {view.readonly}, "
            f"ndim {view.ndim}, format {view.format!r}, shape {shape}, strides {strides}"
        )
        _release(view)


def _numbers(address: int | None, count: int) -> list[int] | None:
    return list((ctypes.c_ssize_t * count).from_address(address)) if address else None


# -- DLPack ----------------------------------------------------------------------------------------


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Tensor),
    )


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_ELEMENTS = 16


class Exporter:
    """Float32 0.0 … 15.0 as a legacy or a versioned capsule; `bend` edits the struct and its arrays."""

    def __init__(self, case: str) -> None:
        self.case, self.deleted = case, 0
        self.memory = ctypes.create_string_buffer(4 * _ELEMENTS + 256)
        self.start = -(-ctypes.addressof(self.memory) // 64) * 64 + 64
        (ctypes.c_float * _ELEMENTS).from_address(self.start)[:] = range(_ELEMENTS)
        self.count = ctypes.PYFUNCTYPE(None, c_void_p)(self._delete)
        self.is_versioned = case in ("major-2", "versioned")
        self.managed = Versioned() if self.is_versioned else Managed()
        self.shape, self.strides = (c_int64 * 3)(4), (c_int64 * 3)(1)
        self._fill()

    def _delete(self, _: int) -> None:
        self.deleted += 1

    def _fill(self) -> None:
        managed, tensor = self.managed, self.managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = self.start, 1, 1
        tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
        tensor.shape, tensor.strides = map(ctypes.addressof, (self.shape, self.strides))
        managed.deleter = ctypes.cast(self.count, c_void_p)
        managed.manager_ctx = self.start
        if self.is_versioned:
            managed.major, managed.minor = (2, 0) if self.case == "major-2" else (1, 0)
        BENDS[self.case](self, tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.managed.tensor.device_type, 0

    def __dlpack__(self, **_: Any) -> Any:
        if self.case == "no-capsule":
            return object()
        name = b"dltensor_versioned" if self.is_versioned else b"dltensor"
        if self.case == "used":
            name = b"used_dltensor"
        return _new_capsule(ctypes.addressof(self.managed), name, None)


def _as_is(exporter: Exporter, tensor: Tensor) -> None:
    """The elements 0 to 3."""


def _byte_offset(exporter: Exporter, tensor: Tensor) -> None:
    """data stays at element 0, byte_offset leads to element 8."""
    tensor.byte_offset = 32


def _null_deleter(exporter: Exporter, tensor: Tensor) -> None:
    exporter.managed.deleter = None


def _null_context(exporter: Exporter, tensor: Tensor) -> None:
    exporter.managed.manager_ctx = None


def _empty(exporter: Exporter, tensor: Tensor) -> None:
    exporter.shape[0], tensor.data = 0, None


def _free_strides(exporter: Exporter, tensor: Tensor) -> None:
    """One element, and a stride that leads nowhere."""
    exporter.shape[0], exporter.strides[0] = 1, 99


def _negative(exporter: Exporter, tensor: Tensor) -> None:
    """The elements 3 to 0."""
    exporter.strides[0], tensor.data = -1, exporter.start + 12


def _lanes(exporter: Exporter, tensor: Tensor) -> None:
    """Two by two elements of two lanes: eight numbers."""
    tensor.ndim, tensor.lanes = 2, 2
    exporter.shape[:2], exporter.strides[:2] = [2, 2], [2, 1]


def _cuda(exporter: Exporter, tensor: Tensor) -> None:
    tensor.device_type = 2


BENDS: dict[str, Callable[[Exporter, Tensor], None]] = {
    "plain": _as_is,
    "versioned": _as_is,
    "major-2": _as_is,
    "no-capsule": _as_is,
    "used": _as_is,
    "byte-offset": _byte_offset,
    "null-deleter": _null_deleter,
    "null-context": _null_context,
    "empty": _empty,
    "free-strides": _free_strides,
    "negative": _negative,
    "lanes": _lanes,
    "cuda": _cuda,
}


def take(library: str, case: str) -> None:
    """Prints what a library makes of a capsule, and how often the deleter was called when it is gone."""
    exporter = Exporter(case)
    try:
        result = TAKERS[library](exporter)
    except BaseException as error:
        print(f"{type(error).__name__}: {str(error)[:150]}")
    else:
        print(SHOWN.get(library, _listed)(result), flush=True)
        del result
    gc.collect()
    print(f"deleter called {exporter.deleted} times")


def _listed(result: Any) -> Any:
    import numpy

    return numpy.asarray(result).tolist()


def _cuda_core(exporter: Any) -> Any:
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError:
        from cuda.core.experimental.utils import StridedMemoryView

        return StridedMemoryView(exporter, stream_ptr=-1)
    return StridedMemoryView.from_dlpack(exporter, stream_ptr=-1)


def _first_float(view: Any) -> str:
    return f"the first element: {ctypes.c_float.from_address(view.ptr).value}"


def _jax(exporter: Any) -> Any:
    import jax

    return jax.dlpack.from_dlpack(exporter)


def _nanobind(exporter: Any) -> Any:
    import gridbuf_conformance_nanobind

    return gridbuf_conformance_nanobind.readonly(exporter)


def _numpy(exporter: Any) -> Any:
    import numpy

    return numpy.from_dlpack(exporter)


def _onnxruntime(exporter: Any) -> Any:
    from onnxruntime.capi import _pybind_state

    return _pybind_state.OrtValue.from_dlpack(exporter.__dlpack__(), False)


def _paddle(exporter: Any) -> Any:
    import paddle

    return paddle.from_dlpack(exporter)


def _pyarrow(exporter: Any) -> Any:
    import pyarrow

    return pyarrow.Array.from_dlpack(exporter)


def _tensorflow(exporter: Any) -> Any:
    import tensorflow

    return tensorflow.experimental.dlpack.from_dlpack(exporter.__dlpack__())


def _torch(exporter: Any) -> Any:
    import torch

    return torch.from_dlpack(exporter)


def _warp(exporter: Any) -> Any:
    import warp

    warp.config.quiet = True
    warp.init()
    return warp.from_dlpack(exporter)


TAKERS: dict[str, Callable[[Any], Any]] = {
    "cuda.core": _cuda_core,
    "jax": _jax,
    "nanobind": _nanobind,
    "numpy": _numpy,
    "onnxruntime": _onnxruntime,
    "paddle": _paddle,
    "pyarrow": _pyarrow,
    "tensorflow": _tensorflow,
    "torch": _torch,
    "warp": _warp,
}
SHOWN: dict[str, Callable[[Any], Any]] = {
    "cuda.core": _first_float,
    "onnxruntime": lambda value: value.numpy().tolist(),
    "warp": lambda array: array.numpy().tolist(),
}

# -- producers -------------------------------------------------------------------------------------


def dlpack(obj: Any) -> None:
    """Prints what an object answers to DLPack's methods."""
    calls: dict[str, dict[str, Any]] = {
        "stream=1": {"stream": 1},
        "max_version=(0, 1)": {"max_version": (0, 1)},
        "max_version=(1, 3)": {"max_version": (1, 3)},
        "copy=True": {"max_version": (1, 3), "copy": True},
        "dl_device=(8, 0)": {"max_version": (1, 3), "dl_device": (8, 0)},
    }
    print(type(obj).__name__, _tried(obj.__dlpack_device__))
    for name, keywords in calls.items():
        print(f"  {name:20}{_tried(lambda keywords=keywords: obj.__dlpack__(**keywords))}")


def _tried(function: Callable[[], Any]) -> str:
    try:
        return repr(function())
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:100]}"


def show_av() -> None:
    import av

    dlpack(av.VideoFrame(16, 8, "gray").planes[0])


def show_ctranslate2() -> None:
    import ctranslate2
    import numpy

    storage = ctranslate2.StorageView.from_array(numpy.ones(3, "f4"))
    storage = storage.to(ctranslate2.DataType.bfloat16)
    print(_tried(lambda: hasattr(storage, "__array_interface__")))


def show_ctypes() -> None:
    buffer((ctypes.c_double * 2)())
    buffer(((ctypes.c_double * 2) * 2)())


def show_cython() -> None:
    import numpy
    from sklearn.neighbors import KDTree

    view = KDTree(numpy.arange(6.0).reshape(3, 2)).data
    buffer(view)
    buffer(view[:, ::-1])


def show_drjit() -> None:
    import drjit
    import numpy

    dlpack(drjit.scalar.TensorXf(numpy.zeros((2, 2), "f4")))


def show_glm() -> None:
    import glm

    buffer(glm.mat2x3())
    buffer(glm.array(glm.mat2x3(), glm.mat2x3()))


def show_iree() -> None:
    import iree.runtime as iree

    device = iree.get_device("local-sync")
    memory = device.allocator.allocate_buffer_copy(
        memory_type=iree.MemoryType.DEVICE_LOCAL | iree.MemoryType.HOST_VISIBLE,
        allowed_usage=iree.BufferUsage.DEFAULT | iree.BufferUsage.MAPPING,
        device=device,
        buffer=b"abcdefgh",
    )
    buffer(memory.map())


def show_ml_dtypes() -> None:
    import ml_dtypes
    import numpy

    for name in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        print(name, numpy.zeros(2, getattr(ml_dtypes, name)).__array_interface__["typestr"])


def show_mlir() -> None:
    import numpy
    from jaxlib.mlir import ir

    with ir.Context(), ir.Location.unknown():
        buffer(ir.DenseElementsAttr.get(numpy.arange(6.0).reshape(2, 3)))


def show_mlx() -> None:
    import mlx.core as mlx
    import numpy

    array = mlx.array(numpy.arange(6, dtype="f4").reshape(2, 3))
    for shown in (array, array[::-1]):
        mlx.eval(shown)
        buffer(shown)
    dlpack(array)
    print(memoryview(array.astype(mlx.bfloat16)).format)


def show_nanoarrow() -> None:
    import nanoarrow
    import numpy

    buffer(nanoarrow.c_buffer(numpy.arange(3.0)))


def show_npscalar() -> None:
    import numpy

    scalar = numpy.float64(3)
    first, second = scalar.__array_interface__, scalar.__array_interface__
    print("addresses are the same:", first["data"] == second["data"], "keys:", sorted(first))
    buffer(numpy.datetime64(1, "ns"))


def show_numpy_interface() -> None:
    """NumPy as a consumer of __array_interface__ and __array_struct__."""
    import numpy

    class Forwarded:
        def __init__(self, **attributes: Any) -> None:
            self.__dict__.update(attributes)

    def interface(**more: Any) -> Any:
        entries = {"version": 3, "shape": (1,), "typestr": "<i8", "data": bytearray(8), **more}
        return numpy.asarray(Forwarded(__array_interface__=entries))

    text = Forwarded(__array_struct__=numpy.array(["abc"]).__array_struct__)
    print("text of 3 characters comes back as", numpy.asarray(text).dtype)
    print("8 bytes as 4 numbers:", interface(shape=(4,)).tolist())
    print("offset -64:", interface(offset=-64).tolist())
    memory = bytearray(8)
    array = interface(data=memory)
    print("resized under the array:", _tried(lambda: memory.extend(bytes(10**7))), array.shape)


def show_numpy_dims() -> None:
    import numpy

    class Wide:
        data = numpy.zeros(1)
        __array_interface__ = {**data.__array_interface__, "shape": (1,) * 1000}

    print(_tried(lambda: numpy.asarray(Wide()).ndim))


def show_numpy_struct() -> None:
    import weakref

    import numpy

    class Array(numpy.ndarray):
        """An ndarray that can be watched."""

    class Temporary:
        @property
        def __array_struct__(self) -> Any:
            made = numpy.arange(3.0).view(Array)
            weakref.finalize(made, print, "the temporary is freed")
            return made.__array_struct__

    array = numpy.asarray(Temporary())
    print("the array lives:", array.shape)


def show_numpy_suboffsets() -> None:
    import _testbuffer

    import numpy

    pil = _testbuffer.ndarray([0, 1, 2, 3], shape=[2, 2], format="i", flags=_testbuffer.ND_PIL)
    print(_tried(lambda: numpy.array(pil)))


def show_onnxruntime() -> None:
    import numpy
    import onnxruntime

    value = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.array([True, False]))
    dlpack(value)
    print(value.data_type(), numpy.from_dlpack(value).dtype)


def show_paddle() -> None:
    import paddle

    dlpack(paddle.zeros([2, 2]))


def show_pyarrow() -> None:
    import numpy
    import pyarrow

    buffer(pyarrow.py_buffer(b"abcdefgh"))
    buffer(pyarrow.Tensor.from_numpy(numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))))
    buffer(pyarrow.Tensor.from_numpy(numpy.arange(4.0).reshape(2, 2)))


def show_pybind11() -> None:
    import gridbuf_conformance_pybind11

    memory = memoryview(bytearray(48)).cast("d", [2, 3])
    buffer(gridbuf_conformance_pybind11.buffer(memory))


def show_pygame() -> None:
    import pygame

    buffer(pygame.Surface((3, 2), 0, 32).get_view("2"))
    buffer(pygame.PixelArray(pygame.Surface((3, 2), 0, 32)))


def show_pyqt6() -> None:
    from PyQt6.QtCore import QByteArray

    _resize_under_a_view(QByteArray(b"x" * 2**22))


def show_pyside6() -> None:
    from PySide6.QtCore import QByteArray

    _resize_under_a_view(QByteArray(b"x" * 2**22))


def _resize_under_a_view(array: Any) -> None:
    view = memoryview(array)
    array.clear()
    array.squeeze()
    print("cleared while exported; reading the view", flush=True)
    print(view[0])


def show_pyzmq() -> None:
    import zmq

    buffer(zmq.Frame(b"abcdefgh"))
    data = b"x" * 100
    memoryview(zmq.Frame(data, copy=False))[0] = ord("!")
    print("bytes, written through a frame:", data[:2])


def show_quadrants() -> None:
    import resource

    import quadrants

    quadrants.init(arch=quadrants.cpu)
    array = quadrants.ndarray(quadrants.f32, (4,))
    for _ in range(4):
        for _ in range(50_000):
            array.to_dlpack()
        print("KiB resident at most:", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def show_jax_strides() -> None:
    import jax
    import numpy

    jax.config.update("jax_enable_x64", True)
    array = jax.dlpack.from_dlpack(numpy.arange(4).reshape(2, 2).T)
    print(array, "element [0, 1]:", array[0, 1])


def show_tf() -> None:
    import tensorflow

    dlpack(tensorflow.zeros((2, 2)))


def show_tfs() -> None:
    import tensorflow

    print("exporting a tensor of strings", flush=True)
    tensorflow.constant(["a"]).__dlpack__()


def show_torch() -> None:
    import torch

    dlpack(torch.zeros(2))
    memory = bytearray(64)
    tensor = torch.frombuffer(memory, dtype=torch.uint8)
    print("resized under a tensor:", _tried(lambda: memory.extend(bytes(10**7))), tensor.shape)


def show_tvm_ffi() -> None:
    import numpy
    import tvm_ffi

    dlpack(tvm_ffi.from_dlpack(numpy.zeros((2, 2), "f4")))


def show_usd() -> None:
    from pxr import Gf, Vt

    buffer(Vt.FloatArray(3))
    buffer(Gf.Matrix2f())


def show_vtk() -> None:
    import vtk

    array = vtk.vtkDoubleArray()
    array.SetNumberOfComponents(3)
    array.SetNumberOfTuples(2)
    buffer(array)
    planes = vtk.vtkSOADataArrayTemplate["float64"]()
    planes.SetNumberOfComponents(2)
    planes.SetNumberOfTuples(2)
    planes.Fill(7.0)
    view = memoryview(planes)
    view[0, 0] = 1.0
    print("written: 1.0, held:", planes.GetComponent(0, 0), "read-only:", view.readonly)


def show_warp() -> None:
    import warp

    warp.config.quiet = True
    array = warp.full(2, 1.5, dtype=warp.bfloat16, device="cpu")
    print(array.__array_interface__["typestr"], array)


SHOWS = {
    name.partition("_")[2]: function
    for name, function in list(globals().items())
    if name.startswith("show_")
}


def main(arguments: list[str]) -> int:
    """0 if the names exist, whatever the library does; else 2 and the names there are."""
    if len(arguments) == 2 and arguments[0] == "show" and arguments[1] in SHOWS:
        SHOWS[arguments[1]]()
        return 0
    if len(arguments) == 3 and arguments[0] == "take" and arguments[1] in TAKERS:
        take(*arguments[1:])
        return 0
    print(f"show {', '.join(sorted(SHOWS))}")
    print(f"take {', '.join(sorted(TAKERS))}: {', '.join(BENDS)}")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
