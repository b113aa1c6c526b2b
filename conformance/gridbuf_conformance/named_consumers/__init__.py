"""The consumers that have a name: built-in ones, and those that installed packages announce.

A consumer is a function of one exporter (`consumer`). An entry says where it is found, which import
name it needs, how that is installed, and, where its documentation says so, which interfaces it
takes. Packages announce theirs in the entry-point group `gridbuf_conformance.consumers`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from ..producers import FROM_SOURCE
from ..producers import Entry as _ProducerEntry

__all__ = ["BUILT_IN", "ENTRY_POINT_GROUP", "Entry", "UnknownConsumer", "entries", "find", "names"]

ENTRY_POINT_GROUP = "gridbuf_conformance.consumers"


@dataclass(frozen=True)
class Entry(_ProducerEntry):
    """One consumer by name: as a producer's entry, and `takes`, the interfaces it is documented to
    take (None: found out)."""

    takes: tuple[str, ...] | None = None


class UnknownConsumer(LookupError):
    """A name that is neither built in nor announced; the message lists close matches."""


def _entry(name: str, target: str, summary: str, **more: Any) -> Entry:
    return Entry(name, target, summary, **more)


def _of(needs: str, install: str = "") -> dict[str, str]:
    return {"needs": needs, "install": f"pip install {install or needs}"}


_OWN = f"{__name__}.functions:"
_NUMPY, _TORCH, _JAX = map(_of, ("numpy", "torch", "jax"))
_GRIDBUF = {"needs": "gridbuf", "install": FROM_SOURCE}
_DLPACK = ("dlpack",)
_EXTENSIONS = "bazel build //conformance/extensions, or pip install --no-build-isolation conformance/extensions"
"""How pybind11's and nanobind's consumers come about: they are C++ and have to be built."""

BUILT_IN: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _entry("bytes", _OWN + "bytes_of", "bytes(x), a copy of plain bytes"),
        _entry("bytearray", _OWN + "bytearray_of", "bytearray(x), a copy of plain bytes"),
        _entry("memoryview", "builtins:memoryview", "memoryview(x)", takes=("buffer",)),
        _entry("ctypes.from_buffer", _OWN + "ctypes_from_buffer", "a ctypes array over x"),
        _entry(
            "numpy.asarray",
            "numpy:asarray",
            "NumPy's arrays from any interface to host memory",
            takes=("array-interface", "array-struct", "buffer"),
            **_NUMPY,
        ),
        _entry(
            "numpy.from_dlpack",
            "numpy:from_dlpack",
            "NumPy's import from DLPack",
            takes=_DLPACK,
            **_NUMPY,
        ),
        _entry("numpy.frombuffer", _OWN + "numpy_frombuffer", "plain bytes of a buffer", **_NUMPY),
        _entry(
            "torch.from_dlpack",
            "torch:from_dlpack",
            "PyTorch's import from DLPack",
            takes=_DLPACK,
            **_TORCH,
        ),
        _entry("torch.as_tensor", "torch:as_tensor", "PyTorch's tensors from anything", **_TORCH),
        _entry("torch.frombuffer", _OWN + "torch_frombuffer", "plain bytes of a buffer", **_TORCH),
        _entry(
            "jax.dlpack.from_dlpack",
            _OWN + "jax_from_dlpack",
            "JAX's import from DLPack",
            takes=_DLPACK,
            **_JAX,
        ),
        _entry("jax.numpy.asarray", _OWN + "jax_asarray", "JAX's arrays from anything", **_JAX),
        _entry(
            "pyarrow.Tensor.from_dlpack",
            "pyarrow:Tensor.from_dlpack",
            "Arrow's tensors from DLPack",
            takes=_DLPACK,
            **_of("pyarrow"),
        ),
        _entry(
            "pyarrow.Array.from_dlpack",
            "pyarrow:Array.from_dlpack",
            "Arrow's arrays of one dimension from DLPack",
            takes=_DLPACK,
            **_of("pyarrow"),
        ),
        _entry(
            "pyarrow.py_buffer",
            _OWN + "pyarrow_py_buffer",
            "plain bytes of a buffer",
            takes=("buffer",),
            **_of("pyarrow"),
        ),
        _entry(
            "pyarrow.BufferReader.readinto",
            _OWN + "pyarrow_readinto",
            "writes plain bytes into a buffer",
            **_of("pyarrow"),
        ),
        _entry(
            "PIL.Image.fromarray",
            "PIL.Image:fromarray",
            "Pillow's images from the array interface",
            **_of("PIL", "pillow"),
        ),
        _entry(
            "cupy.asarray",
            "cupy:asarray",
            "CuPy's arrays from the CUDA array interface",
            needs_gpu=True,
            **_of("cupy", "cupy-cuda12x"),
        ),
        _entry(
            "numba.cuda.as_cuda_array",
            "numba.cuda:as_cuda_array",
            "Numba's device arrays from the CUDA array interface",
            needs_gpu=True,
            **_of("numba", "numba numba-cuda"),
        ),
        _entry(
            "tensorflow.from_dlpack",
            _OWN + "tensorflow_from_dlpack",
            "tf.experimental.dlpack.from_dlpack of a capsule",
            takes=_DLPACK,
            **_of("tensorflow", "tensorflow-cpu"),
        ),
        _entry(
            "tensorflow.constant",
            _OWN + "tensorflow_constant",
            "TensorFlow's tensors from anything",
            **_of("tensorflow", "tensorflow-cpu"),
        ),
        _entry(
            "paddle.from_dlpack",
            _OWN + "paddle_from_dlpack",
            "Paddle's import from DLPack",
            takes=_DLPACK,
            **_of("paddle", "paddlepaddle"),
        ),
        _entry(
            "warp.from_dlpack",
            _OWN + "warp_from_dlpack",
            "Warp's import from DLPack",
            takes=_DLPACK,
            **_of("warp", "warp-lang"),
        ),
        _entry(
            "mlx.from_dlpack",
            "mlx.core:from_dlpack",
            "MLX's import from DLPack",
            takes=_DLPACK,
            **_of("mlx.core", "'mlx[cpu]'"),
        ),
        _entry(
            "mlx.asarray",
            _OWN + "mlx_asarray",
            "MLX's arrays from anything",
            **_of("mlx.core", "'mlx[cpu]'"),
        ),
        _entry(
            "tvm_ffi.from_dlpack",
            "tvm_ffi:from_dlpack",
            "TVM FFI's import from DLPack",
            takes=_DLPACK,
            **_of("tvm_ffi", "apache-tvm-ffi"),
        ),
        _entry(
            "awkward.from_dlpack",
            "awkward:from_dlpack",
            "Awkward's import from DLPack, by NumPy's",
            takes=_DLPACK,
            **_of("awkward"),
        ),
        _entry(
            "ctranslate2.StorageView.from_array",
            "ctranslate2:StorageView.from_array",
            "CTranslate2's views from the array interface",
            **_of("ctranslate2"),
        ),
        _entry(
            "pygame.BufferProxy",
            "pygame:BufferProxy",
            "pygame's proxies of buffers, array interfaces and array structs",
            **_of("pygame", "pygame-ce"),
        ),
        _entry("cffi.from_buffer", _OWN + "cffi_from_buffer", "plain bytes", **_of("cffi")),
        _entry(
            "pyzmq.Frame", _OWN + "pyzmq_frame", "plain bytes to be sent", **_of("zmq", "pyzmq")
        ),
        _entry(
            "mpi4py.MPI.memory",
            _OWN + "mpi4py_memory",
            "plain bytes for MPI, from a buffer or DLPack",
            **_of("mpi4py"),
        ),
        _entry(
            "zstandard.compress", _OWN + "zstandard_compress", "plain bytes", **_of("zstandard")
        ),
        _entry("cramjam.zlib", _OWN + "cramjam_zlib", "plain bytes", **_of("cramjam")),
        _entry("PyQt6.QByteArray", _OWN + "pyqt6_bytearray", "plain bytes", **_of("PyQt6")),
        _entry(
            "PySide6.QByteArray",
            _OWN + "pyside6_bytearray",
            "plain bytes",
            **_of("PySide6", "PySide6-Essentials"),
        ),
        _entry(
            "pybind11.array",
            "gridbuf_conformance_pybind11:array",
            "an extension that takes py::array",
            needs="gridbuf_conformance_pybind11",
            install=_EXTENSIONS,
            takes=("array-interface", "array-struct", "buffer"),
        ),
        _entry(
            "pybind11.buffer",
            "gridbuf_conformance_pybind11:buffer",
            "an extension that takes py::buffer",
            needs="gridbuf_conformance_pybind11",
            install=_EXTENSIONS,
            takes=("buffer",),
        ),
        _entry(
            "nanobind.ndarray",
            "gridbuf_conformance_nanobind:ndarray",
            "an extension that takes nb::ndarray<>",
            needs="gridbuf_conformance_nanobind",
            install=_EXTENSIONS,
            takes=("buffer", "dlpack"),
        ),
        _entry(
            "nanobind.readonly",
            "gridbuf_conformance_nanobind:readonly",
            "an extension that takes nb::ndarray<nb::ro>",
            needs="gridbuf_conformance_nanobind",
            install=_EXTENSIONS,
            takes=("buffer", "dlpack"),
        ),
        _entry(
            "gridbuf.as_numpy",
            "gridbuf:as_numpy",
            "NumPy arrays over any interface",
            takes=("array-interface", "buffer", "dlpack"),
            **_GRIDBUF,
        ),
        _entry(
            "gridbuf.as_buffer",
            "gridbuf:as_buffer",
            "gridbuf.Buffer over any interface",
            takes=("array-interface", "buffer", "dlpack"),
            **_GRIDBUF,
        ),
        _entry("gridbuf.from_array", "gridbuf:from_array", "a copy into gridbuf's own", **_GRIDBUF),
        _entry(
            "gridbuf.storage.as_storage",
            "gridbuf.storage:as_storage",
            "a storage over any interface",
            **_GRIDBUF,
        ),
    )
}
"""The consumers of this package by name, in the order in which they are shown."""


def entries() -> dict[str, Entry]:
    """All consumers by name: the built-in ones, then those of entry points, by name."""
    announced = {
        point.name: Entry(point.name, point.value, f"announced by {_origin(point)}")
        for point in sorted(metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name)
        if point.name not in BUILT_IN
    }
    return {**BUILT_IN, **announced}


def find(name: str) -> Entry:
    """The entry of a name; UnknownConsumer if there is none."""
    known = entries()
    if name not in known:
        close = difflib.get_close_matches(name, known) or list(known)
        raise UnknownConsumer(
            f"{name!r} is not a consumer; use one of {', '.join(close)}, "
            "or name your own as package.module:function or path/to/file.py:function"
        )
    return known[name]


def names() -> tuple[str, ...]:
    """All names that `check --consumer` takes."""
    return tuple(entries())


def _origin(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
