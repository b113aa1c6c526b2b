"""What storages are made of as values of Python: numbers, lists, pickles, and the spatial dimensions."""

from __future__ import annotations

import operator
import pickle
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from .. import _core
from .._pickles import reduce_shared, restore_storage

if TYPE_CHECKING:
    import numpy.typing as npt


def differ(storage: Any, strides: Any, others: Any) -> bool:
    """Whether strides differ that have a meaning: of a storage with elements, and not of an extent of 1."""
    triples = zip(storage.shape, strides, others, strict=True)
    return storage.size > 0 and any(extent > 1 and one != other for extent, one, other in triples)


class Values(_core.StorageBase):
    """The attributes of storages that are written in Python."""

    __slots__ = ()

    @property
    def _has_host(self) -> bool:
        return self.device is None or self.managed is not None

    @property
    def _has_two_layouts(self) -> bool:
        """Whether the sides differ in order, padding or alignment."""
        return self.managed == "gt4py" and (
            (self.layout, self.alignment_size) != (self.device_layout, self.device_alignment_size)
            or differ(self, self.strides, self.device_strides)
        )

    @property
    def axes(self) -> str:
        """Spatial dimensions that there are, such as "IJ" (docs/spec.md 9.22)."""
        return "".join(name for name in "IJK" if name in self.dims)

    @property
    def mask(self) -> tuple[bool, bool, bool]:
        """Whether there is a dimension I, J, K (docs/spec.md 9.22)."""
        return "I" in self.dims, "J" in self.dims, "K" in self.dims

    @property
    def size(self) -> int:
        """Number of elements, without padding."""
        return self.nbytes // self.itemsize

    @property
    def data(self) -> memoryview | None:
        """A memoryview of the host's elements, brought up to date; None without a host buffer."""
        return memoryview(self) if self._has_host else None

    @property
    def real(self) -> Any:
        """The real parts: this storage, or a new one of a complex dtype. xarray asks for it."""
        return np.real(self) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Any:
        """The imaginary parts, in a new storage."""
        return np.imag(self)

    def to_ndarray(self) -> Any:
        """Return `to_cupy()` if there are elements on a device, else `to_numpy()`.

        Returns
        -------
        numpy.ndarray or cupy.ndarray
            A view.

        Notes
        -----
        Rules: docs/spec.md 9.24.
        """
        return self.to_numpy() if self.device is None else self.to_cupy()

    def __array__(
        self, /, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """An ndarray over the host's elements, unless a copy or a conversion is asked for.

        TypeError for a storage without a host buffer.
        """
        if not self._has_host:
            raise TypeError(
                "this storage has no host buffer, and is not copied to the host implicitly; use to_cupy(), or copy it with "
                "gridbuf.storage.storage(s, device=None)"
            )
        return _core.as_buffer(self).__array__(dtype, copy)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """Return the elements within bounds, as `numpy.clip` (docs/spec.md 11.21).

        Parameters
        ----------
        min, max : scalar or array, optional
            The bounds. Arrays are paired by the names of dimensions. Default: no bound.
        out : Storage or numpy.ndarray, optional
            Where the result goes. Default: a new storage.

        Returns
        -------
        Storage
            The result.
        """
        return np.clip(self, min, max, out)

    def item(self, /, *index: SupportsIndex | tuple[SupportsIndex, ...]) -> Any:
        """Return one element as a Python object, as `numpy.ndarray.item` does (docs/spec.md 9.38).

        Parameters
        ----------
        *index : int, or one tuple of int
            The index; not needed for a storage of one element.

        Returns
        -------
        object
            A number of Python. Only this element comes from the device.

        Raises
        ------
        IndexError
            The index is out of bounds.
        ValueError
            There is no index, and the storage has more than one element.
        """
        # With a full set of indices only that element is fetched.
        if len(index) == self.ndim > 0 and all(type(i) is int for i in index):
            return self[index].item()
        return self._elements().item(*index)

    def tolist(self) -> Any:
        """Return the elements as nested lists (docs/spec.md 9.38).

        Returns
        -------
        list or object
            The lists; a number of Python for a storage without dimensions.

        Raises
        ------
        GTNoSuchBufferError
            The storage has no host buffer.
        """
        return (self._elements() if self._has_host else self.to_numpy()).tolist()

    def _element(self) -> Any:
        if self.size != 1:  # Elements beyond the first are not fetched for an error.
            shape = ", ".join(map(str, self.shape))
            raise TypeError(
                f"the storage's shape is ({shape}), but must be that of one element; index it, or use to_numpy()"
            )
        return self._elements().item()

    def __float__(self) -> float:
        return float(self._element())

    def __int__(self) -> int:
        return int(self._element())

    def __complex__(self) -> complex:
        return complex(self._element())

    def __index__(self) -> int:
        # As in NumPy: an array of one element that has a dimension is not an index.
        if self.ndim != 0 or self.dtype.kind not in "iu":
            raise TypeError("only integer storages without dimensions can be an index")
        return operator.index(self._element())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                "the truth value of a storage with other than one element is ambiguous; use numpy.any or numpy.all"
            )
        return bool(self._elements())

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        """Elements, or where they are in shared memory, and all parameters, for pickle."""
        elements = self._elements()
        if elements.nbytes and _core._shared_place(elements.__array_interface__["data"][0]):
            if self.device is not None:
                raise TypeError(
                    "a storage in shared memory has a buffer on a device, which belongs to this process;"
                    " pickle a storage of the host: gridbuf.storage.as_storage(storage.to_numpy())"
                )
            return reduce_shared(self)
        pickled: Any = None
        if operator.index(protocol) >= 5 and elements.flags.c_contiguous:
            with suppress(ValueError):  # of dates, which the buffer protocol does not have
                pickled = pickle.PickleBuffer(elements)
        if pickled is None:
            pickled = elements.tobytes()
        names: tuple[str, ...] = ("dims", "halo", "layout", "alignment_size", "aligned_index")
        names += ("device", "managed")
        if self._has_two_layouts:
            names += ("device_layout", "device_alignment_size")
        parameters = {name: getattr(self, name) for name in names}
        if self.lower.count(None) < self.ndim:
            parameters["lower"] = self.lower
        if any(map(any, self.valid_halo)):
            parameters["valid_halo"] = self.valid_halo
        own = self._parameters
        stretchable = (own.stretchable, own.unnamed) if own.stretchable else ()
        return restore_storage, (pickled, self.shape, self.dtype, parameters, *stretchable)

    def set_device_synchronized(self) -> NoReturn:
        """Raise a TypeError; the method is `set_synchronized` (docs/spec.md 9.8).

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError("there is no set_device_synchronized(): its name is set_synchronized")
