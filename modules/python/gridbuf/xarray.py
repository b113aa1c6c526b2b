"""xarray's DataArray as an array of a grid: importing this module gives it `__gt_data_interface__` and `__gt_dims__`.

The interface is that of `data_array.data`, with the names of the DataArray's dimensions added to each entry. If the data has
names, they must be equal, else reading the interface is a ValueError. Names come in and go out unchanged. The functions of
gridbuf need `dims=` for names that are neither identifiers nor numbers, such as "lat (degrees)".

>>> import gridbuf, gridbuf.xarray, xarray
>>> field = xarray.DataArray(gridbuf.zeros((2, 3)), dims=("lat", "lon"))
>>> gridbuf.as_buffer(field).dims
('lat', 'lon')

Both are properties. xarray's accessors are not used, because xarray keeps the result of an accessor: after
`data_array.data = other` it would describe memory that may be freed. You can replace the properties with
`@xarray.register_dataarray_accessor("__gt_data_interface__")`; xarray then warns about the replacement.

The functions of this module keep labels (coordinates, attributes, name). `to_data_array` makes a DataArray over an array of
gridbuf, without a copy. `storage`, `as_storage`, `from_array`, `empty_like`, `zeros_like`, `ones_like` and `full_like` are
the functions of the same names for DataArrays. `domain_view` leaves the halo out.

A storage in a DataArray keeps its halo, layout and device, because xarray does not convert arrays that have NumPy's protocols.
`data_array.as_numpy()` has the same labels over an ndarray of the same memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

try:
    import xarray
except ModuleNotFoundError:
    raise ImportError("gridbuf.xarray needs xarray: pip install xarray")

from . import storage as storages
from ._core import GTNoSuchBufferError, as_numpy, get_dims
from ._core import from_array as plain_from_array

__all__ = [
    "as_storage",
    "data_interface",
    "dims",
    "domain_view",
    "empty_like",
    "from_array",
    "full_like",
    "ones_like",
    "storage",
    "to_data_array",
    "zeros_like",
]


def __dir__() -> list[str]:
    return __all__


def dims(data_array: xarray.DataArray) -> tuple[Hashable, ...]:
    """Return the names of the dimensions, as `__gt_dims__` (docs/spec.md 7.19).

    Parameters
    ----------
    data_array : xarray.DataArray
        Any DataArray.

    Returns
    -------
    tuple of hashable
        One name per dimension, whatever it is.
    """
    return data_array.dims


def data_interface(data_array: xarray.DataArray) -> dict[str | None, dict[str, Any]]:
    """Return the `__gt_data_interface__` of a DataArray.

    Parameters
    ----------
    data_array : xarray.DataArray
        Any DataArray over memory.

    Returns
    -------
    dict
        The interface of the data if the data has one. Else an entry under None from
        `__array_interface__`, and one under "gpu" from `__cuda_array_interface__`. Each entry has
        the names of the dimensions.

    Raises
    ------
    ValueError
        An entry of the data has other names.
    AttributeError
        The data has none of the three interfaces, as a Dask array. Load it first.

    Notes
    -----
    Rules: GT-11 and docs/spec.md 7.19.

    Examples
    --------
    >>> import gridbuf.xarray, xarray
    >>> field = xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=('I', 'J'))
    >>> gridbuf.xarray.data_interface(field)[None]["dims"]
    ('I', 'J')
    """
    entries = _entries_of(data_array.data)
    if not entries:
        raise AttributeError(
            f"a DataArray over {type(data_array.data).__name__} has no __gt_data_interface__: its data has neither that "
            "nor an array interface; load or compute it first"
        )
    return {device: _named(entry, device, data_array.dims) for device, entry in entries.items()}


def _entries_of(data: object) -> dict[str | None, dict[str, Any]]:
    interface: dict[str | None, dict[str, Any]] | None = getattr(
        data, "__gt_data_interface__", None
    )
    if interface is not None:
        return interface
    found = {
        None: getattr(data, "__array_interface__", None),
        "gpu": getattr(data, "__cuda_array_interface__", None),
    }
    return {device: entry for device, entry in found.items() if entry is not None}


def _named(
    entry: dict[str, Any], device: str | None, names: tuple[Hashable, ...]
) -> dict[str, Any]:
    own = entry.get("dims")
    if own is not None and tuple(own) != names:
        raise ValueError(
            f"GT-11: dims of the data's entry for {device!r} are {tuple(own)}, but must be {names}, those of the "
            "DataArray; rename one of them, for example with data_array.rename"
        )
    return {**entry, "dims": names}


def to_data_array(
    array: Any,
    coords: Mapping[Any, Any] | None = None,
    *,
    dims: Sequence[Hashable] | None = None,
    like: xarray.DataArray | None = None,
    name: Hashable | None = None,
    attrs: Mapping[Any, Any] | None = None,
) -> xarray.DataArray:
    """Return a DataArray over the memory of an array, without a copy (docs/spec.md 9.70).

    Parameters
    ----------
    array : object
        A storage, which stays a storage inside; or anything `gridbuf.as_numpy` takes, which becomes
        an ndarray. Other memory of a device becomes a GPUStorage. Of a DataArray its data, and it
        is `like` unless you pass one.
    coords : mapping, optional
        As `xarray.DataArray` takes them, over whole extents, with halo: `{"I": values}`, or
        `{"lat": ("I", values)}` for a coordinate of another name.
    dims : sequence of hashable, optional
        Names of the dimensions. Default: those of the array (`gridbuf.get_dims`), else those of
        `like` if it has as many, else I, J, K, 0, 1, ...
    like : xarray.DataArray, optional
        It gives name, attributes, and every coordinate whose dimensions the array has.
    name : hashable, optional
        Name. Default: that of `like`.
    attrs : mapping, optional
        Attributes. Default: those of `like`.

    Returns
    -------
    xarray.DataArray
        It keeps the memory alive.

    Raises
    ------
    ValueError
        The array has other names than `dims`, or an extent differs from that of a coordinate.
    TypeError
        `array` has none of the interfaces that gridbuf reads.

    Examples
    --------
    >>> import gridbuf, gridbuf.xarray
    >>> gridbuf.xarray.to_data_array(gridbuf.zeros((2, 3)), name="u").dims
    ('I', 'J')
    """
    if isinstance(array, xarray.DataArray):
        return to_data_array(
            array.data, coords, dims=dims or array.dims, like=like or array, name=name, attrs=attrs
        )
    data = _kept(array)
    names = _names_for(array, data, dims, like)
    labels: dict[Any, Any] = {} if like is None else _coordinates_along(like, names, data.shape)
    labels.update(coords or {})
    result = xarray.DataArray(data, dims=names, coords=labels)
    if like is not None:
        result.name, result.attrs = like.name, dict(like.attrs)
    if name is not None:
        result.name = name
    if attrs is not None:
        result.attrs = dict(attrs)
    return result


def _kept(array: Any) -> Any:
    """The object that a DataArray holds for an array. xarray copies other types, or makes object arrays from them."""
    if isinstance(array, storages.Storage):
        # xarray pairs points by its labels, else by position.
        return array if not any(n is not None for n in array.lower) else array._by_position()
    try:
        return as_numpy(array)
    except GTNoSuchBufferError:
        return storages.as_storage(array, managed=None)


def _names_for(
    array: Any,
    data: Any,
    wanted: Sequence[Hashable] | None,
    like: xarray.DataArray | None,
) -> tuple[Hashable, ...]:
    own = get_dims(array)
    if wanted is None:
        if own is not None:
            return tuple(own)
        if like is not None and like.ndim == data.ndim:
            return like.dims
        return (*"IJK"[: data.ndim], *(str(n) for n in range(data.ndim - 3)))
    names = tuple(wanted)
    if own is not None and tuple(own) != names:
        raise ValueError(
            f"dims are {names}, but must be {tuple(own)}, as the array names them (GT-11); leave dims away, or transpose the "
            'array. A coordinate may have another name: coords={"lat": ("I", values)}'
        )
    if len(names) != data.ndim:
        raise ValueError(
            f"dims are {names}, that is {len(names)}, but must be {data.ndim}, one for each dimension of shape {data.shape}"
        )
    return names


def _coordinates_along(
    like: xarray.DataArray, names: tuple[Hashable, ...], shape: tuple[int, ...]
) -> dict[Any, Any]:
    """The coordinates of `like` along these dimensions."""
    extents = dict(zip(names, shape, strict=True))
    found = {}
    for label, coordinate in like.coords.items():
        if not set(coordinate.dims) <= set(names):
            continue
        for dimension, extent in zip(coordinate.dims, coordinate.shape, strict=True):
            if extents[dimension] != extent:
                raise ValueError(
                    f"coordinate {label!r} of like has {extent} values along {dimension!r}, but must have "
                    f"{extents[dimension]}, the extent of the array; pass coords=, or like=gridbuf.xarray.domain_view(...) "
                    "for the domain of a field"
                )
        found[label] = coordinate.variable
    return found


def domain_view(data_array: xarray.DataArray) -> xarray.DataArray:
    """Return the DataArray without the halo that its data's interface has, without a copy.

    Parameters
    ----------
    data_array : xarray.DataArray
        Any DataArray over memory.

    Returns
    -------
    xarray.DataArray
        A view, with the coordinates of the domain.

    Notes
    -----
    Data without a halo gives a view of the whole. Rules: docs/spec.md 9.72.

    Examples
    --------
    >>> import gridbuf.storage, gridbuf.xarray
    >>> field = gridbuf.xarray.to_data_array(gridbuf.storage.ones((4, 4), halo=(1, 1)))
    >>> gridbuf.xarray.domain_view(field).shape
    (2, 2)
    """
    entries: dict[str | None, dict[str, Any]] = data_array.__gt_data_interface__
    halo = next(iter(entries.values())).get("halo") or ((0, 0),) * data_array.ndim
    kept = {}
    for name, extent, width in zip(data_array.dims, data_array.shape, halo, strict=True):
        lower, upper = (width, width) if isinstance(width, int) else width
        kept[name] = slice(lower, extent - upper)
    return data_array.isel(kept)


def storage(
    data_array: xarray.DataArray, *, dtype: Any = None, **parameters: Any
) -> xarray.DataArray:
    """Return a DataArray over a new storage with a copy of the elements (docs/spec.md 9.71).

    Parameters
    ----------
    data_array : xarray.DataArray
        Any DataArray. The names of its dimensions stay. `dims=` renames them by position: with
        `dims="IJ"` the coordinate "lat" is then along "I".
    dtype : dtype_like, optional
        Element type. Default: that of `data_array`.
    **parameters
        Keywords of `gridbuf.storage.storage`.

    Returns
    -------
    xarray.DataArray
        It has the labels of `data_array`.

    Raises
    ------
    ValueError
        A dimension has a text that is not a name (docs/spec.md 1.7), or a parameter is out of
        bounds.
    TypeError
        A parameter is unknown or has a wrong kind.

    Examples
    --------
    >>> import gridbuf.xarray, xarray
    >>> field = xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=('I', 'J'))
    >>> type(gridbuf.xarray.storage(field).data).__name__
    'CPUStorage'
    """
    made = storages.storage(data_array, dtype=dtype, **parameters)
    return _labelled(data_array, made, parameters)


def as_storage(data_array: xarray.DataArray, **parameters: Any) -> xarray.DataArray:
    """Return a DataArray over a storage of the same memory (docs/spec.md 9.71).

    Parameters
    ----------
    data_array : as in `storage`
    **parameters
        Keywords of `gridbuf.storage.as_storage`.

    Returns, Raises : as in `storage`
    """
    return _labelled(data_array, storages.as_storage(data_array, **parameters), parameters)


def from_array(
    data_array: xarray.DataArray, dtype: Any = None, **parameters: Any
) -> xarray.DataArray:
    """Return a DataArray over a new plain array with a copy of the elements (docs/spec.md 9.71).

    Parameters
    ----------
    data_array, dtype : as in `storage`
    **parameters
        Keywords of `gridbuf.from_array`.

    Returns, Raises : as in `storage`

    Examples
    --------
    >>> import gridbuf.xarray, xarray
    >>> field = xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=('I', 'J'))
    >>> gridbuf.xarray.from_array(field, layout=(1, 0)).data.strides
    (8, 16)
    """
    return _labelled(data_array, plain_from_array(data_array, dtype, **parameters), parameters)


def empty_like(
    data_array: xarray.DataArray, dtype: Any = None, **parameters: Any
) -> xarray.DataArray:
    """Return a DataArray over a new storage whose elements are undefined (docs/spec.md 9.71).

    Parameters
    ----------
    data_array, dtype : as in `storage`
    **parameters
        Keywords of the function with this name in `gridbuf.storage`.

    Returns, Raises : as in `storage`
    """
    return _labelled(data_array, storages.empty_like(data_array, dtype, **parameters), parameters)


def zeros_like(
    data_array: xarray.DataArray, dtype: Any = None, **parameters: Any
) -> xarray.DataArray:
    """Return a DataArray over a new storage of zeros (docs/spec.md 9.71).

    Parameters, Returns, Raises : as in `empty_like`
    """
    return _labelled(data_array, storages.zeros_like(data_array, dtype, **parameters), parameters)


def ones_like(
    data_array: xarray.DataArray, dtype: Any = None, **parameters: Any
) -> xarray.DataArray:
    """Return a DataArray over a new storage of ones (docs/spec.md 9.71).

    Parameters, Returns, Raises : as in `empty_like`
    """
    return _labelled(data_array, storages.ones_like(data_array, dtype, **parameters), parameters)


def full_like(
    data_array: xarray.DataArray, fill_value: Any, dtype: Any = None, **parameters: Any
) -> xarray.DataArray:
    """Return a DataArray over a new storage of `fill_value` (docs/spec.md 9.71).

    Parameters
    ----------
    data_array : as in `storage`
    fill_value : scalar or array_like
        The value of the elements, cast and broadcast as `numpy.full` does.
    dtype : as in `storage`
    **parameters
        Keywords of `gridbuf.storage.full_like`.

    Returns, Raises : as in `storage`

    Examples
    --------
    >>> import gridbuf.xarray, xarray
    >>> field = xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=('I', 'J'))
    >>> gridbuf.xarray.full_like(field, 7).data.tolist()
    [[7.0, 7.0], [7.0, 7.0]]
    """
    return _labelled(
        data_array, storages.full_like(data_array, fill_value, dtype, **parameters), parameters
    )


def _labelled(
    data_array: xarray.DataArray, data: Any, parameters: dict[str, Any]
) -> xarray.DataArray:
    """The labels of a DataArray around other data of its shape, its dimensions renamed if `dims` was passed."""
    wanted = parameters.get("dims")
    labels = data_array
    if wanted is not None and tuple(wanted) != data_array.dims:
        # A Dataset can rename dimensions and leave the coordinates of the old names where they are.
        one = data_array.to_dataset(name="one")
        names = dict(zip(data_array.dims, wanted, strict=True))
        labels = one.rename_dims({old: new for old, new in names.items() if old != new})["one"]
        labels.name = data_array.name
    return labels.copy(deep=False, data=data)


# Not register_dataarray_accessor: see above.
xarray.DataArray.__gt_data_interface__ = property(data_interface)  # type: ignore[attr-defined]
xarray.DataArray.__gt_dims__ = property(dims)  # type: ignore[attr-defined]
