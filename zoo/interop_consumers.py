"""Consumers of the scoreboard that are not one function of their library.

A setting names each with its library: `h5py=zoo/interop_consumers.py:h5py_dataset`. They pass on
every array, so that a refusal is the library's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def opencv_copied(array: Any) -> Any:
    """`cv2.copyTo(array, None)`."""
    import cv2

    return cv2.copyTo(array, None)


def h5py_dataset(array: Any) -> Any:
    """The elements of a dataset of HDF5 in memory, created with `data=array`."""
    import h5py

    with h5py.File("scoreboard", "w", driver="core", backing_store=False) as file:
        return file.create_dataset("x", data=array)[()]


def skimage_cropped(array: Any) -> Any:
    """`skimage.util.crop(array, 0, copy=True)`."""
    from skimage.util import crop

    return crop(array, 0, copy=True)


def simpleitk_image(array: Any) -> Any:
    """The pixels of `SimpleITK.GetImageFromArray(array, isVector=False)`."""
    import SimpleITK

    return SimpleITK.GetArrayFromImage(SimpleITK.GetImageFromArray(array, isVector=False))


def safetensors_saved(array: Any) -> Any:
    """What `safetensors.numpy.load` reads of what `save` wrote."""
    from safetensors.numpy import load, save

    return load(save({"x": array}))["x"]


def duckdb_column(array: Any) -> Any:
    """The column that a query of DuckDB reads from a variable, which must be one-dimensional."""
    import duckdb

    if len(getattr(array, "shape", (0,))) != 1:
        raise TypeError("a column has one dimension")
    numbers = array  # noqa: F841, which the query names
    return duckdb.sql("select * from numbers").fetchnumpy()["column0"]


@lru_cache
def _identity() -> Any:
    import numba

    return numba.njit(lambda x: x)


def numba_returned(array: Any) -> Any:
    """What a compiled function of Numba returns that returns its argument."""
    return _identity()(array)


def onnxruntime_updated(array: Any) -> Any:
    """An `OrtValue` of the array's shape and type after `update_inplace(array)`."""
    from onnxruntime import OrtValue

    value = OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype.type)
    value.update_inplace(array)
    return value.numpy()


def onnxruntime_from_dlpack(array: Any) -> Any:
    """`OrtValue.from_dlpack(array)`; older releases import a capsule, where False says that it is
    not boolean.
    """
    from onnxruntime import OrtValue
    from onnxruntime.capi import _pybind_state

    if hasattr(OrtValue, "from_dlpack"):
        return OrtValue.from_dlpack(array)
    return _pybind_state.OrtValue.from_dlpack(array.__dlpack__(), False)
