"""Consumers that are not a single function of their library: a call with arguments, or two calls.

Some libraries take memory as plain bytes (a compressor, `bytes` itself). Their result is one
dimension of bytes, and `gives_bytes` marks their functions, so that the suite compares contents and
not shapes. Libraries are imported when a function is called, in the worker.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = [
    "bytearray_of",
    "bytes_of",
    "cffi_from_buffer",
    "cramjam_zlib",
    "ctypes_from_buffer",
    "jax_asarray",
    "jax_from_dlpack",
    "mlx_asarray",
    "mpi4py_memory",
    "numpy_frombuffer",
    "paddle_from_dlpack",
    "pyarrow_py_buffer",
    "pyarrow_readinto",
    "pyqt6_bytearray",
    "pyside6_bytearray",
    "pyzmq_frame",
    "tensorflow_constant",
    "tensorflow_from_dlpack",
    "torch_frombuffer",
    "warp_from_dlpack",
    "zstandard_compress",
]


def gives_bytes(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Marks a consumer whose result is one dimension of elements or bytes, in row-major order."""
    function.gives_bytes = True  # type: ignore[attr-defined]
    return function


def _calling(path: str) -> Callable[[Any], Any]:
    """A consumer that is one function of one argument, without its keywords: "module:name"."""
    module, _, name = path.partition(":")

    def consumer(exporter: Any) -> Any:
        return getattr(import_module(module), name)(exporter)

    return consumer


bytes_of = gives_bytes(_calling("builtins:bytes"))
bytearray_of = gives_bytes(_calling("builtins:bytearray"))
mlx_asarray = _calling("mlx.core:asarray")
mpi4py_memory = gives_bytes(_calling("mpi4py.MPI:memory"))
pyarrow_py_buffer = gives_bytes(_calling("pyarrow:py_buffer"))
tensorflow_constant = _calling("tensorflow:constant")


def _given(**keywords: Any) -> dict[str, Any]:
    """The keywords that were passed: older versions of a library do not have them."""
    return {name: value for name, value in keywords.items() if value is not None}


# -- the standard library --------------------------------------------------------------------------


@gives_bytes
def ctypes_from_buffer(exporter: Any) -> Any:
    """`(ctypes.c_char * n).from_buffer(exporter)`: the memory itself."""
    with memoryview(exporter) as view:
        count = view.nbytes
    return (ctypes.c_ubyte * count).from_buffer(exporter)


# -- array libraries -------------------------------------------------------------------------------


@gives_bytes
def numpy_frombuffer(exporter: Any) -> Any:
    """`numpy.frombuffer(exporter, numpy.uint8)`."""
    import numpy

    return numpy.frombuffer(exporter, numpy.uint8)


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


def jax_asarray(exporter: Any, *, copy: bool | None = None) -> Any:
    """`jax.numpy.asarray(exporter)`, with numbers of 64 bits switched on."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(exporter, **_given(copy=copy))


def jax_from_dlpack(exporter: Any, *, copy: bool | None = None) -> Any:
    """`jax.dlpack.from_dlpack(exporter)`, with numbers of 64 bits switched on."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.dlpack.from_dlpack(exporter, **_given(copy=copy))


def tensorflow_from_dlpack(exporter: Any) -> Any:
    """`tf.experimental.dlpack.from_dlpack(exporter.__dlpack__())`: it takes the capsule."""
    import tensorflow

    return tensorflow.experimental.dlpack.from_dlpack(exporter.__dlpack__())


def paddle_from_dlpack(exporter: Any, *, copy: bool | None = None) -> Any:
    """`paddle.from_dlpack(exporter)`."""
    import paddle

    return paddle.from_dlpack(exporter, **_given(copy=copy))


def warp_from_dlpack(exporter: Any) -> Any:
    """`warp.from_dlpack(exporter)`."""
    import warp

    warp.config.quiet = True
    warp.init()
    return warp.from_dlpack(exporter)


# -- libraries of bytes ----------------------------------------------------------------------------


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


@gives_bytes
def zstandard_compress(exporter: Any) -> Any:
    """`zstandard.compress(exporter)`, decompressed again."""
    import zstandard

    return zstandard.decompress(zstandard.compress(exporter))


@gives_bytes
def cramjam_zlib(exporter: Any) -> Any:
    """`cramjam.zlib.compress(exporter)`, decompressed again."""
    import cramjam

    return bytes(cramjam.zlib.decompress(cramjam.zlib.compress(exporter)))


@gives_bytes
def pyqt6_bytearray(exporter: Any) -> Any:
    """`PyQt6.QtCore.QByteArray(exporter)`."""
    from PyQt6.QtCore import QByteArray

    return QByteArray(exporter).data()


@gives_bytes
def pyside6_bytearray(exporter: Any) -> Any:
    """`PySide6.QtCore.QByteArray(exporter)`."""
    from PySide6.QtCore import QByteArray

    return QByteArray(exporter).data()
