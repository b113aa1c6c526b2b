"""Consumers that only the zoo uses: functions of one exporter, each around one documented import of
a library.

A target names the file, relative to the folder `conformance`: `zoo/consumers.py:cuda_core_view`.
Each function imports its library, because no environment has them all.
"""

from __future__ import annotations

from typing import Any

from gridbuf_conformance.interfaces.array_struct.struct import ArrayStruct
from gridbuf_conformance.abi.capsule import capsule_pointer
from gridbuf_conformance.plugins.libraries.functions import gives_bytes

NUMBERS = "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"


def cuda_core_view(exporter: Any) -> Any:
    """`cuda.core`'s view of host memory; -1 asks for no synchronization. 0.3 has only the
    constructor.
    """
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError:
        from cuda.core.experimental.utils import StridedMemoryView

        return StridedMemoryView(exporter, stream_ptr=-1)
    return StridedMemoryView.from_dlpack(exporter, stream_ptr=-1)


def jax_computed(exporter: Any) -> Any:
    """An imported array after a JAX computation, which has to see the same values."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    array = jax.dlpack.from_dlpack(exporter)
    return jax.numpy.flip(jax.numpy.flip(array)) if array.ndim else array


def opencv_copied(exporter: Any) -> Any:
    """A copy of a NumPy array that OpenCV makes."""
    import cv2
    import numpy as np

    array = np.asarray(exporter)
    return cv2.copyTo(array, None).reshape(array.shape)


def openvino_tensor(exporter: Any) -> Any:
    """The data of an OpenVINO tensor that is made of a NumPy array."""
    import numpy as np
    import openvino

    return openvino.Tensor(np.asarray(exporter)).data


def soundfile_written(exporter: Any) -> Any:
    """The samples of an exporter as python-soundfile writes them to a file without a header."""
    import io

    import soundfile

    subtype = {"float32": "FLOAT", "float64": "DOUBLE", "int16": "PCM_16", "int32": "PCM_32"}
    name, shape = taken(exporter, " ".join(subtype), 1, 2)
    file = io.BytesIO()
    soundfile.write(file, exporter, 8000, format="RAW", subtype=subtype[name])
    return _numbers(file.getvalue(), name, shape)


def imagecodecs_tiff(exporter: Any) -> Any:
    """The image of an exporter as imagecodecs writes it to a TIFF file and reads it again."""
    import imagecodecs

    _, shape = taken(exporter, NUMBERS)
    return imagecodecs.tiff_decode(imagecodecs.tiff_encode(exporter)).reshape(shape)


def tensorstore_read(exporter: Any) -> Any:
    """The elements that TensorStore reads from its view of an exporter."""
    import tensorstore

    taken(exporter, NUMBERS)
    return tensorstore.array(exporter).read().result()


def vtk_from_numpy(exporter: Any) -> Any:
    """The numbers of a VTK array that is made of an exporter, as NumPy sees them again."""
    from vtkmodules.util import numpy_support

    _, shape = taken(exporter, NUMBERS, 1, 2)
    made = numpy_support.numpy_to_vtk(exporter, deep=True)
    return numpy_support.vtk_to_numpy(made).reshape(shape)


def xgboost_data(exporter: Any) -> Any:
    """The numbers of a DMatrix over a NumPy array of float32, which is the type that it keeps."""
    import xgboost

    kept = xgboost.DMatrix(_array_of(exporter, "float32", 2), missing=-1.0).get_data()
    return kept.toarray().astype("float32", copy=False)


# Consumers of numbers of some types
# -----------------------------------------------------------------------------------


_KINDS = {
    **dict.fromkeys("bhilqi", "int"),
    **dict.fromkeys("BHILQu", "uint"),
    **dict.fromkeys("efd", "float"),
}
"""Kinds of numbers, by the letters of the buffer protocol and of the array interface."""


def taken(exporter: Any, dtypes: str, *ndims: int) -> tuple[str, tuple[int, ...]]:
    """The name of the type and the shape, by the description alone; TypeError unless a function
    takes them.
    """
    if hasattr(exporter, "__array_interface__"):
        described = exporter.__array_interface__
        code, itemsize = described["typestr"][1], int(described["typestr"][2:])
        shape = tuple(described["shape"])
    elif hasattr(exporter, "__array_struct__"):
        capsule = exporter.__array_struct__
        struct = ArrayStruct.from_address(capsule_pointer(capsule))
        code, itemsize, shape = (
            chr(struct.typekind[0]),
            struct.itemsize,
            tuple(struct.shape[: struct.nd]),
        )
    else:
        with memoryview(exporter) as view:
            code, itemsize, shape = view.format.lstrip("@=<>!"), view.itemsize, view.shape
    name = f"{_KINDS.get(code)}{8 * itemsize}"
    if name not in dtypes.split() or 0 in shape or (ndims and len(shape) not in ndims):
        raise TypeError(f"{name}, shape {shape}: this function takes {dtypes}, {ndims} dimensions")
    return name, shape


def _numbers(content: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """The array of row-major bytes that a library wrote."""
    import numpy as np

    return np.frombuffer(content, dtype).reshape(shape)


# Consumers of NumPy's arrays
# ------------------------------------------------------------------------------------------


def _array(exporter: Any) -> Any:
    """NumPy's array of an exporter, by the interfaces that NumPy reads correctly. `numpy.asarray`
    is a separate target.
    """
    import numpy as np

    if isinstance(getattr(exporter, "__array_interface__", {}).get("data"), tuple):
        return np.asarray(exporter)
    return np.asarray(memoryview(exporter))


def _array_of(exporter: Any, dtypes: str, *ndims: int) -> Any:
    """The array, if it has one of these types and numbers of dimensions, and elements; else
    TypeError.
    """
    array = _array(exporter)
    if (
        array.dtype.name not in dtypes.split()
        or not array.size
        or (ndims and array.ndim not in ndims)
    ):
        raise TypeError(
            f"{array.dtype}, shape {array.shape}: this function takes {dtypes}, {ndims} dimensions"
        )
    return array


def nbytes(exporter: Any) -> int:
    """The size of a row-major buffer; BufferError for others. Functions that take plain bytes take
    them in that order.
    """
    with memoryview(exporter) as view:
        if not view.c_contiguous or not view.nbytes:
            raise BufferError("not plain bytes in row-major order")
        return view.nbytes


def arro3_array(exporter: Any) -> Any:
    """The elements of an array of arro3 that is made of a NumPy array."""
    import arro3.core

    return arro3.core.Array.from_numpy(_array_of(exporter, NUMBERS, 1)).to_numpy()


def av_from_ndarray(exporter: Any) -> Any:
    """The gray frame that PyAV makes of a NumPy array."""
    import av

    formats = {"uint8": "gray", "uint16": "gray16le", "float32": "grayf32le"}
    array = _array_of(exporter, " ".join(formats), 2)
    return av.VideoFrame.from_ndarray(array, format=formats[array.dtype.name]).to_ndarray()


def av_from_numpy_buffer(exporter: Any) -> Any:
    """The gray frame of PyAV over the memory of a NumPy array."""
    import av

    return av.VideoFrame.from_numpy_buffer(
        _array_of(exporter, "uint8", 2), format="gray"
    ).to_ndarray()


def blosc2_array(exporter: Any) -> Any:
    """The elements of a compressed array of an exporter."""
    import blosc2

    taken(exporter, NUMBERS)
    return blosc2.asarray(exporter)[:]


@gives_bytes
def brotli_compressed(exporter: Any) -> Any:
    """The plain bytes of a buffer, compressed by brotli and decompressed."""
    import brotli

    nbytes(exporter)
    return brotli.decompress(brotli.compress(exporter))


def drjit_tensor(exporter: Any) -> Any:
    """The numbers of `drjit.scalar.TensorXf64`, without the compiler of Dr.Jit."""
    import drjit

    return drjit.scalar.TensorXf64(exporter).numpy()


def duckdb_column(exporter: Any) -> Any:
    """The column that DuckDB reads from a NumPy array."""
    import duckdb

    numbers = _array_of(exporter, NUMBERS, 1)  # noqa: F841, which the query names
    return duckdb.sql("select * from numbers").fetchnumpy()["column0"]


def eccodes_values(exporter: Any) -> Any:
    """The values of a GRIB message, kept without packing, that are set from a NumPy array."""
    import eccodes

    array = _array_of(exporter, "float64", 1)
    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    for key, value in {
        "Ni": len(array),
        "Nj": 1,
        "packingType": "grid_ieee",
        "precision": 2,
    }.items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_double_array(message, "values", array)
    return eccodes.codes_get_double_array(message, "values")


def eigenpy_vector(exporter: Any) -> Any:
    """The vector of Eigen that eigenpy makes of a NumPy array."""
    import eigenpy

    made = eigenpy.StdVec_VectorXd()
    made.append(_array_of(exporter, "float64", 1))
    return made[0].copy()


def faiss_vectors(exporter: Any) -> Any:
    """The vectors that a faiss index keeps of a NumPy array."""
    import faiss

    array = _array_of(exporter, "float32", 2)
    index = faiss.IndexFlatL2(array.shape[1])
    index.add(array)
    return index.reconstruct_n(0, len(array))


def gt4py_from_array(exporter: Any) -> Any:
    """GT4Py's storage that is made of an exporter."""
    from gt4py import storage

    return storage.from_array(exporter, backend="numpy")


