"""Arrays with a copy on each side, kept equal by `acquire` and `touch`; and how they are not
(GT-05, GT-09, XA-17).

`Mirrors` is the right one. It is what a storage with two buffers looks like from outside, in a few
lines: a side that was written is remembered, and the other one is brought up to date when it is
asked for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

from gridbuf_conformance.plan import ALIGNMENT_LIMIT_BYTES, Plan

from .device import (
    DEVICE,
    DeviceBlock,
    DeviceMemory,
    DeviceReference,
    ExportsCudaInterface,
    ExportsDataInterface,
    HostReadableArray,
)
from .memory import Block
from .mutant import faulty_on
from .reference import SHIFT_BYTES, ExportsArrayInterface, Memory
from .table import rows

row = rows(__name__)

HOST, DEVICE_SIDE = None, "gpu"


class _Mirrored(ExportsArrayInterface, ExportsCudaInterface, DeviceMemory):
    """A host array, and on the device a mirror of it that the CUDA array interface describes.

    `block.written` is the side that holds what the other one does not, "" if both are equal; both
    sides' addresses are the same modulo `block.unit_bytes`.
    """

    @staticmethod
    def new_block(length_bytes: int, kind: str) -> Block:
        block = Block(length_bytes)
        block.mirror = DeviceBlock(block.high - block.low + ALIGNMENT_LIMIT_BYTES, kind)
        block.unit_bytes = SHIFT_BYTES
        block.written = ""
        return block

    @property
    def mirror_low(self) -> int:
        """Where the mirror starts, aligned as the block is."""
        low = self.block.mirror.low
        return low + (self.block.low - low) % self.block.unit_bytes

    def fill(self, content: bytes) -> None:
        Memory.fill(self, content)
        self.block.written = HOST

    # -- keeping both equal -----------------------------------------------------------------------

    def acquired(self, side: str | None) -> None:
        """Make a side current."""
        if self.block.written != "" and self.block.written != side:
            self.update(side)
            self.block.written = ""

    def update(self, side: str | None) -> None:
        """Copy to a side what the other one holds, behind all pending work."""
        DEVICE.synchronize(0)
        self.copy_to(side)

    def copy_to(self, side: str | None, length_bytes: int | None = None) -> None:
        """Copy everything, or the first bytes, to a side now."""
        places = self.block.low, self.mirror_low
        target, source = places if side is HOST else reversed(places)
        DEVICE.move(target, source, length_bytes or self.block.high - self.block.low)

    def touched(self, side: str | None) -> None:
        """Remember that a side was written."""
        self.block.written = side

    # -- the interfaces ---------------------------------------------------------------------------

    @property
    def __array_interface__(self) -> dict:
        self.acquired(HOST)
        return super().__array_interface__

    def cuda_interface(self) -> dict:
        self.acquired(DEVICE_SIDE)
        return self.device_description()

    def device_description(self) -> dict:
        """The CUDA array interface's dict, of the mirror."""
        address = self.mirror_low + self.address - self.block.low
        described = super().cuda_interface()
        return {**described, "data": (0 if self.is_empty else address, self.readonly)}


class Mirrors(ExportsDataInterface, _Mirrored):
    """Both sides, and an entry for each, with separate hooks."""

    def data_interface(self) -> dict:
        described = {HOST: ExportsArrayInterface.__array_interface__.fget(self)}
        described[DEVICE_SIDE] = self.device_description()
        return {side: self.side_entry(side, d) for side, d in described.items()}

    def side_entry(self, side: str | None, described: dict) -> dict:
        hooks = {"acquire": partial(self.acquired, side), "touch": partial(self.touched, side)}
        return {**described, **hooks, **self.names_and_halo()}


class MirrorReference(DeviceReference):
    """The reference producer of arrays with two sides."""

    name = "mirror reference"
    array_types: ClassVar[dict[str, type[Memory]]] = {"gpu": Mirrors}
    capabilities = replace(DeviceReference.capabilities, devices=("gpu",))

    def allocate(self, plan: Plan) -> Memory:
        array = super().allocate(plan)
        array.block.unit_bytes = plan.alignment_size
        return array


# --- defects ------------------------------------------------------------------------------------


@faulty_on("gpu", "XA-17")
class MirrorIsStale(_Mirrored):
    """The mirror is never brought up to date."""

    def update(self, side: str | None) -> None:
        """Does not copy."""


@faulty_on("gpu", "GT-08")
class MirrorsWithoutHooks(_Mirrored):
    """Two sides, equal until a write: there is no data interface to report the write."""


@faulty_on("gpu", "GT-09", "XA-17")
class AcquireDoesNothing(Mirrors):
    """The same, and the data interface's `acquire` does nothing about it."""

    def acquired(self, side: str | None) -> None:
        """Does not copy."""


