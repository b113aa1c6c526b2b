"""`gt4py.storage` over gridbuf: a model that allocates through it switches by changing one import.

>>> from gridbuf.gt4py import cartesian as storage  # was: from gt4py import storage
>>> field = storage.zeros((134, 134, 80), backend="gt:cpu_ifirst", aligned_index=(3, 3, 0))
>>> field[3, 3, 0:1].ctypes.data % 64
0

The signatures, what they return (an ndarray; for GPU backends CuPy's) and which inputs they refuse are those of GT4Py 1.1 and 1.2. The
differences:

* the layout follows the *names* I, J and K in `dimensions`, whatever their order; GT4Py's ignores it. Data dimensions, whose
  names are numbers, follow their position, as in GT4Py;
* alignment is that of gridbuf's presets: 64 bytes for `gt:cpu_ifirst`, which GT4Py leaves unaligned;
* memory comes from gridbuf: huge pages and kept blocks for large arrays; gridbuf refuses a shape whose size overflows.

Everything else of `gt4py.storage` (`from_name`, `register`, `layout`, …) is GT4Py's own, imported when it is used. A layout that a
program registered there is known here, too; a name that gridbuf has means gridbuf's preset (spec 2.3).
"""

from __future__ import annotations

import importlib
import itertools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core

__all__ = ["UnknownBackendError", "empty", "from_array", "full", "ones", "zeros"]


def __dir__() -> list[str]:
    return __all__


class UnknownBackendError(ValueError, RuntimeError):
    """No preset and no layout registered with GT4Py has this name.

    It is a ValueError, as in gridbuf, and a RuntimeError, as in GT4Py (docs/spec.md 12.86).
    """


def empty(
    shape: Sequence[int],
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[str] | None = None,
) -> npt.NDArray[Any]:
    """Return a new array for a backend, whose elements are undefined (docs/spec.md 12.84 to 12.87).

    Parameters
    ----------
    shape : sequence of int
        Extents in elements, each at least 1.
    dtype : dtype_like, default float64
        Element type. The shape of a sub-array dtype is appended as data dimensions.
    backend : str
        A preset, or a layout registered with GT4Py.
    aligned_index : sequence of int, optional
        The index, in elements, whose element is aligned. An entry beyond the extent counts as 0, as
        in GT4Py. Default: zeros.
    dimensions : sequence of str, optional
        Names, or axes of gtscript. Default: I, J, K, 0, 1, ...

    Returns
    -------
    numpy.ndarray
        The array. For GPU backends it is a `cupy.ndarray`.

    Raises
    ------
    UnknownBackendError
        There is no such backend.
    TypeError
        `shape` or `aligned_index` is not a sequence of integers.
    ValueError
        An extent is below 1, an index is negative, or there are too many or too few names or
        indices.
    MemoryError
        There is not enough memory.
    DeviceUnavailableError
        There is no device, or no CuPy.

    Examples
    --------
    >>> from gridbuf.gt4py import cartesian as storage
    >>> storage.empty((3, 4, 5), backend="gt:cpu_ifirst").shape
    (3, 4, 5)
    """
    return _make(_core.empty, shape, dtype, backend, aligned_index, dimensions)


def zeros(
    shape: Sequence[int],
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[str] | None = None,
) -> npt.NDArray[Any]:
    """Return a new array of zeros for a backend (docs/spec.md 12.84 to 12.87).

    Parameters : as in `empty`

    Returns
    -------
    numpy.ndarray
        The array of zeros. For GPU backends it is a `cupy.ndarray`.

    Raises : as in `empty`

    Examples
    --------
    >>> from gridbuf.gt4py import cartesian as storage
    >>> field = storage.zeros((134, 134, 80), backend="gt:cpu_ifirst", aligned_index=(3, 3, 0))
    >>> field[3, 3, 0:1].ctypes.data % 64
    0
    """
    return _make(_core.zeros, shape, dtype, backend, aligned_index, dimensions)