def h5py_dataset(exporter: Any) -> Any:
    """The elements of an exporter as h5py writes them to a file in memory and reads them again."""
    import h5py

    taken(exporter, NUMBERS)
    with h5py.File("zoo", "w", driver="core", backing_store=False) as file:
        return file.create_dataset("x", data=exporter)[()]


def imageio_tiff(exporter: Any) -> Any:
    """The image of an exporter as imageio writes it to a TIFF file and reads it again."""
    import imageio.v3 as iio

    taken(exporter, "uint8 float32", 2)
    return iio.imread(iio.imwrite("<bytes>", exporter, extension=".tiff", plugin="pillow"))


def itk_image(exporter: Any) -> Any:
    """The pixels of an ITK image that is made of an exporter."""
    import itk

    taken(exporter, "uint8 uint16 float32 float64", 2, 3)
    return itk.array_from_image(itk.image_from_array(exporter))


def lightgbm_label(exporter: Any) -> Any:
    """The label that a dataset of LightGBM keeps of a NumPy array."""
    import lightgbm

    import numpy as np

    array = _array_of(exporter, "float32", 1)
    data = lightgbm.Dataset(np.ones((len(array), 1)), label=array, params={"verbose": -1})
    return data.construct().get_label()


@gives_bytes
def lz4_compressed(exporter: Any) -> Any:
    """The plain bytes of a buffer, compressed by LZ4 and decompressed."""
    import lz4.frame

    nbytes(exporter)
    return lz4.frame.decompress(lz4.frame.compress(exporter))


