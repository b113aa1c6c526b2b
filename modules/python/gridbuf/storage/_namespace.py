"""The namespace of the array API: NumPy's functions that storages have, and functions that make storages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ._operands import is_storage
from ._table import instead_of, row_of

VERSION = "2024.12"
_CONSTANTS = frozenset(
    """
    bool complex128 complex64 e fft float32 float64 inf int16 int32 int64 int8 lib linalg nan newaxis pi uint16 uint32 uint64 uint8
    """.split()
)


def _device(device: Any) -> Any:
    """gridbuf's name for a device: None is the host."""
    return None if device == "cpu" else device


def _asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Any:
    if is_storage(obj) and copy is not True:
        there = obj if device is None else obj.to_device(device)
        return there if dtype is None else there.astype(dtype, copy=False)
    if copy is False:
        return _core._storage_as_storage(obj)
    return _core._storage_storage(obj, dtype=dtype, device=_device(device))


def _from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    make = _core._storage_storage if copy else _core._storage_as_storage
    found: Any = make(x)
    return found if device is None else found.to_device(device)


def _made(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `gridbuf.storage`, with the parameters of the array API."""

    def function(*arguments: Any, device: Any = None, dtype: Any = None, **options: Any) -> Any:
        if dtype is not None:
            options["dtype"] = dtype
        return make(*arguments, device=_device(device), **options)

    return function


def _copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's that makes an array, as one that makes a storage."""

    def made(*arguments: Any, device: Any = None, **options: Any) -> Any:
        return _core._storage_storage(function(*arguments, **options), device=_device(device))

    return made


def _full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    dtype = np.asarray(fill_value).dtype if dtype is None else dtype
    return _core._storage_full(shape, fill_value, dtype, device=_device(device))


_MAKERS: dict[str, Callable[..., Any]] = {
    "arange": _copied(np.arange),
    "asarray": _asarray,
    "empty": _made(_core._storage_empty),
    "eye": _copied(np.eye),
    "from_dlpack": _from_dlpack,
    "full": _full,
    "linspace": _copied(np.linspace),
    "ones": _made(_core._storage_ones),
    "zeros": _made(_core._storage_zeros),
}


class _Info:
    """What the namespace can do, as `__array_namespace_info__` of the array API says it."""

    _numpy = np.__array_namespace_info__()

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> None:
        return None

    def devices(self) -> list[str | None]:
        return [None, "gpu"]

    def default_dtypes(self, *, device: Any = None) -> Any:
        return self._numpy.default_dtypes()

    def dtypes(self, *, device: Any = None, kind: Any = None) -> Any:
        return self._numpy.dtypes(kind=kind)


class _Namespace:
    __name__ = "gridbuf.storage"
    __array_api_version__ = VERSION
    __array_namespace_info__ = _Info

    def __getattr__(self, name: str) -> Any:
        if name in _MAKERS:
            return _MAKERS[name]
        if name in _CONSTANTS or row_of(name) is not None:
            return getattr(np, name)
        raise AttributeError(
            f"the namespace of storages does not have {name}; use {instead_of(name)}"
        )

    def __dir__(self) -> list[str]:
        names = (name for name in dir(np) if row_of(name) is not None)
        return sorted({*names, *_MAKERS, *_CONSTANTS, *vars(_Namespace)})

    def __repr__(self) -> str:
        return f"<namespace of gridbuf's storages, array API {VERSION}>"


_NAMESPACE = _Namespace()


def namespace(api_version: str | None = None) -> Any:
    """The namespace. ValueError for a version of the array API that is newer than `VERSION`, or older than 2021.12."""
    if api_version is not None and not "2021.12" <= api_version <= VERSION:
        raise ValueError(
            f"api_version is {api_version!r}, but must be from 2021.12 to {VERSION}; leave it out"
        )
    return _NAMESPACE
