"""What storages do not do, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ._operands import is_storage

__all__ = ["refuse", "refused"]

# What to use in place of functions of NumPy that users will try.
_INSTEAD = {
    "amax": "numpy.maximum.reduce(storage, axis=...)",
    "amin": "numpy.minimum.reduce(storage, axis=...)",
    "copy": "storage.copy()",
    "empty_like": "gridbuf.storage.empty_like(storage)",
    "full_like": "gridbuf.storage.full_like(storage, value)",
    "max": "numpy.maximum.reduce(storage, axis=...)",
    "min": "numpy.minimum.reduce(storage, axis=...)",
    "ndim": "storage.ndim",
    "ones_like": "gridbuf.storage.ones_like(storage)",
    "prod": "numpy.multiply.reduce(storage, axis=...)",
    "shape": "storage.shape",
    "size": "storage.size",
    "sum": "numpy.add.reduce(storage, axis=...)",
    "zeros_like": "gridbuf.storage.zeros_like(storage)",
}


def refuse(name: str) -> NoReturn:
    """Raises the TypeError for `name`, such as "numpy.sum"."""
    instead = _INSTEAD.get(name.removeprefix("numpy."))
    raise TypeError(
        f"{name} is not one of the functions that pair dimensions by name, so storages do not have it; "
        f"{f'use {instead}, or ' if instead else ''}call it on storage.to_numpy(), or storage.to_cupy() on a device"
    )


def refused(name: str, arrays: Sequence[Any]) -> Any:
    """NotImplemented if another type among `arrays` may handle the ufunc, else raises the TypeError."""
    if any(_may_handle(value) for value in arrays):
        return NotImplemented
    refuse(name)


def _may_handle(value: Any) -> bool:
    return (
        hasattr(value, "__array_ufunc__")
        and not isinstance(value, (np.ndarray, np.generic))
        and not is_storage(value)
    )