def mpi4py_sent(exporter: Any) -> Any:
    """The elements that one process receives when it sends an exporter's memory to itself."""
    import numpy as np
    from mpi4py import MPI

    name, shape = taken(exporter, NUMBERS)
    with memoryview(
        exporter
    ) as view:  # messages are memory: it arrives in the order in which it is sent
        order: Any = "C" if view.c_contiguous else "F"
    received = np.empty(shape, name, order)
    MPI.COMM_SELF.Sendrecv(exporter, 0, recvbuf=received, source=0)
    return received


def ncnn_mat(exporter: Any) -> Any:
    """The matrix of ncnn over an exporter's memory."""
    import ncnn

    taken(exporter, "float32", 1, 2, 3)
    return ncnn.Mat(exporter)


def netcdf4_variable(exporter: Any) -> Any:
    """The elements of an exporter after netCDF4 has written them to memory and read them."""
    import netCDF4
    import numpy as np

    name, shape = taken(exporter, NUMBERS)
    with netCDF4.Dataset("zoo", "w", diskless=True) as file:
        for axis, extent in enumerate(shape):
            file.createDimension(f"d{axis}", extent)
        axes = [f"d{axis}" for axis in range(len(shape))]
        variable = file.createVariable("x", name, axes, fill_value=False)
        variable.set_auto_mask(False)
        variable[...] = exporter
        return np.array(variable[...])


def nlopt_bounds(exporter: Any) -> Any:
    """The bounds that NLopt keeps of a NumPy array."""
    import nlopt

    array = _array_of(exporter, "float64", 1)
    problem = nlopt.opt(nlopt.LN_COBYLA, len(array))
    problem.set_lower_bounds(array)
    return problem.get_lower_bounds()


