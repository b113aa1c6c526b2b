"""Consumers of the zoo beyond the suite's own: functions of one exporter, each over one library's documented import.

Named as targets by the file, relative to the folder `conformance`: `zoo/takers.py:cuda_core_view`. The libraries
are imported inside, for no environment has them all.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "cuda_core_view",
    "imagecodecs_tiff",
    "jax_computed",
    "onnxruntime_from_dlpack",
    "opencv_copied",
    "openvino_tensor",
    "soundfile_written",
    "tensorstore_read",
    "vtk_from_numpy",
    "xgboost_data",
]


def cuda_core_view(exporter: Any) -> Any:
    """`cuda.core`'s view of host memory; -1 asks for no synchronization. 0.3 has the constructor alone."""
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError:
        from cuda.core.experimental.utils import StridedMemoryView

        return StridedMemoryView(exporter, stream_ptr=-1)
    return StridedMemoryView.from_dlpack(exporter, stream_ptr=-1)


def jax_computed(exporter: Any) -> Any:
    """What a JAX computation sees of an imported array: its values are what the array is worth."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    array = jax.dlpack.from_dlpack(exporter)
    return jax.numpy.flip(jax.numpy.flip(array)) if array.ndim else array


def onnxruntime_from_dlpack(exporter: Any) -> Any:
    """onnxruntime's import, which takes a capsule; False: the elements are not boolean."""
    from onnxruntime.capi import _pybind_state

    return _pybind_state.OrtValue.from_dlpack(exporter.__dlpack__(), False)


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
    """The samples of a NumPy array as python-soundfile writes them to a file without a header."""
    import io

    import numpy as np
    import soundfile

    array = np.asarray(exporter)
    subtype = {"float32": "FLOAT", "float64": "DOUBLE", "int16": "PCM_16", "int32": "PCM_32"}
    file = io.BytesIO()
    soundfile.write(file, array, 8000, format="RAW", subtype=subtype[array.dtype.name])
    return np.frombuffer(file.getvalue(), array.dtype.newbyteorder("=")).reshape(array.shape)


def imagecodecs_tiff(exporter: Any) -> Any:
    """The image of a NumPy array as imagecodecs writes it to a TIFF file and reads it again."""
    import imagecodecs
    import numpy as np

    array = np.asarray(exporter)
    return imagecodecs.tiff_decode(imagecodecs.tiff_encode(array)).reshape(array.shape)


def tensorstore_read(exporter: Any) -> Any:
    """The elements that TensorStore reads from a view of a NumPy array."""
    import numpy as np
    import tensorstore

    return tensorstore.array(np.asarray(exporter)).read().result()


def vtk_from_numpy(exporter: Any) -> Any:
    """The numbers of a VTK array that is made of a NumPy array, as NumPy sees them again."""
    import numpy as np
    from vtkmodules.util import numpy_support

    array = np.asarray(exporter)
    if array.ndim not in (1, 2):
        raise TypeError("VTK's arrays have one or two dimensions")
    made = numpy_support.numpy_to_vtk(array, deep=True)
    return numpy_support.vtk_to_numpy(made).reshape(array.shape)


def xgboost_data(exporter: Any) -> Any:
    """The numbers of a DMatrix over a NumPy array of float32, which is the type that it keeps."""
    import numpy as np
    import xgboost

    array = np.asarray(exporter)
    if array.dtype.name != "float32" or array.ndim != 2:
        raise TypeError("the zoo takes matrices of float32 only: a DMatrix converts other types")
    kept = xgboost.DMatrix(array, missing=-1.0).get_data()
    return kept.toarray().astype("float32", copy=False)
