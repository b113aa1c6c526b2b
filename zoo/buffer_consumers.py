"""More consumers that only the zoo uses: entry points of libraries that take a buffer or DLPack
themselves.
"""

from __future__ import annotations

from typing import Any

from consumers import NUMBERS, nbytes, taken

from gridbuf_conformance.plugins.libraries.functions import gives_bytes


def arro3_buffer(exporter: Any) -> Any:
    """The elements of an array of arro3 over an exporter's buffer."""
    import arro3.core

    taken(exporter, NUMBERS, 1)
    return arro3.core.Array.from_buffer(exporter).to_numpy()


def av_from_dlpack(exporter: Any) -> Any:
    """The pixels of the gray frame of PyAV over the memory of DLPack."""
    import av

    return av.VideoFrame.from_dlpack((exporter,), format="gray").to_ndarray()


@gives_bytes
def av_plane_updated(exporter: Any) -> Any:
    """The bytes that PyAV copies to the plane of a frame of sound, which has no padding."""
    import av

    frame = av.AudioFrame("u8", "mono", nbytes(exporter), align=1)
    frame.planes[0].update(exporter)
    return bytes(frame.planes[0])


@gives_bytes
def bitarray_over(exporter: Any) -> Any:
    """A bitarray over plain bytes."""
    import bitarray

    nbytes(exporter)
    return memoryview(bitarray.bitarray(buffer=exporter))


def cvxopt_matrix(exporter: Any) -> Any:
    """The matrix of CVXOPT that is copied from a buffer of float64."""
    import cvxopt

    taken(exporter, "float64", 2)
    return cvxopt.matrix(exporter)


def mlir_elements(exporter: Any) -> Any:
    """The elements of an attribute of MLIR, in the bindings of JAX, that is made of a buffer."""
    import numpy as np
    from jaxlib.mlir import ir

    with ir.Context(), ir.Location.unknown():
        return np.array(ir.DenseElementsAttr.get(exporter))


@gives_bytes
def nanoarrow_buffer(exporter: Any) -> Any:
    """The buffer of nanoarrow, which has one dimension, over a buffer or DLPack."""
    import nanoarrow

    return nanoarrow.c_buffer(exporter)


def openusd_array(exporter: Any) -> Any:
    """The array of OpenUSD that is copied from a buffer of float64."""
    from pxr import Vt

    taken(exporter, "float64", 1)
    return Vt.DoubleArray.FromBuffer(exporter)


@gives_bytes
def pyopencl_copied(exporter: Any) -> Any:
    """The plain bytes of a buffer, copied to the first device of OpenCL and back."""
    import pyopencl

    back = bytearray(nbytes(exporter))
    context = pyopencl.create_some_context(interactive=False)
    flags = pyopencl.mem_flags.READ_ONLY | pyopencl.mem_flags.COPY_HOST_PTR
    kept = pyopencl.Buffer(context, flags, hostbuf=exporter)
    pyopencl.enqueue_copy(pyopencl.CommandQueue(context), back, kept)
    return bytes(back)


@gives_bytes
def skia_frombytes(exporter: Any) -> Any:
    """The pixels of an image of Skia, one byte each, that is made of plain bytes."""
    import skia

    size = (nbytes(exporter), 1)
    return skia.Image.frombytes(exporter, size, skia.kGray_8_ColorType).tobytes()


@gives_bytes
def soundfile_buffer_written(exporter: Any) -> Any:
    """The plain bytes of samples of float32 as python-soundfile writes them to a file without a
    header.
    """
    import io

    import soundfile

    if nbytes(exporter) % 4:
        raise TypeError("the last sample is not complete")
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", 8000, 1, "FLOAT", format="RAW") as written:
        written.buffer_write(exporter, "float32")
        written.flush()
    return file.getvalue()


@gives_bytes
def vtk_set_void_array(exporter: Any) -> Any:
    """A VTK array of bytes over an exporter's plain bytes."""
    from vtkmodules.vtkCommonCore import vtkUnsignedCharArray

    made = vtkUnsignedCharArray()
    made.SetVoidArray(exporter, nbytes(exporter), 1)
    return memoryview(made)