def numexpr_copied(exporter: Any) -> Any:
    """The copy of an exporter that numexpr makes."""
    import numexpr

    taken(exporter, "float32 float64 int32 int64")
    return numexpr.evaluate("x", {"x": exporter})


@gives_bytes
def numpy_ndarray(exporter: Any) -> Any:
    """`numpy.ndarray(n, "u1", buffer=exporter)`."""
    import numpy as np

    return np.ndarray(nbytes(exporter), "u1", buffer=exporter)


def numba_field(exporter: Any) -> Any:
    """A field of packed records, with the elements of an exporter, as a compiled function of Numba
    returns it. The function has seen such a field of the native byte order before.
    """
    import numba
    import numpy as np

    def field(dtype: Any) -> Any:
        return np.zeros(len(array), [("first", "i1"), ("x", dtype)])["x"]

    array = _array_of(exporter, NUMBERS, 1)
    returned = numba.njit(lambda x: x)
    returned(field(array.dtype.newbyteorder("=")))
    elements = field(array.dtype)
    elements[:] = array
    return returned(elements)


def onnxruntime_value(exporter: Any) -> Any:
    """The value of ONNX Runtime that is made of a NumPy array."""
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(_array_of(exporter, NUMBERS)).numpy()


def openexr_channel(exporter: Any) -> Any:
    """The channel of a NumPy array as OpenEXR writes it to a file and reads it again."""
    import os
    import tempfile

    import OpenEXR

    array = _array_of(exporter, "float32 uint32", 2)
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.exr")
        OpenEXR.File(header, {"Y": array}).write(path)
        return OpenEXR.File(path, separate_channels=True).channels()["Y"].pixels


def pandas_series(exporter: Any) -> Any:
    """The numbers of a pandas Series that is made of a NumPy array, added to zero."""
    import pandas

    return (pandas.Series(_array_of(exporter, NUMBERS, 1)) + 0).to_numpy()


@gives_bytes
def pillow_frombuffer(exporter: Any) -> Any:
    """A gray image of Pillow over plain bytes."""
    from PIL import Image

    return Image.frombuffer("L", (nbytes(exporter), 1), exporter, "raw", "L", 0, 1).tobytes()


def polars_series(exporter: Any) -> Any:
    """The numbers of a polars Series that is made of a NumPy array."""
    import polars

    return polars.Series(_array_of(exporter, NUMBERS, 1)).to_numpy()


def pyarrow_tensor(exporter: Any) -> Any:
    """The numbers of an Arrow tensor that is made of a NumPy array."""
    import pyarrow

    return pyarrow.Tensor.from_numpy(_array_of(exporter, NUMBERS)).to_numpy()


