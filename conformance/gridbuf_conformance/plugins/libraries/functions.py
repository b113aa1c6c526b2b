"""Consumers that are not a single function of their library: a call with arguments, or two calls.

Some libraries take memory as plain bytes (a compressor, `bytes` itself). Their result is one
dimension of bytes, and `gives_bytes` marks their functions, so that the suite compares contents and
not shapes. Libraries are imported when a function is called, in the worker.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any


def gives_bytes(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Marks a consumer whose result is one dimension of elements or bytes, in row-major order."""
    function.gives_bytes = True  # type: ignore[attr-defined]
    return function


def _calling(path: str, **keywords: Any) -> Callable[[Any], Any]:
    """A consumer that is one function, "module:name", of the exporter and these keywords."""
    module, _, name = path.partition(":")

    def consumer(exporter: Any) -> Any:
        return attrgetter(name)(import_module(module))(exporter, **keywords)

    return consumer


bytes_of = gives_bytes(_calling("builtins:bytes"))
bytearray_of = gives_bytes(_calling("builtins:bytearray"))
mlx_asarray = _calling("mlx.core:asarray")
mpi4py_memory = gives_bytes(_calling("mpi4py.MPI:memory"))
numpy_frombuffer = gives_bytes(_calling("numpy:frombuffer", dtype="uint8"))
pyarrow_py_buffer = gives_bytes(_calling("pyarrow:py_buffer"))
tensorflow_constant = _calling("tensorflow:constant")


def _given(**keywords: Any) -> dict[str, Any]:
    """The keywords that were passed: older versions of a library do not have them."""
    return {name: value for name, value in keywords.items() if value is not None}


# -- the standard library ------------------------------------------------------------------------


@gives_bytes
def ctypes_from_buffer(exporter: Any) -> Any:
    """`(ctypes.c_char * n).from_buffer(exporter)`: the memory itself."""
    with memoryview(exporter) as view:
        count = view.nbytes
    return (ctypes.c_ubyte * count).from_buffer(exporter)


# -- array libraries -----------------------------------------------------------------------------


@gives_bytes
def torch_frombuffer(exporter: Any) -> Any:
    """`torch.frombuffer(exporter, dtype=torch.uint8)`."""
    import torch

    return torch.frombuffer(exporter, dtype=torch.uint8)


@gives_bytes
def pyarrow_readinto(exporter: Any) -> Any:
    """`pyarrow.BufferReader(content).readinto(exporter)`, of the bytes that are there already.

    Only for row-major memory: what this function hands it are bytes in that order.
    """
    import pyarrow

    with memoryview(exporter) as view:
        if not view.c_contiguous:
            raise BufferError("these bytes are not in row-major order")
    pyarrow.BufferReader(bytes(exporter)).readinto(exporter)
    return memoryview(exporter)


def _of_jax(path: str) -> Callable[..., Any]:
    """A function of JAX, with numbers of 64 bits switched on."""

    def consumer(exporter: Any, *, copy: bool | None = None) -> Any:
        import_module("jax").config.update("jax_enable_x64", True)
        return _calling(path, **_given(copy=copy))(exporter)

    return consumer


jax_asarray, jax_from_dlpack = _of_jax("jax.numpy:asarray"), _of_jax("jax.dlpack:from_dlpack")


def tensorflow_from_dlpack(exporter: Any) -> Any:
    """`tf.experimental.dlpack.from_dlpack(exporter.__dlpack__())`: it takes the capsule."""
    import tensorflow

    return tensorflow.experimental.dlpack.from_dlpack(exporter.__dlpack__())


def paddle_from_dlpack(exporter: Any, *, copy: bool | None = None) -> Any:
    """`paddle.from_dlpack(exporter)`."""
    import paddle

    return paddle.from_dlpack(exporter, **_given(copy=copy))


def onnxruntime_from_dlpack(exporter: Any) -> Any:
    """`onnxruntime.OrtValue.from_dlpack(exporter)`. In older versions only a private class has it,
    which takes a capsule; False: the elements are not boolean.
    """
    import onnxruntime

    if hasattr(onnxruntime.OrtValue, "from_dlpack"):
        return onnxruntime.OrtValue.from_dlpack(exporter)
    return onnxruntime.capi._pybind_state.OrtValue.from_dlpack(exporter.__dlpack__(), False)


def warp_from_dlpack(exporter: Any) -> Any:
    """`warp.from_dlpack(exporter)`."""
    import warp

    warp.config.quiet = True
    warp.init()
    return warp.from_dlpack(exporter)


# -- libraries of bytes --------------------------------------------------------------------------


@gives_bytes
def cffi_from_buffer(exporter: Any) -> Any:
    """`ffi.from_buffer(exporter)`, read through `ffi.buffer`."""
    import cffi

    ffi = cffi.FFI()
    return ffi.buffer(ffi.from_buffer(exporter))


@gives_bytes
def pyzmq_frame(exporter: Any) -> Any:
    """`zmq.Frame(exporter, copy=False).buffer`."""
    import zmq

    return zmq.Frame(exporter, copy=False).buffer


def _decompressed(prefix: str) -> Callable[[Any], Any]:
    """The bytes of `compress(exporter)` of a module, decompressed again."""
    compress, decompress = _calling(f"{prefix}compress"), _calling(f"{prefix}decompress")
    return gives_bytes(lambda exporter: bytes(decompress(compress(exporter))))


zstandard_compress, cramjam_zlib = _decompressed("zstandard:"), _decompressed("cramjam:zlib.")


def _qbytearray(module: str) -> Callable[[Any], Any]:
    """The bytes of `QByteArray(exporter)` of a binding of Qt."""
    array = _calling(f"{module}.QtCore:QByteArray")
    return gives_bytes(lambda exporter: array(exporter).data())


pyqt6_bytearray, pyside6_bytearray = _qbytearray("PyQt6"), _qbytearray("PySide6")
