"""What storages do not do, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ._operands import is_storage
from ._table import REFUSED

__all__ = ["instead_of", "refuse", "refused"]


def instead_of(name: str) -> str:
    """What to type instead of a function of NumPy's that storages do not have."""
    if name.endswith(".at"):
        return f"numpy.{name}(storage.to_numpy(), 0, 1)"
    return REFUSED.get(name, f"numpy.{name}(storage.to_numpy()), or to_cupy() on a device")


def refuse(name: str) -> NoReturn:
    """Raises the TypeError for `name`, such as "numpy.hstack"."""
    raise TypeError(f"storages do not have {name}; use {instead_of(name.removeprefix('numpy.'))}")


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
