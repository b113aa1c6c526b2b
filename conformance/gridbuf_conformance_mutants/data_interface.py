"""Faults of GT4Py's attributes: `__gt_data_interface__`, `__gt_dims__`, `__gt_origin__` (GT-01 … GT-14)."""

from __future__ import annotations

from .mutant import faulty
from .device import OffersDataInterface
from .reference import Memory, OffersArrayInterface


class Base(OffersDataInterface, OffersArrayInterface, Memory):
    """The data interface beside the array interface."""

    def acquire(self) -> None:
        """Host memory is always current."""


class _Edited(Base):
    """Right entries with some keys changed."""

    def edit(self, entry: dict) -> dict:
        raise NotImplementedError

    def entry(self, interface: dict) -> dict:
        return self.edit(super().entry(interface))


@faulty("GT-01")
class KeyedByAName(Base):
    """The host's entry stands under "cpu"."""

    def data_interface(self) -> dict:
        return {"cpu": super().data_interface()[None]}


@faulty("GT-01")
class DataInterfaceIsAMethod(Memory):
    """`__gt_data_interface__` is a method."""

    def __gt_data_interface__(self) -> dict:
        return {}


@faulty("GT-02")
class EntryWithoutData(_Edited):
    """The entry has no data."""

    def edit(self, entry: dict) -> dict:
        del entry["data"]
        return entry


@faulty("GT-03")
class AcquireNeedsAnArgument(Base):
    """`acquire` takes an argument."""

    def acquire(self, stencil: object) -> None:
        """Cannot be called by a backend."""


@faulty("GT-03")
class TouchIsAFlag(_Edited):
    """`touch` is a bool."""

    def edit(self, entry: dict) -> dict:
        return {**entry, "touch": True}


@faulty("GT-04")
class OneNameTooFew(_Edited):
    """`dims` lacks the last dimension's name; `__gt_dims__` is not there."""

    def edit(self, entry: dict) -> dict:
        names = ("I", "J", "K", "0", "1")[: max(self.ndim - 1, 0)]
        return {**entry, "dims": names}


@faulty("GT-05")
class HaloLargerThanTheExtent(_Edited):
    """The halo's two sides cover more than the extent."""

    def edit(self, entry: dict) -> dict:
        return {**entry, "halo": tuple((extent, 1) for extent in self.shape)}


@faulty("GT-05")
class HaloOfFloats(_Edited):
    """The halo's entries are floats."""

    def edit(self, entry: dict) -> dict:
        return {**entry, "halo": ((0.0, 0.0),) * self.ndim}


@faulty("GT-05")
class HaloIsForgotten(_Edited):
    """The halo is one of zeros, whatever was asked."""

    def edit(self, entry: dict) -> dict:
        return {**entry, "halo": ((0, 0),) * self.ndim}


@faulty("GT-12")
class EntryAndDictDisagree(_Edited):
    """The entry has row-major strides whatever the array interface says."""

    def edit(self, entry: dict) -> dict:
        return {**entry, "strides": None}


@faulty("GT-12")
class EntryNamesOtherDims(_Edited):
    """`dims` names the dimensions in another order than `__gt_dims__`."""

    def edit(self, entry: dict) -> dict:
        return {**entry, "dims": tuple(reversed(entry["dims"]))} if "dims" in entry else entry


# --- dims and origin ----------------------------------------------------------------------------------------


class _Named(OffersArrayInterface, Memory):
    """An array with attributes of GT4Py's."""


@faulty("GT-13")
class DimsRepeat(_Named):
    """All dimensions have one name."""

    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        return ("I",) * self.ndim

    @__gt_dims__.setter
    def __gt_dims__(self, names: tuple[str, ...]) -> None:
        """What was asked is forgotten."""


@faulty(advises=["GT-13"])
class DimsAreAMethod(_Named):
    """`__gt_dims__` is a method, as the proposal shows it."""

    def __init__(self, *arguments: object, dims: object = None, **flags: object) -> None:
        super().__init__(*arguments, **flags)
        self.names = dims

    def __gt_dims__(self) -> object:
        return self.names


@faulty("GT-14")
class OriginOfFloats(_Named):
    """`__gt_origin__` holds floats."""

    @property
    def __gt_origin__(self) -> tuple[float, ...]:
        return (0.0,) * max(self.ndim, 1)


@faulty("GT-14")
class OriginTooShort(_Named):
    """`default_origin` lacks an entry."""

    @property
    def default_origin(self) -> tuple[int, ...]:
        return (0,) * (self.ndim + 1)
