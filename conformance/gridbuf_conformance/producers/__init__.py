"""The built-in producers, the producers of installed packages, and the commands that install absent libraries.

A name refers to a target (`package.module:Class`), which the worker loads. Whether its library is
installed is found out without importing it: an import may take seconds, and a broken library must fail in the
worker, not here.

A package announces its own producer by an entry point in the group `gridbuf_conformance.producers`:

```toml
[project.entry-points."gridbuf_conformance.producers"]
mylib = "mylib.testing:Producer"
```
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from importlib import metadata, util
from typing import Any

from ..abi.gpu import has_gpu

__all__ = [
    "BUILT_IN",
    "ENTRY_POINT_GROUP",
    "Entry",
    "NotInstalled",
    "UnknownProducer",
    "entries",
    "find",
    "load",
    "names",
]

ENTRY_POINT_GROUP = "gridbuf_conformance.producers"


@dataclass(frozen=True)
class Entry:
    """One producer by name.

    `target` is loaded by a worker, and `needs` is the import name of the library. `also` has the import names that the
    producer needs and the library does not. `install` is the command that installs them all. `needs_gpu` says that
    the producer makes nothing without a CUDA device. `rules` is the default selection of rules: a library whose
    plain arrays are NumPy arrays is judged by the allocation, not by the exports.
    """

    name: str
    target: str
    summary: str
    needs: str | None = None
    install: str = ""
    rules: str | None = None
    needs_gpu: bool = False
    also: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the library is installed, and the device that it needs is there."""
        return self.is_installed and (not self.needs_gpu or has_gpu())

    @property
    def is_installed(self) -> bool:
        """Whether all that it needs can be found; nothing is imported. It may still be broken."""
        return not self.missing

    @property
    def missing(self) -> str:
        """The first import name that cannot be found, or an empty text."""
        needs = (self.needs, *self.also) if self.needs else self.also
        return next((name for name in needs if not _is_found(name)), "")


def _is_found(name: str) -> bool:
    """Whether a package can be found.

    A mere folder of that name on the path (a namespace package, without origin) is not the library.
    """
    package, _, module = name.partition(".")
    found = util.find_spec(package)
    if module and found is not None:
        # Such a package is a mere folder (`mlx`, `iree`), which is the only kind that this imports.
        found = util.find_spec(name)
    return found is not None and found.origin is not None


class UnknownProducer(LookupError):
    """A name that is neither built in nor announced; the message lists close matches."""


class NotInstalled(ImportError):
    """A known producer whose library is absent; the message says how to install it."""


def _entry(name: str, module: str, kind: str, summary: str, **more: Any) -> Entry:
    return Entry(name, f"{__name__}.{module}:{kind}", summary, **more)


def _library(
    name: str,
    module: str,
    kind: str,
    summary: str,
    *,
    needs: str | None = None,
    install: str | None = None,
    also: tuple[str, ...] = (),
    **more: Any,
) -> Entry:
    """An entry of a library that is imported by the module's name and installed by the same, unless told."""
    needs = needs or module
    command = " ".join(("pip install", install or needs, *also))
    return _entry(name, module, kind, summary, needs=needs, install=command, also=also, **more)


FROM_SOURCE = "in gridbuf's repository: pip install ."
"""How gridbuf is installed: it is not on the package index yet."""

_REFUSED = "DL-27,DP-25,DX-05,DX-12"
"""The rules for objects without memory: no export is right."""

_GRIDBUF = {"needs": "gridbuf", "install": FROM_SOURCE}

