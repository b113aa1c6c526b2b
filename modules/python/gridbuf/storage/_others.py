"""Arrays of other libraries in array functions: their interfaces, and access to their memory.

`taken` acquires an object with `__gt_data_interface__` before its memory is read, calls `touch` after a write, and releases the
object at the end, also when the function raises. `as_storage` acquires and touches the memory that it wraps; the memory is
released with the wrapper.

Fields of `gt4py.next` know the index of their first points, as storages with `lower`.

A Buffer, a DataArray and an entry of `__gt_data_interface__` with `dims` have names for their dimensions, and join by them, like a
storage. An ndarray has no names, and joins by its shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from traceback import clear_frames
from typing import Any, Literal

import numpy as np

from .. import _core
from .._owns import offers_memory

Side = Literal["host", "device"]
HOST: tuple[Side, ...] = ("host",)
DEVICE: tuple[Side, ...] = ("device",)
BOTH: tuple[Side, ...] = ("host", "device")

# The keys of a data interface.
_KEYS: dict[Side, str | None] = {"host": None, "device": "gpu"}

# The attributes by which an object exports memory of the host, without making an array for it; and the buffer protocol.
_INTERFACES = ("__gt_data_interface__", "__array_interface__", "__array_struct__", "__dlpack__")

# The device types of DLPack that gridbuf knows: host, CUDA, pinned, managed.
_DLPACK_SIDES: dict[int, tuple[Side, ...]] = {1: HOST, 2: DEVICE, 3: HOST, 13: BOTH}


class Other:
    """An array that is not a storage, with the methods of a storage that array functions use.

    `sides` says where it can be reached. `dims` (None: it has no names), `lower` (None: unknown), `shape` and `dtype` are known
    within `taken`.
    """

    __slots__ = ("_held", "source", "dims", "dtype", "lower", "shape", "sides")

    def __init__(self, source: Any) -> None:
        self.source = source
        # What is read and written while it is taken: an ndarray, or a storage over the memory.
        self._held: Any = None
        self.dims: tuple[str, ...] | None = None
        self.sides = HOST if isinstance(source, (np.ndarray, list, tuple)) else sides_of(source)
        self.lower: tuple[int, ...] | None = None
        self.shape: tuple[int, ...] = ()
        self.dtype: np.dtype[Any] = np.dtype(np.void)

    @property
    def name(self) -> str:
        return type(self.source).__name__

    def open(self, side: Side, *, writing: bool = False) -> None:
        """Acquires the memory on `side`. Memory of the host is copied to the device, unless it is an output."""
        own = side if side in self.sides else self.sides[0]
        self._held = self._view(own, writing)
        self.shape = self._held.shape
        self.dtype = self._held.dtype
        self.dims = self._names(own)
        self.lower = getattr(self.source, "_gridbuf_starts", None)
        if own != side:
            self._held = _core._storage_storage(self._held, device="gpu", managed=None)

    def _view(self, side: Side, writing: bool) -> Any:
        source = self.source
        if type(source) is np.ndarray:
            return source
        if side == "device":
            return _core._storage_as_storage(device_data=source, device="gpu", managed=None)
        if isinstance(source, (list, tuple)) or not offers_memory(source, _INTERFACES):
            if writing:
                raise TypeError(
                    f"out is a {self.name}, which exports no memory to write to; pass a storage or an array"
                )
            return _core._as_ndarray(source)
        return (
            _core.as_numpy(source)
            if isinstance(source, np.ndarray)
            else _core._storage_as_storage(source, device=None)
        )

    def _names(self, side: Side) -> tuple[str, ...] | None:
        """The names of the dimensions, if the object declares them: itself, or in the entry of that side."""
        source = self.source
        if isinstance(source, np.ndarray):
            return None
        entries = getattr(source, "__gt_data_interface__", None)
        entry = entries.get(_KEYS[side]) if isinstance(entries, dict) else None
        if isinstance(entry, dict) and entry.get("dims") is not None:
            return self._held.dims  # type: ignore[no-any-return]  # as the import has read them
        # A field of gt4py.next has names and no `ndim`.
        named = hasattr(source, "ndim") or hasattr(source, "__gt_dims__")
        return _core.get_dims(source) if named else None

    def keep(self, points: tuple[slice, ...]) -> None:
        """Leaves these points, until it is taken again."""
        self._held = self._held[points]
        self.shape = self._held.shape

    def close(self) -> None:
        """Releases the memory, and its data interface."""
        self._held = None

    def _read_array(self, side: Side, dims: tuple[str, ...] | None = None) -> Any:
        held = (
            self._held._read_array(side)
            if isinstance(self._held, _core.StorageBase)
            else self._held
        )
        return held if dims is None or self.dims is None else align(held, self.dims, dims)

    def _write_array(
        self, side: Side, dims: tuple[str, ...] | None = None, whole: bool = True, /
    ) -> Any:
        held = self._held
        if isinstance(held, _core.StorageBase):
            held = held._write_array(side, None, whole)
        return held if dims is None or self.dims is None else align(held, self.dims, dims)

    def _written(self, side: Side) -> None:
        if isinstance(self._held, _core.StorageBase):
            self._held._written(side)


@contextmanager
def taken(side: Side, inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[None]:
    """Acquires the memory of all operands of other libraries on `side`, for a `with` block."""
    others = [value for value in (*inputs, *outputs) if isinstance(value, Other)]
    try:
        for value in others:
            value.open(side, writing=any(value is output for output in outputs))
        yield
    except BaseException as error:
        if others:
            clear_frames(error.__traceback__)  # They would keep the memory, which is released now.
        raise
    finally:
        for value in others:
            value.close()


def check_starts(arrays: Iterable[Any], joined: str | None = None) -> None:
    """Dimensions of one name begin at one index, in the arrays that know it, except the dimension `joined`.

    For functions that pair points by position. Raises ValueError with the dimension and both ranges.
    """
    known: dict[str, tuple[int, int]] = {}
    for array in arrays:
        for dim, start, extent in zip(array.dims or (), array.lower or (), array.shape):
            if start is None:
                continue
            first, end = known.setdefault(dim, (start, start + extent))
            if first != start and dim != joined:
                raise ValueError(
                    f'the range of dimension "{dim}" is {start}:{start + extent}, but must begin as that of another operand, '
                    f"{first}:{end}, because this function pairs points by position; take the common points of both, or pass "
                    "as_storage(array, lower=...) or field.ndarray"
                )


# ---- Interfaces of other libraries. ----


def sides_of(source: object) -> tuple[Side, ...]:
    """The sides that an object exports by its interfaces; () if it exports none."""
    entries = getattr(source, "__gt_data_interface__", None)
    if isinstance(entries, dict):
        return tuple(side for side in BOTH if _KEYS[side] in entries)
    if hasattr(source, "__dlpack_device__"):
        return _DLPACK_SIDES.get(int(source.__dlpack_device__()[0]), ())
    host = HOST if offers_memory(source, _INTERFACES) or hasattr(source, "__array__") else ()
    device = DEVICE if hasattr(source, "__cuda_array_interface__") else ()
    return host + device


# ---- Dimensions. ----


def align(array: Any, dims: tuple[str, ...], target: tuple[str, ...]) -> Any:
    """A view of `array`, which has `dims`, in the order of `target`, with an extent of 1 for each dimension that it does not have."""
    if dims == target:
        return array
    axes, new = _core._align(dims, (1,) * array.ndim, target)
    return array.transpose(axes)[
        tuple(None if axis in new else slice(None) for axis in range(len(target)))
    ]
