"""Defects of GT4Py's attributes: `__gt_data_interface__`, `__gt_dims__`, `__gt_origin__` (GT-01 …
GT-14, GT-26 … GT-28).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import SimpleNamespace
from typing import ClassVar

from gridbuf_conformance.plan import Plan

from .device import ExportsDataInterface
from .mutant import Mutant, faulty
from .reference import ExportsArrayInterface, Memory
from .table import rows

row = rows(__name__)


class Base(ExportsDataInterface, ExportsArrayInterface, Memory):
    """The data interface next to the array interface."""

    def acquire(self) -> None:
        """Host memory is always current."""


class _Edited(Base):
    """Right entries with some keys changed."""

    def edit(self, entry: dict) -> dict:
        raise NotImplementedError(f"{type(self).__name__} must define edit")

    def entry(self, interface: dict) -> dict:
        return self.edit(super().entry(interface))


@faulty("GT-01")
class KeyedByAName(Base):
    """The host's entry has the key "cpu"."""

    def data_interface(self) -> dict:
        return {"cpu": super().data_interface()[None]}


# fmt: off
row(faulty("GT-01"), Memory, "DataInterfaceIsAMethod", "`__gt_data_interface__` is a method.",
    __gt_data_interface__=lambda self: {})
# fmt: on


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


# fmt: off
row(faulty("GT-03"), _Edited, "TouchIsAFlag", "`touch` is a bool.",
    edit=lambda self, entry: {**entry, "touch": True})
# fmt: on


@faulty("GT-04")
class OneNameTooFew(_Edited):
    """`dims` lacks the last dimension's name; `__gt_dims__` is not there."""

    def edit(self, entry: dict) -> dict:
        names = ("I", "J", "K", "0", "1")[: max(self.ndim - 1, 0)]
        return {**entry, "dims": names}


# fmt: off
row(faulty("GT-05"), _Edited, "HaloLargerThanTheExtent",
    "The halo's two sides cover more than the extent.",
    edit=lambda self, entry: {**entry, "halo": tuple((extent, 1) for extent in self.shape)})
row(faulty("GT-05"), _Edited, "HaloOfFloats", "The halo's entries are floats.",
    edit=lambda self, entry: {**entry, "halo": ((0.0, 0.0),) * self.ndim})
row(faulty("GT-05"), _Edited, "HaloIsForgotten", "The halo is zero for every request.",
    edit=lambda self, entry: {**entry, "halo": ((0, 0),) * self.ndim})
row(faulty("GT-12"), _Edited, "EntryAndDictDisagree",
    "The entry has row-major strides, not those of the array interface.",
    edit=lambda self, entry: {**entry, "strides": None})
# fmt: on


@faulty("GT-12")
class EntryNamesOtherDims(_Edited):
    """`dims` names the dimensions in another order than `__gt_dims__`."""

    def edit(self, entry: dict) -> dict:
        return {**entry, "dims": tuple(reversed(entry["dims"]))} if "dims" in entry else entry


# --- dims and origin ----------------------------------------------------------------------------


class _Named(ExportsArrayInterface, Memory):
    """An array with attributes of GT4Py's."""


@faulty("GT-18", advises=("GT-13",))
class DimsRepeat(_Named):
    """All dimensions have one name."""

    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        return ("I",) * self.ndim

    @__gt_dims__.setter
    def __gt_dims__(self, names: tuple[str, ...]) -> None:
        """The request is dropped."""


@faulty(advises=["GT-13"])
class DimsAreAMethod(_Named):
    """`__gt_dims__` is a method, as the proposal shows it."""

    def __init__(self, *arguments: object, dims: object = None, **flags: object) -> None:
        super().__init__(*arguments, **flags)
        self.names = dims

    def __gt_dims__(self) -> object:
        return self.names


@faulty(advises=["GT-13"])
class NamesInSmallLetters(_Named):
    """Arrays that are requested without names have the names i, j, k, l, m."""

    def __init__(
        self, *arguments: object, dims: Sequence[str] | None = None, **flags: object
    ) -> None:
        super().__init__(*arguments, **flags)
        self.__gt_dims__ = tuple(dims or "ijklm"[: self.ndim])


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


class _Asked(Mutant):
    """A producer of arrays requested with names and with a halo that differs by dimension."""

    breaks = frozenset()
    plans = (
        Plan(shape=(6, 4), dims=("K", "I"), halo=((2, 2), (1, 1))),
        Plan(shape=(3, 2), dims=("J", "I"), halo=((1, 0), (0, 1)), views=(("transpose", (1, 0)),)),
    )


class NamesInAlphabeticalOrder(_Asked):
    """`dims` of the entries are sorted; `__gt_dims__` is not there."""

    breaks = frozenset({"GT-26"})

    class array_type(Base):
        """An array that keeps its names to itself."""

        def __init__(self, *arguments: object, dims: Sequence[str] = (), **flags: object) -> None:
            super().__init__(*arguments, **flags)
            self.names = tuple(sorted(dims or ()))

        def entry(self, interface: dict) -> dict:
            return {**super().entry(interface), **({"dims": self.names} if self.names else {})}