@faulty_on("gpu", "GT-09")
class TouchDoesNothing(Mirrors):
    """What was written is not remembered."""

    def touched(self, side: str | None) -> None:
        """Does not record the write."""


@faulty_on("gpu", "GT-09")
class TouchOfTheDeviceDoesNothing(Mirrors):
    """The host's writes are remembered, the device's are not."""

    def touched(self, side: str | None) -> None:
        if side is HOST:
            super().touched(side)


class _FirstCopyIsRight(Mirrors):
    """The defect shows only after both sides were equal, not by reading alone."""

    def touched(self, side: str | None) -> None:
        super().touched(side)
        self.block.was_touched = True

    def update(self, side: str | None) -> None:
        if hasattr(self.block, "was_touched"):
            self.update_wrongly(side)
        else:
            super().update(side)

    def update_wrongly(self, side: str | None) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define update_wrongly")


@faulty_on("gpu", "GT-09")
class AcquireCopiesTheWrongWay(_FirstCopyIsRight):
    """`acquire` of one side overwrites the other."""

    def update_wrongly(self, side: str | None) -> None:
        DEVICE.synchronize(0)
        self.copy_to(DEVICE_SIDE if side is HOST else HOST)


@faulty_on("gpu", "GT-09")
class AcquireCopiesTheFirstElementOnly(_FirstCopyIsRight):
    """`acquire` stops copying too early."""

    def update_wrongly(self, side: str | None) -> None:
        DEVICE.synchronize(0)
        first = self.address - self.block.low
        self.copy_to(side, first + self.item_bytes)


@faulty_on("gpu", "GT-09")
class AcquireDoesNotWait(_FirstCopyIsRight):
    """The copy to the host does not wait for what the device has yet to do."""

    def update_wrongly(self, side: str | None) -> None:
        self.copy_to(side)


@faulty_on("gpu", "GT-09")
class TouchedSideIsExchanged(Mirrors):
    """`touch` of one side marks the other."""

    def touched(self, side: str | None) -> None:
        super().touched(DEVICE_SIDE if side is HOST else HOST)


class _OneEntryDiffers(Mirrors):
    """The entry of the device differs."""

    def side_entry(self, side: str | None, described: dict) -> dict:
        entry = super().side_entry(side, described)
        return entry if side is HOST else self.edit(entry)

    def edit(self, entry: dict) -> dict:
        raise NotImplementedError(f"{type(self).__name__} must define edit")


@faulty_on("gpu", "GT-05")
class HaloOfTheDeviceDoesNotFit(_OneEntryDiffers):
    """The halo of the device's entry covers more than the extent."""

    def edit(self, entry: dict) -> dict:
        too_large = tuple((1, extent) for extent in self.shape)
        return {**entry, "halo": too_large} if self.ndim else entry


# fmt: off
row(faulty_on("gpu", "GT-09"), _OneEntryDiffers, "HaloOnOneSideOnly",
    "The device's entry has lost its halo.", edit=lambda self, entry: {**entry, "halo": None})
row(faulty_on("gpu", "GT-09"), _OneEntryDiffers, "DimsOnOneSideOnly",
    "The device's entry has lost its names.", edit=lambda self, entry: {**entry, "dims": None})
# fmt: on


@faulty_on("gpu", "GT-09")
class EntriesHaveOtherShapes(_OneEntryDiffers):
    """The device's entry has a dimension more."""

    def edit(self, entry: dict) -> dict:
        strides = entry["strides"] and (entry["strides"][0], *entry["strides"])
        said_of_fewer = {"dims": None, "halo": None}
        return {**entry, **said_of_fewer, "shape": (1, *self.shape), "strides": strides}


@faulty_on("gpu", "GT-09")
class EntriesHaveOtherElements(_OneEntryDiffers):
    """The device's entry speaks of bytes where the host's speaks of numbers."""

    def edit(self, entry: dict) -> dict:
        if self.element.typestr(False).startswith("|V"):
            return entry  # a record and raw bytes are one to GT-09
        return {**entry, "typestr": f"|S{self.item_bytes}", "descr": None}


@faulty_on("pinned", "GT-09")
class EntriesHaveOtherDims(HostReadableArray):
    """The device's entry names the dimensions in another order."""

    def data_interface(self) -> dict:
        entries = super().data_interface()
        names = entries[None].get("dims")
        if names is not None:
            entries["gpu"]["dims"] = tuple(reversed(names))
        return entries


@faulty_on("managed", "GT-09")
class ManagedMemoryIsNotWaitedFor(HostReadableArray):
    """One memory for both sides; the host's `acquire` does not wait for the device's work."""

    def acquire(self) -> None:
        """Does not wait."""
