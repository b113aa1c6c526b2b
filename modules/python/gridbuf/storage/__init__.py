"""Storages: arrays on a grid that know their halo, and keep a host and a device buffer in step.

A storage is an array with names for its dimensions, a halo and an alignment, in memory of the host, of a device, or of both.
Its class follows from `device` and `managed`:

* `CPUStorage`: memory of the host;
* `GPUStorage` (`device="gpu", managed=None`): memory of a device;
* `SoftwareManagedGPUStorage` (`device="gpu"`): a buffer on each side. Before a read through the storage, gridbuf copies the
  elements that are newer on the other side;
* `CUDAManagedGPUStorage` (`device="gpu", managed="cuda"`): one memory for both sides.

The functions below make them; the classes cannot be called.

>>> import numpy, gridbuf.storage
>>> field = gridbuf.storage.zeros((12, 12, 8), backend="gt:cpu_ifirst", halo=(2, 2, 0))
>>> field.aligned_index, field.domain_view.shape
((2, 2, 0), (8, 8, 8))
>>> field[2, 2] = numpy.arange(8.0)
>>> float(field.domain_view[0, 0, 7])
7.0
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, final

from .. import _core
from .._core import DevicePointer, SyncState
from .._core import _storage_as_storage as as_storage
from .._core import _storage_empty as empty
from .._core import _storage_empty_like as empty_like
from .._core import _storage_from_c as from_c
from .._core import _storage_full as full
from .._core import _storage_full_like as full_like
from .._core import _storage_ones as ones
from .._core import _storage_ones_like as ones_like
from .._core import _storage_storage as storage
from .._core import _storage_to_c as to_c
from .._core import _storage_zeros as zeros
from .._core import _storage_zeros_like as zeros_like
from ._functions import array_function as _array_function
from ._functions import array_ufunc as _array_ufunc
from ._halo import fill_halo
from ._methods import Methods as _Methods
from ._namespace import namespace as _array_namespace
from ._operators import Operators as _Operators
from ._show import html as _html
from ._show import text as _text
from ._values import Values as _Values

asstorage = as_storage

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

__all__ = [
    "CPUStorage",
    "CUDAManagedGPUStorage",
    "DevicePointer",
    "GPUStorage",
    "SoftwareManagedGPUStorage",
    "Storage",
    "SyncState",
    "as_storage",
    "asstorage",
    "empty",
    "empty_like",
    "fill_halo",
    "from_c",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "storage",
    "to_c",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return __all__


class Storage(_Values, _Methods, _Operators):
    """An array on a grid: the base class of all storages, for `isinstance`.

    The functions of this module make storages; the classes cannot be called. Operators and NumPy's
    functions broadcast by the names of dimensions. Rules: docs/spec.md sections 9 to 11.

    Examples
    --------
    >>> import gridbuf.storage
    >>> field = gridbuf.storage.ones((2, 3))
    >>> isinstance(field, gridbuf.storage.Storage), type(field).__name__
    (True, 'CPUStorage')
    """

    __slots__ = ()

    __array_ufunc__ = _array_ufunc
    __array_function__ = _array_function
    __repr__ = _text
    _repr_html_ = _html

    @property
    def __array_namespace__(self) -> Any:
        """The functions of the array API for storages (docs/spec.md 11.41). Not in a process that has imported xarray."""
        if "xarray" in sys.modules:
            raise AttributeError(
                "storages do not have __array_namespace__ where xarray is imported, which then refuses to index at points; use numpy"
            )
        return _array_namespace


@final
class CPUStorage(Storage):
    """A storage in memory of the host (docs/spec.md 9.1)."""

    __slots__ = ()
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __array_priority__ = 10


@final
class GPUStorage(Storage):
    """A storage in memory of a device, which the host cannot read (docs/spec.md 9.1)."""

    __slots__ = ()
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __array_priority__ = 10


@final
class SoftwareManagedGPUStorage(Storage):
    """A storage with a buffer on the host and one on a device, which gridbuf keeps in step.

    Notes
    -----
    Rules: docs/spec.md 9.1 and section 10.
    """

    __slots__ = ()
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __array_priority__ = 11


@final
class CUDAManagedGPUStorage(Storage):
    """A storage in memory that host and device both reach (docs/spec.md 9.1)."""

    __slots__ = ()
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __array_priority__ = 11


# From here on the classes cannot be called, extended or changed.
_core._set_storage_types(CPUStorage, GPUStorage, SoftwareManagedGPUStorage, CUDAManagedGPUStorage)