def ones(
    shape: Sequence[int],
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[str] | None = None,
) -> npt.NDArray[Any]:
    """Return a new array of ones for a backend (docs/spec.md 12.84 to 12.87).

    Parameters : as in `empty`

    Returns
    -------
    numpy.ndarray
        The array of ones. For GPU backends it is a `cupy.ndarray`.

    Raises : as in `empty`
    """
    return _make(_core.ones, shape, dtype, backend, aligned_index, dimensions)


def full(
    shape: Sequence[int],
    fill_value: Any,
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[str] | None = None,
) -> npt.NDArray[Any]:
    """Return a new array of `fill_value` for a backend (docs/spec.md 12.84 to 12.87).

    Parameters
    ----------
    shape : as in `empty`
    fill_value : scalar or array_like
        The value of the elements, cast and broadcast as `numpy.full` does.
    dtype, backend, aligned_index, dimensions : as in `empty`

    Returns
    -------
    numpy.ndarray
        The array of `fill_value`. For GPU backends it is a `cupy.ndarray`.

    Raises : as in `empty`
    """

    def make(extents: Any, element: Any, **keywords: Any) -> npt.NDArray[Any]:
        return _core.full(extents, fill_value, element, **keywords)

    return _make(make, shape, dtype, backend, aligned_index, dimensions)


def from_array(
    data: npt.ArrayLike,
    dtype: npt.DTypeLike | None = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[str] | None = None,
) -> npt.NDArray[Any]:
    """Return a copy of an array for a backend (docs/spec.md 12.84 to 12.87).

    Parameters
    ----------
    data : array_like
        An array of any library, a field of `gt4py.next`, or anything that `numpy.asarray` takes.
    dtype : dtype_like or None, default float64
        Element type, to which `astype` converts, as in GT4Py. None keeps that of `data`.
        The last extents of `data` must be the shape of a sub-array dtype.
    backend, aligned_index, dimensions : as in `empty`

    Returns
    -------
    numpy.ndarray
        The copy. For GPU backends it is a `cupy.ndarray`.

    Raises
    ------
    UnknownBackendError : as in `empty`
    TypeError
        `aligned_index` is not a sequence of integers.
    ValueError
        An extent is below 1, an index is negative, there are too many or too few names or indices, or
        the last extents of `data` are not the shape of a sub-array dtype.
    MemoryError, DeviceUnavailableError : as in `empty`

    Examples
    --------
    >>> from gridbuf.gt4py import cartesian as storage
    >>> storage.from_array([1, 2], backend="numpy", dimensions="K").tolist()
    [1.0, 2.0]
    """
    data = getattr(data, "ndarray", data)  # gt4py.next.Field
    source = data if hasattr(data, "shape") and hasattr(data, "dtype") else _core._as_ndarray(data)
    shape = tuple(source.shape)
    element = np.dtype(source.dtype if dtype is None else dtype)
    if element.shape:
        if shape[-element.ndim :] != element.shape:
            raise ValueError(
                f"data has shape {shape}, whose last extents must be {element.shape}, the shape of dtype {element}; "
                "pass the dtype of one element, or data with these dimensions"
            )
        shape = shape[: -element.ndim]

    def make(extents: Any, element: Any, **keywords: Any) -> npt.NDArray[Any]:
        return _core.from_array(source, element, **keywords)

    return _make(make, shape, element, backend, aligned_index, dimensions)