class OtherNamesAreRefused(_Asked):
    """A request for other names than I, J, K and numbers is a ValueError."""

    breaks = frozenset({"GT-20"})
    plans = (Plan(shape=(6, 4), dims=("Cell", "K")), Plan(shape=(2,), dims=("E2V",)))

    def produce(self, plan: Plan) -> object:
        if unknown := [d for d in plan.dims or () if d not in "IJK" and not d.isdigit()]:
            raise ValueError(f"dims has {unknown[0]!r}, must be I, J, K or a number")
        return super().produce(plan)


class OtherNamesBecomeIJK(_Asked):
    """The first dimension with another name is I, the second J, as in unstructured fields."""

    breaks = frozenset({"GT-18", "GT-26"})
    plans = (
        Plan(shape=(6, 4), dims=("Cell", "K")),
        Plan(shape=(6, 4), dims=("Edge", "K")),
        Plan(shape=(3, 2, 2), dims=("Vertex", "time", "tracer"), halo=((1, 0), (0, 1), (1, 1))),
    )

    class array_type(Base):
        """An array with the names of structured grids."""

        def __init__(self, *arguments: object, dims: Sequence[str] = (), **flags: object) -> None:
            new = iter("IJ0123")
            names = tuple(d if d in "IJK" or d.isdigit() else next(new) for d in dims or ())
            super().__init__(*arguments, dims=names or None, **flags)


class OriginInTheArraysOrder(_Asked):
    """The origin lists the lower halos by position, not by name."""

    breaks = frozenset({"GT-27"})

    class array_type(Base):
        """An array with an origin."""

        @property
        def __gt_origin__(self) -> tuple[int, ...]:
            return tuple(lower for lower, _ in self.halo or ((0, 0),) * self.ndim)


class NamesStayBehind(_Asked):
    """A transposed view has the names of the array that it is a view of, in their old order."""

    breaks = frozenset({"GT-28"})

    class array_type(Base):
        """Views copy the tuple of names."""

        def pass_names_on(self, view: Memory, axes: Sequence[int], *, is_turned: bool) -> None:
            super().pass_names_on(view, axes, is_turned=is_turned)
            view.__gt_dims__ = self.__gt_dims__


class HaloStaysBehind(_Asked):
    """A transposed view has the halo in its old order."""

    breaks = frozenset({"GT-28"})

    class array_type(Base):
        """Views copy the halo."""

        def pass_names_on(self, view: Memory, axes: Sequence[int], *, is_turned: bool) -> None:
            super().pass_names_on(view, axes, is_turned=is_turned)
            view.halo = self.halo


# --- named arrays -------------------------------------------------------------------------------


class NamedArray(Base):
    """Like xarray's `DataArray` for an accessor: own names, over data that may have names."""

    data_has_names: ClassVar[bool] = True

    def __init__(
        self, *arguments: object, dims: Sequence[str] | None = None, **flags: object
    ) -> None:
        super().__init__(*arguments, dims=dims, **flags)
        self.current_names = self.names = tuple(dims or ("I", "J", "K", "0", "1")[: self.ndim])

    @property
    def dims(self) -> tuple[str, ...]:
        return self.current_names

    def pass_names_on(self, view: Memory, axes: Sequence[int], *, is_turned: bool) -> None:
        super().pass_names_on(view, axes, is_turned=is_turned)
        view.current_names = view.names = tuple(self.dims[axis] for axis in axes)

    @property
    def data(self) -> SimpleNamespace:
        entry = {"dims": self.names if self.data_has_names else None}
        return SimpleNamespace(__gt_data_interface__={None: entry})

    def rename(self, names: dict[str, str]) -> NamedArray:
        other = copy.copy(self)
        other.current_names = tuple(names.get(name, name) for name in self.dims)
        return other

    def entry(self, interface: dict) -> dict:
        if self.data_has_names and self.dims != self.names:
            raise ValueError(f"the data is named {self.names}, the array {self.dims}")
        return {**super().entry(interface), "dims": self.dims}


# fmt: off
row(faulty("GT-11"), NamedArray, "DisagreementIsAccepted",
    "Names of the data that disagree with the array's are overwritten.",
    entry=lambda self, interface: {**Base.entry(self, interface), "dims": self.dims})
# fmt: on


@faulty("GT-11")
class NamesOfTheDataAreForgotten(NamedArray):
    """The data has no names, and the array's are not filled in."""

    data_has_names = False

    def entry(self, interface: dict) -> dict:
        return {**super().entry(interface), "dims": None}


@faulty("GT-11")
class NamesAreTakenOnce(NamedArray):
    """The data has no names; the entry has the array's first names, not its present ones."""

    data_has_names = False

    def entry(self, interface: dict) -> dict:
        return {**super().entry(interface), "dims": self.names}