BUILT_IN: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _entry("array", "standard", "ArrayProducer", "array.array of the standard library"),
        _entry("bytes", "standard", "BytesProducer", "bytes, read-only"),
        _entry("bytearray", "standard", "ByteArrayProducer", "bytearray"),
        _entry("memoryview", "standard", "MemoryViewProducer", "memoryview.cast over bytes"),
        _entry("ctypes", "standard", "CtypesProducer", "ctypes arrays and simple types"),
        _entry(
            "ctypes.special",
            "standard",
            "CtypesSpecialProducer",
            "ctypes unions, bit-fields and wide characters",
            rules="PB-04,PB-07,PB-20,PB-21,XA-08",
        ),
        _entry("mmap", "standard", "MmapProducer", "mmap.mmap of anonymous pages or a file"),
        _entry(
            "numpy",
            "numpy",
            "NumPyProducer",
            "numpy.ndarray",
            needs="numpy",
            install="pip install numpy",
        ),
        _entry(
            "torch",
            "torch",
            "TorchProducer",
            "torch.Tensor on the CPU",
            needs="torch",
            install="pip install torch",
        ),
        _entry(
            "torch.negative",
            "torch",
            "NegativeProducer",
            "torch.Tensor with the negative bit, whose memory has the negatives",
            needs="torch",
            install="pip install torch",
            rules="XA-08",
        ),
        *(
            _library(f"torch.{name}", "torch", kind, summary, rules=rules)
            for name, kind, summary, rules in (
                (
                    "fake",
                    "FakeProducer",
                    "torch.Tensor of FakeTensorMode, without memory",
                    _REFUSED,
                ),
                (
                    "meta",
                    "MetaProducer",
                    "torch.Tensor on the device meta, without memory",
                    _REFUSED,
                ),
                ("freed", "FreedProducer", "torch.Tensor whose storage was freed", _REFUSED),
                ("sparse", "SparseProducer", "sparse torch.Tensor", _REFUSED),
                ("strided", "StridedProducer", "torch.as_strided with unusual strides", "D*,XA-*"),
                ("readonly", "ReadOnlyProducer", "torch.frombuffer of read-only pages", "DL-04"),
            )
        ),
        _entry(
            "jax",
            "jax",
            "JaxProducer",
            "jax.Array on the CPU, immutable",
            needs="jax",
            install="pip install jax",
        ),
        _library(
            "jax.deleted", "jax", "DeletedProducer", "jax.Array after delete()", rules=_REFUSED
        ),
        _library("jax.traced", "jax", "TracedProducer", "JAX's tracers", rules=_REFUSED),
        _library(
            "pyarrow",
            "pyarrow",
            "ArrayProducer",
            "pyarrow.Array, immutable",
            also=("numpy",),
        ),
        _library(
            "pyarrow.tensor",
            "pyarrow",
            "TensorProducer",
            "pyarrow.Tensor",
            also=("numpy",),
        ),
        _entry(
            "pillow",
            "pillow",
            "PillowProducer",
            "PIL.Image.Image of one band",
            needs="PIL",
            install="pip install pillow",
        ),
        _entry(
            "xarray",
            "xarray",
            "XarrayProducer",
            "xarray.DataArray over NumPy arrays",
            needs="xarray",
            install="pip install xarray",
        ),
        _entry(
            "cupy",
            "cupy",
            "CuPyProducer",
            "cupy.ndarray in device and managed memory",
            needs="cupy",
            install="pip install cupy-cuda12x",
            needs_gpu=True,
        ),
        _entry(
            "numba",
            "numba",
            "NumbaProducer",
            "numba.cuda device arrays",
            needs="numba",
            install="pip install numba numba-cuda",
            needs_gpu=True,
        ),
        _library(
            "numpy.scalar",
            "numpy",
            "ScalarProducer",
            "NumPy's scalars, such as numpy.float64(1)",
            rules="AI-33,PB-*,XA-02",
        ),
        _library(
            "numpy.field",
            "numpy",
            "FieldProducer",
            "fields of packed records, with unusual strides",
        ),
        _library("numpy.memmap", "numpy", "MappedProducer", "numpy.memmap of a file"),
        _library(
            "numpy.references",
            "numpy",
            "ReferencesProducer",
            "NumPy arrays of objects and of StringDType",
            rules="AI-*,AS-*,PB-*,DP-25,DX-12,XA-04,XA-14",
        ),
        _library(
            "ml_dtypes",
            "ml_dtypes",
            "MlDtypesProducer",
            "NumPy arrays of bfloat16 and 8-bit floats, judged by what ml_dtypes calls them",
            rules="AI-*,AS-*,XA-*",
        ),
        _library("pyarrow.buffer", "pyarrow", "BufferProducer", "pyarrow.Buffer", also=("numpy",)),
        _library(
            "mlir",
            "mlir",
            "DenseElementsProducer",
            "DenseElementsAttr of JAX's MLIR bindings",
            needs="jaxlib",
            install="jax",
        ),
        _library(
            "tensorflow",
            "tensorflow",
            "TensorFlowProducer",
            "tf.Tensor on the CPU, immutable",
            install="tensorflow-cpu",
        ),
        _library(
            "tensorflow.string",
            "tensorflow",
            "StringProducer",
            "tf.Tensor of strings, which no interface can export",
            install="tensorflow-cpu",
            rules="DP-25",
        ),
        _library(
            "paddle", "paddle", "PaddleProducer", "paddle.Tensor on the CPU", install="paddlepaddle"
        ),
        _library(
            "mlx",
            "mlx",
            "MlxProducer",
            "mlx.core.array on the CPU",
            needs="mlx.core",
            install="'mlx[cpu]'",
            also=("numpy",),
        ),
        _library("warp", "warp", "WarpProducer", "warp.array on the CPU", install="warp-lang"),
        _library(
            "drjit", "drjit", "DrJitProducer", "drjit.scalar.TensorXf and the like", also=("numpy",)
        ),
        _library(
            "tvm_ffi",
            "tvm_ffi",
            "TvmFfiProducer",
            "tvm_ffi.Tensor over NumPy's memory",
            install="apache-tvm-ffi",
            also=("numpy",),
        ),
        _library(
            "onnxruntime", "onnxruntime", "OrtValueProducer", "onnxruntime.OrtValue on the CPU"
        ),
        _library(
            "ctranslate2",
            "ctranslate2",
            "StorageViewProducer",
            "ctranslate2.StorageView on the CPU",
        ),
        _library(
            "iree",
            "iree",
            "IreeProducer",
            "MappedMemory of IREE's runtime",
            needs="iree.runtime",
            install="iree-base-runtime",
        ),
        _library(
            "array_api_strict",
            "array_api_strict",
            "StrictProducer",
            "array-api-strict, judged by the methods that are its own",
            install="array-api-strict",
            rules="DP-*,DL-*,DX-*,XA-*",
        ),
        _library(
            "array_api_strict.devices",
            "array_api_strict",
            "DeviceProducer",
            "array-api-strict's arrays on other devices than CPU_DEVICE",
            install="array-api-strict",
            rules="DP-*,DL-*,DX-*,XA-*",
        ),
        _library(
            "nanoarrow",
            "nanoarrow",
            "NanoarrowProducer",
            "CBufferView of nanoarrow, read-only",
            also=("numpy",),
        ),
        _library("awkward", "awkward", "IndexProducer", "awkward.index.Index"),
        _library("blosc2", "blosc2", "Blosc2Producer", "blosc2.NDArray, decompressed when asked"),
        _library(
            "vtk",
            "vtk",
            "AosProducer",
            "vtkDoubleArray and the like",
            needs="vtkmodules",
            install="vtk",
            also=("numpy",),
        ),
        _library(
            "vtk.soa",
            "vtk",
            "SoaProducer",
            "vtkSOADataArrayTemplate",
            needs="vtkmodules",
            install="vtk",
            also=("numpy",),
        ),
        _library(
            "usd",
            "usd",
            "VtProducer",
            "Vt arrays of OpenUSD",
            needs="pxr",
            install="usd-core",
            also=("numpy",),
        ),
        _library(
            "glm",
            "glm",
            "MatrixProducer",
            "PyGLM's vectors and matrices",
            needs="pyglm",
            install="PyGLM",
        ),
        _library("av", "av", "PlaneProducer", "planes of PyAV's video frames", also=("numpy",)),
        _library("skia", "skia", "BitmapProducer", "skia.Bitmap", install="skia-python"),
        _library(
            "pygame",
            "pygame",
            "SurfaceProducer",
            "pygame.Surface.get_view",
            install="pygame-ce",
            also=("numpy",),
        ),
        _library(
            "pygame.pixelarray",
            "pygame",
            "PixelArrayProducer",
            "pygame.PixelArray",
            install="pygame-ce",
            also=("numpy",),
        ),
        _library(
            "pygame.sound",
            "pygame",
            "SoundProducer",
            "pygame.mixer.Sound",
            install="pygame-ce",
            also=("numpy",),
        ),
        _library("pyqt6", "pyqt6", "ByteArrayProducer", "PyQt6's QByteArray", needs="PyQt6"),
        _library(
            "pyside6", "pyside6", "ByteArrayProducer", "PySide6's QByteArray", needs="PySide6"
        ),
        _library(
            "cython",
            "cython",
            "CythonProducer",
            "Cython's memoryviews, as scikit-learn hands them out",
            needs="sklearn",
            install="scikit-learn",
        ),
        _library("bitarray", "bitarray", "BitarrayProducer", "bitarray and frozenbitarray"),
        _library("cffi", "cffi", "CffiProducer", "ffi.buffer"),
        _library("mpi4py", "mpi4py", "Mpi4pyProducer", "mpi4py's MPI.buffer"),
        _library("pyzmq", "pyzmq", "FrameProducer", "zmq.Frame", needs="zmq", install="pyzmq"),
        _library("cramjam", "cramjam", "CramjamProducer", "cramjam.Buffer, read-only"),
        _library(
            "zstandard",
            "zstandard",
            "ZstandardProducer",
            "segments of zstandard's buffers, read-only",
        ),
        _entry("gridbuf", "gridbuf", "BufferProducer", "gridbuf.Buffer", **_GRIDBUF),
        _entry(
            "gridbuf.device",
            "gridbuf",
            "DeviceProducer",
            "gridbuf.Buffer in device memory (emulated without a CUDA device)",
            **_GRIDBUF,
        ),
        _entry(
            "gridbuf.pinned",
            "gridbuf",
            "PinnedProducer",
            "gridbuf.Buffer in pinned memory (emulated without a CUDA device)",
            **_GRIDBUF,
        ),
        _entry(
            "gridbuf.managed",
            "gridbuf",
            "ManagedProducer",
            "gridbuf.Buffer in managed memory (emulated without a CUDA device)",
            **_GRIDBUF,
        ),
        *(
            _entry(f"gridbuf.storage{name}", "storages", kind, summary, **_GRIDBUF)
            for name, kind, summary in (
                ("", "StorageProducer", "gridbuf's storages, all four types"),
                (".cpu", "CpuStorageProducer", "CPUStorage"),
                (".gpu", "GpuStorageProducer", "GPUStorage"),
                (".synced", "SyncedStorageProducer", "SoftwareManagedGPUStorage"),
                (".managed", "ManagedStorageProducer", "CUDAManagedGPUStorage"),
            )
        ),
        _entry(
            "gridbuf.plain",
            "gridbuf",
            "PlainProducer",
            "gridbuf.empty and zeros: NumPy arrays, judged as allocations",
            rules="GT-*",
            **_GRIDBUF,
        ),
        _entry(
            "gridbuf.xarray",
            "gridbuf_xarray",
            "XarrayOfStorageProducer",
            "xarray.DataArray over a storage of gridbuf, by its accessor",
            needs="gridbuf",
            install=f"{FROM_SOURCE} xarray",
            also=("xarray",),
        ),
        _entry(
            "gt4py",
            "gt4py",
            "GT4PyProducer",
            "gt4py.storage.empty: NumPy arrays of an aligned, padded layout",
            needs="gt4py",
            install="pip install gt4py",
        ),
        _entry(
            "gt4py.next",
            "gt4py_next",
            "GT4PyNextProducer",
            "gt4py.next's allocator of fields: NumPy arrays of an aligned, padded layout",
            needs="gt4py",
            install="pip install gt4py",
        ),
        _entry(
            "gridbuf.next",
            "gt4py_next",
            "GridbufNextProducer",
            "gridbuf's allocator of fields for gt4py.next",
            needs="gridbuf",
            install=f"{FROM_SOURCE} gt4py",
            also=("gt4py",),
        ),
    )
}
"""The producers of this package by name, in the order in which they are shown."""


def entries() -> dict[str, Entry]:
    """All producers by name: the built-in ones, then those of entry points, by name.

    A built-in name cannot be taken over by an entry point.
    """
    announced = {
        point.name: Entry(point.name, point.value, f"announced by {_origin(point)}")
        for point in sorted(metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name)
        if point.name not in BUILT_IN
    }
    return {**BUILT_IN, **announced}


def find(name: str) -> Entry:
    """The entry of a name; UnknownProducer if there is none."""
    known = entries()
    if name not in known:
        close = difflib.get_close_matches(name, known) or list(known)
        raise UnknownProducer(
            f"{name!r} is not a producer; use one of {', '.join(close)}, "
            "or name your own as package.module:Class or path/to/file.py:Class"
        )
    return known[name]


def names() -> tuple[str, ...]:
    """All names that `load` takes."""
    return tuple(entries())


def load(name: str) -> Any:
    """Import a producer class by name: no other function here imports the library (worker's use).

    Raises UnknownProducer, NotInstalled, and whatever the library's own import raises.
    """
    entry = find(name)
    if not entry.is_installed:
        raise NotInstalled(f"{entry.missing} is not installed; {entry.install}")
    module, _, attribute = entry.target.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def _origin(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