def __getattr__(name: str) -> Any:
    """The other names of `gt4py.storage`, for programs that use them."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        storage = importlib.import_module("gt4py.storage")
    except ImportError as error:
        raise AttributeError(
            f"module {__name__!r} does not define {name!r}, and gt4py.storage cannot be imported: {error}"
        ) from error
    return getattr(storage, name)


def _make(
    function: Callable[..., npt.NDArray[Any]],
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    backend: str,
    aligned_index: Sequence[int] | None,
    dimensions: Sequence[str] | None,
) -> npt.NDArray[Any]:
    """Calls a function of gridbuf with the arguments of GT4Py."""
    known = _core.presets()
    layouts = sys.modules.get("gt4py.storage.cartesian.layout_registry")  # Imports nothing.
    registered: Any = None if layouts is None else layouts.REGISTRY.get(backend)
    if backend not in known and registered is None:
        raise UnknownBackendError(
            f"backend is {backend!r}, but must be one of {', '.join(known)}, or a layout registered with "
            "gt4py.storage.register; add it with gridbuf.register_preset"
        )
    extents, element, names, index = _normalised(shape, dtype, aligned_index, dimensions)
    keywords: dict[str, Any] = {"backend": backend}
    if backend not in known:
        # GT4Py's maps are for names in their usual order only: I, J, K, then the data dimensions by number.
        usual = sorted(
            names, key=lambda name: (name.isdigit(), int(name) if name.isdigit() else 0, name)
        )
        ranks = dict(zip(usual, registered["layout_map"](tuple(usual))))
        keywords = {
            "layout": tuple(int(ranks[name]) for name in names),
            "alignment_size": registered["alignment"] * element.itemsize,  # GT4Py counts elements.
            "device": "gpu" if registered["device"] == "gpu" else None,
        }
    return function(extents, element, dims=names, aligned_index=index, **keywords)


def _normalised(
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    aligned_index: Sequence[int] | None,
    dimensions: Sequence[str] | None,
) -> tuple[tuple[int, ...], np.dtype[Any], tuple[str, ...], tuple[int, ...]]:
    """Shape, dtype, names and aligned index, checked by the core and by the additional rules of GT4Py."""
    element = np.dtype(dtype)
    inner, inner_shape = element.subdtype or (element, ())
    extents = _core.plan(shape, inner).shape
    if any(extent < 1 for extent in extents):
        raise ValueError(
            f"shape is {extents}, but every extent must be at least 1, as GT4Py's stencils require; "
            "gridbuf.empty makes arrays without elements"
        )
    if dimensions is None:
        names = [*"IJK", *(str(number) for number in range(len(extents) - 3))][: len(extents)]
    else:
        names = _numbered([str(getattr(axis, "__gt_axis_name__", axis)) for axis in dimensions])
    if unknown := [name for name in names if name not in {*"IJK"} and not name.isdecimal()]:
        raise ValueError(
            f"dimensions have {unknown[0]!r}, but GT4Py's cartesian stencils know I, J, K and numbers only"
        )
    if len(names) != len(extents):
        raise ValueError(
            f"dimensions are {tuple(names)}, but must be {len(extents)}, as many as shape {extents} has: "
            "the two have non-matching sizes"
        )
    index = _core.plan(extents, inner, aligned_index=_inside(extents, aligned_index)).aligned_index
    first = sum(name.isdecimal() for name in names)
    names += [str(first + number) for number in range(len(inner_shape))]
    return (*extents, *inner_shape), inner, tuple(names), (*index, *(0 for _ in inner_shape))


def _inside(extents: tuple[int, ...], aligned_index: Sequence[int] | None) -> Sequence[int] | None:
    """The aligned index with 0 where it is beyond the extent: GT4Py takes a model's (3, 3, 0) for fields of any extent."""
    if aligned_index is None:
        return None
    try:
        pairs = zip(map(operator.index, aligned_index), extents, strict=True)
        return tuple(entry if entry < extent else 0 for entry, extent in pairs)
    except (TypeError, ValueError):
        return aligned_index  # not one integer per dimension: the core raises the error


def _numbered(names: Sequence[str]) -> list[str]:
    """The names with data dimensions numbered by position: NDSL names each by its extent, so two can have one name."""
    numbers = map(str, itertools.count())
    return [next(numbers) if name.isdecimal() else name for name in names]