def pybigwig_values(exporter: Any) -> Any:
    """The values of a NumPy array as pyBigWig writes them to a file and reads them again."""
    import os
    import tempfile

    import numpy as np
    import pyBigWig

    array = _array_of(exporter, "float32", 1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.bw")
        with pyBigWig.open(path, "w") as file:
            file.addHeader([("chr", 2 * len(array))])
            file.addEntries("chr", 0, values=array, span=1, step=1)
        with pyBigWig.open(path) as file:
            return np.array(file.values("chr", 0, len(array)), "f4")


@gives_bytes
def pygame_image(exporter: Any) -> Any:
    """The pixels of a surface of pygame over plain bytes."""
    import pygame

    surface = pygame.image.frombuffer(exporter, (nbytes(exporter), 1), "P")
    return surface.get_view("0")


def pygame_surfarray(exporter: Any) -> Any:
    """The pixels of a surface of pygame to which a NumPy array is copied."""
    import numpy as np
    import pygame

    array = _array_of(exporter, "uint32", 2)
    surface = pygame.Surface(array.shape, depth=32, masks=(0xFF0000, 0xFF00, 0xFF, 0xFF000000))
    pygame.surfarray.blit_array(surface, array)
    return pygame.surfarray.array2d(surface).astype(np.int64).astype(np.uint32)


def pyopencl_array(exporter: Any) -> Any:
    """The numbers of a NumPy array on the first device of OpenCL, added to zero there."""
    import pyopencl
    import pyopencl.array

    array = _array_of(exporter, "float32 float64 int32 int64")
    queue = pyopencl.CommandQueue(pyopencl.create_some_context(interactive=False))
    return (pyopencl.array.to_device(queue, array) + 0).get()


def rasterio_band(exporter: Any) -> Any:
    """The band of a NumPy array as rasterio writes it to a file in memory and reads it again."""
    import warnings

    from rasterio.io import MemoryFile

    array = _array_of(exporter, "uint8 int16 uint16 int32 float32 float64", 2)
    warnings.simplefilter("ignore")
    with MemoryFile() as memory:
        height, width = array.shape
        with memory.open(
            driver="GTiff", height=height, width=width, count=1, dtype=array.dtype.name
        ) as file:
            file.write(array, 1)
        with memory.open() as file:
            return file.read(1)


def safetensors_saved(exporter: Any) -> Any:
    """A NumPy array as safetensors saves and loads it."""
    from safetensors.numpy import load, save

    return load(save({"x": _array_of(exporter, NUMBERS)}))["x"]


def simpleitk_image(exporter: Any) -> Any:
    """The pixels of a SimpleITK image that is made of an exporter."""
    import SimpleITK

    taken(exporter, "uint8 int16 uint16 int32 float32 float64", 2, 3)
    return SimpleITK.GetArrayFromImage(SimpleITK.GetImageFromArray(exporter, isVector=False))


@gives_bytes
def skia_data(exporter: Any) -> Any:
    """`skia.Data(exporter)`: plain bytes."""
    import skia

    nbytes(exporter)
    return memoryview(skia.Data(exporter))


def skia_image(exporter: Any) -> Any:
    """The pixels of an image of Skia that is made of a NumPy array, which gives each of its four
    channels.
    """
    import numpy as np
    import skia

    array = _array_of(exporter, "float32", 2)
    pixels = np.repeat(array[:, :, None], 4, axis=2)
    image = skia.Image.fromarray(pixels, skia.kRGBA_F32_ColorType)
    return image.toarray(colorType=skia.kRGBA_F32_ColorType)[:, :, 0]


@gives_bytes
def snappy_compressed(exporter: Any) -> Any:
    """The plain bytes of a buffer, compressed by python-snappy and decompressed."""
    import snappy

    nbytes(exporter)
    return bytes(snappy.decompress(snappy.compress(exporter)))


def tiledb_array(exporter: Any) -> Any:
    """A NumPy array as TileDB writes it to memory and reads it again."""
    import tiledb

    with tiledb.from_numpy("mem://zoo", _array_of(exporter, NUMBERS), ctx=tiledb.Ctx()) as kept:
        return kept[:]


def tinygrad_tensor(exporter: Any) -> Any:
    """The numbers of a tensor of tinygrad, on the device that needs no compiler, made of a NumPy
    array.
    """
    import tinygrad

    return tinygrad.Tensor(_array_of(exporter, NUMBERS), device="PYTHON").numpy()


def tvm_ffi_stream(exporter: Any) -> Any:
    """A stream that is passed to a function of TVM FFI, which returns it."""
    import tvm_ffi

    if not hasattr(exporter, "__cuda_stream__"):
        raise TypeError(f"{type(exporter).__name__} is not a stream")
    return tvm_ffi.convert(lambda stream: stream)(exporter)


def voyager_vectors(exporter: Any) -> Any:
    """The vectors that a Voyager index keeps of a NumPy array."""
    import voyager

    array = _array_of(exporter, "float32", 2)
    index = voyager.Index(voyager.Space.Euclidean, num_dimensions=array.shape[1])
    return index.get_vectors(index.add_items(array))


def zarr_array(exporter: Any) -> Any:
    """An exporter as zarr writes it to memory and reads it again."""
    import zarr

    taken(exporter, NUMBERS)
    return zarr.array(exporter)[...]


def zfpy_compressed(exporter: Any) -> Any:
    """A NumPy array, compressed without loss by zfpy and decompressed."""
    import zfpy

    array = _array_of(exporter, "float32 float64 int32 int64", 1, 2, 3, 4)
    return zfpy.decompress_numpy(zfpy.compress_numpy(array))
