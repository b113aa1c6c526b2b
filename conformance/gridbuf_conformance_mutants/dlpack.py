"""Defects of DLPack: the C structs (DL rules) and the Python methods (DP rules).

The arrays here have no other interface, except where a defect can only be told by comparing with
another interface.
"""

from __future__ import annotations
from gridbuf_conformance.interfaces.dlpack_structs.structs import Managed, Tensor

import ctypes
import functools
import itertools
import weakref
from typing import ClassVar

from gridbuf_conformance.plan import Plan

from . import capsules
from .capsules import Export
from .elements import Element
from .memory import Block
from .mutant import Mutant, faulty
from .reference import (
    CPU,
    IS_COPIED,
    READ_ONLY,
    Exports,
    ExportsArrayInterface,
    ExportsBuffer,
    ExportsDLPack,
    Memory,
    is_int_pair,
)
from .table import rows

row = rows(__name__)

Base = Exports.DLPack


class WithBuffer(ExportsDLPack, Memory, ExportsBuffer):
    """DLPack next to the buffer protocol."""


class _EditedTensor(Base):
    """A right tensor with some fields changed afterwards."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define edit")

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        self.edit(export, export.managed.tensor)


class _EditedFlags(Base):
    """A right versioned capsule with other flags."""

    def edit_flags(self, flags: int) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define edit_flags")

    def export(self, versioned: bool, *, copied: bool) -> Export:
        export = super().export(versioned, copied=copied)
        if versioned:
            export.managed.flags = self.edit_flags(export.managed.flags)
        return export


# --- version and flags --------------------------------------------------------------------------


@faulty("DL-01")
class FlagsAfterTheTensor(Base):
    """The versioned capsule holds the tensor where the flags belong, and the flags behind it."""

    def export(self, versioned: bool, *, copied: bool) -> Export:
        export = super().export(versioned, copied=copied)
        if versioned:
            raw = bytes(export.managed)
            flags, tensor = raw[24:32], raw[32:80]
            ctypes.memmove(export.address + 24, tensor + flags, 56)
        return export


@faulty("DL-02")
class MajorVersionZero(Base):
    """A versioned capsule of version (0, 8)."""

    def export(self, versioned: bool, *, copied: bool) -> Export:
        export = super().export(versioned, copied=copied)
        if versioned:
            export.managed.major, export.managed.minor = 0, 8
        return export


# fmt: off
row(faulty(advises=["DL-03"]), _EditedFlags, "UnknownFlagBits", "Flag bit 9 is set.",
    edit_flags=lambda self, flags: flags | 1 << 9)
row(faulty("DL-04"), _EditedFlags, "ReadOnlyBitMissing",
    "Read-only pages are exported without the bit.",
    edit_flags=lambda self, flags: flags & ~READ_ONLY)
row(faulty("DL-05"), _EditedFlags, "CopyWithoutTheBit", "copy=True copies and does not say so.",
    edit_flags=lambda self, flags: flags & ~IS_COPIED)
row(faulty("DL-05"), _EditedFlags, "SharedMemoryFlaggedAsCopy", "Every export claims to be a copy.",
    edit_flags=lambda self, flags: flags | IS_COPIED)
row(faulty(advises=("DL-06",)), _EditedFlags, "PaddedBitOnWholeBytes",
    "The padding bit of sub-byte types is set for whole bytes.",
    edit_flags=lambda self, flags: flags | 4)
# fmt: on


@faulty("DL-04")
class ReadOnlyBitMissingWithoutCopy(Base):
    """What copy=False returns has no read-only bit."""

    def __dlpack__(self, *, copy=None, **keywords) -> object:
        self.readonly, readonly = self.readonly and copy is not False, self.readonly
        try:
            return super().__dlpack__(copy=copy, **keywords)
        finally:
            self.readonly = readonly


@faulty("DL-05")
class CopiedBitMissingForADevice(Base):
    """A copy that is requested for a device does not say that it is one."""

    def __dlpack__(self, *, copy=None, dl_device=None, **keywords) -> object:
        if not copy or dl_device is None:
            return super().__dlpack__(copy=copy, dl_device=dl_device, **keywords)
        return self.copied().__dlpack__(dl_device=dl_device, **keywords)


# --- shape and strides --------------------------------------------------------------------------


@faulty("DL-07")
class ShapeIsNull(_EditedTensor):
    """`shape` is NULL for arrays with axes."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        tensor.shape = None


@faulty("DL-07")
class ExtentIsNegative(_EditedTensor):
    """The first extent is -1."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if self.ndim:
            tensor.shape[0] = -1


@faulty("DL-08")
class NewVersionWithoutStrides(_EditedTensor):
    """A capsule of version 1.2 leaves `strides` NULL for row-major arrays."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if self.is_contiguous("C"):
            tensor.strides = None

    def export(self, versioned: bool, *, copied: bool) -> Export:
        export = super().export(versioned, copied=copied)
        if versioned:
            export.managed.minor = 2
        return export


@faulty("DL-09")
class StridesInBytes(_EditedTensor):
    """Strides count bytes."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if self.ndim and not self.is_untouched:
            export.set_metadata(self.shape, self.strides)


@faulty("DL-14")
class StrideOfMinusOneWraps(_EditedTensor):
    """A stride of -1 element is divided as an unsigned number."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        for axis, stride in enumerate(self.strides):
            if stride < 0:
                tensor.strides[axis] = (stride % 2**64) // self.item_bytes


@faulty("DL-14")
class StridesLeaveTheBlock(_EditedTensor):
    """The first stride is a mebi-element too long."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if self.ndim and not self.is_untouched:
            tensor.strides[0] += 2**20


@faulty("DL-21")
class MetadataBelongsToTheArray(Base):
    """The capsule keeps the memory alive, but its shape and strides are freed with the array."""

    in_use = True

    def copied(self) -> Memory:
        copy = super().copied()
        copy.in_use = False  # it lives for its one export only
        return copy

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        if not self.in_use:
            return
        export.owner = self.block
        if not hasattr(self, "words"):
            self.words = (ctypes.c_int64 * 128)(*self.shape)
            self.words[64 : 64 + self.ndim] = [s // self.item_bytes for s in self.strides]
            whole = ctypes.sizeof(self.words)
            weakref.finalize(self, ctypes.memset, self.words, 0x11, whole).atexit = False
        export.kept.append(self.words)
        tensor, start = export.managed.tensor, ctypes.addressof(self.words)
        pointer = type(tensor.shape)
        tensor.shape = ctypes.cast(start, pointer) if self.ndim else None
        tensor.strides = ctypes.cast(start + 8 * 64, pointer) if self.ndim else None


# --- element type and device --------------------------------------------------------------------


@faulty("DL-15")
class LanesZero(_EditedTensor):
    """`lanes` is 0."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        tensor.lanes = 0


@faulty("DL-15")
class BooleanOfOneBit(_EditedTensor):
    """Booleans have 1 bit."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if self.element.kind == "b":
            tensor.bits = 1


@faulty("DL-30")
class LanesIgnored(ExportsArrayInterface, ExportsDLPack, Memory):
    """Complex numbers of 8 bytes are two lanes of 8 bytes; the array interface is correct."""

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        if self.element.kind == "c":
            export.managed.tensor.lanes = 2


@faulty("GT-20", advises=("DL-16",))
class SwappedBytesExported(Base):
    """Numbers in swapped byte order are exported without a word."""

    def check_describable(self, versioned: bool) -> None:
        swapped, self.swapped = self.swapped, False
        try:
            super().check_describable(versioned)
        finally:
            self.swapped = swapped


@faulty("DL-17")
class UnknownDevice(Base):
    """Host memory of a device type that does not exist."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (77, 0)

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        export.managed.tensor.device_type = 77


@faulty(advises=("DL-17",))
class HostDeviceThree(Base):
    """Host memory of device 3."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 3)

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        export.managed.tensor.device_id = 3


# --- address ------------------------------------------------------------------------------------


class _RemembersItsBase(Base):
    """A view knows where the array begins that it was made from."""

    def reshaped(self, shape, strides, offset):
        view = super().reshaped(shape, strides, offset)
        view.base_address = getattr(self, "base_address", self.address)
        return view


@faulty("DL-10")
class OffsetOfAViewLost(_RemembersItsBase):
    """`data` is the base's first element and `byte_offset` is left 0."""

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        if not self.is_empty:
            export.managed.tensor.data = getattr(self, "base_address", self.address)


@faulty("DL-10")
class OffsetCountedTwice(_RemembersItsBase):
    """`data` is the view's first element, and `byte_offset` counts its distance from the base's
    element a second time.
    """

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        distance = self.address - getattr(self, "base_address", self.address)
        if not self.is_empty:
            export.managed.tensor.byte_offset = max(0, distance)


@faulty("DL-13")
class ScalarWithoutData(_EditedTensor):
    """`data` is NULL for a 0-d array."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if not self.ndim:
            tensor.data = None


@faulty("DL-24")
class ByteOffsetWraps(_EditedTensor):
    """`byte_offset` is 2^64 - 40, relative to an address behind the first element."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if not self.is_empty:
            tensor.data, tensor.byte_offset = self.address + 40, 2**64 - 40


@faulty("DL-27")
class DataIsNull(_EditedTensor):
    """`data` is NULL for arrays with axes that hold elements."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        if self.ndim:
            tensor.data = None


@faulty(advises=["DL-12"])
class EmptyArrayWithAddress(_EditedTensor):
    """`data` of an array without elements is not NULL."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        tensor.data = self.address


# --- deleter and lifetime -----------------------------------------------------------------------


class _Capsule(Base):
    """Makes its own capsule from a right export."""

    def capsule_of(self, export: Export) -> object:
        raise NotImplementedError(f"{type(self).__name__} must define capsule_of")

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        self.check_keywords(stream, max_version, dl_device)
        versioned = max_version is not None and max_version >= (1, 0)
        source = self.copied() if copy else self
        source.check_describable(versioned)
        return self.capsule_of(source.export(versioned, copied=bool(copy)))


@capsules.deleter_callback
def _delete_nothing(address: int) -> None:
    """A deleter that frees neither the owner nor the struct."""


# fmt: off
row(faulty("DL-19"), _Capsule, "DeleterFreesNothing",
    "The deleter returns without letting go of the owner.",
    capsule_of=lambda self, export: export.capsule(deleter=_delete_nothing))
# fmt: on


@faulty("DL-20")
class DeleterNeedsTheLock(_Capsule):
    """The deleter of complex arrays touches the interpreter without taking the lock."""

    def capsule_of(self, export: Export) -> object:
        if self.element.kind != "c":
            return export.capsule()
        return export.capsule(deleter=ctypes.PyDLL(None).PyErr_Clear)


@faulty("DL-20")
class DeleterReleasesWithoutTheLock(_Capsule):
    """The deleter of versioned tensors drops the reference to the array without taking the lock.

    `PyBuffer_Release` releases the second word of its argument, which is `manager_ctx`.
    """

    def capsule_of(self, export: Export) -> object:
        if isinstance(export.managed, Managed):
            return export.capsule()
        exports = vars(self).setdefault("exports", [])
        for deleted in [one for one in exports if not one.managed.manager_ctx]:
            exports.remove(deleted)
            capsules.delete(deleted.address)
        exports.append(export)
        capsule = export.capsule(deleter=_api.PyBuffer_Release)
        export.owner, export.managed.manager_ctx = None, id(self)
        _api.Py_IncRef(ctypes.py_object(self))
        return capsule


_api = ctypes.PyDLL(None)


@faulty("XA-11")
class ExportsShareTheirMemory(Base):
    """Capsules of read-only arrays lead to one place, into which each export copies the array."""

    scratch = Block(4096)

    def export(self, versioned: bool, *, copied: bool) -> Export:
        if self.ndim != 1 or not self.readonly or copied:
            return super().export(versioned, copied=copied)
        copy = self.copied()
        ctypes.memmove(self.scratch.low, copy.address, self.total_bytes)
        copy.address, copy.readonly = self.scratch.low, True
        return Base.export(copy, versioned, copied=copied)


@capsules.destructor_callback
def _destroy_nothing(capsule_address: int) -> None:
    """A capsule destructor that does nothing."""


@capsules.destructor_callback
def _destroy_always(capsule_address: int) -> None:
    """A capsule destructor that calls the deleter for every name of the capsule."""
    used = (b"used_dltensor", b"used_dltensor_versioned")
    capsules.call_deleter_of(capsule_address, (b"dltensor", b"dltensor_versioned", *used))


@capsules.destructor_callback
def _destroy_twice(capsule_address: int) -> None:
    """A capsule destructor that calls the deleter of an unconsumed capsule twice."""
    for _ in range(2):
        capsules.call_deleter_of(capsule_address)


# fmt: off
row(faulty("DP-06"), _Capsule, "UnconsumedCapsuleLeaks",
    "The capsule's destructor is empty: a tensor that is not imported is never freed.",
    capsule_of=lambda self, export: export.capsule(destructor=_destroy_nothing))
row(faulty("DP-07"), _Capsule, "ConsumedCapsuleDeletesAgain",
    "The capsule's destructor calls the deleter though a consumer has renamed the capsule.",
    capsule_of=lambda self, export: export.capsule(destructor=_destroy_always))
row(faulty("DL-19"), _Capsule, "UnconsumedCapsuleDeletesTwice",
    "The capsule's destructor calls the deleter twice.",
    capsule_of=lambda self, export: export.capsule(destructor=_destroy_twice))
# fmt: on


@faulty("DL-29")
class ResizeWhileExported(Base):
    """`resize` gives the pages back although an export is alive."""

    def resize(self, *shape: int) -> None:
        old, self.block = self.block, Block(4096)
        self.address = self.block.low
        old.unmap()


@faulty("DP-10")
class CapsuleNameDangles(_Capsule):
    """The capsule's name is in memory that the deleter gives back and the next one reuses."""

    names: ClassVar[list[ctypes.Array]] = []

    def capsule_of(self, export: Export) -> object:
        name = self.names.pop() if self.names else (ctypes.c_char * 64)()
        name.value = export.name
        export.on_delete = functools.partial(self.give_back, name)
        return export.capsule(name_address=ctypes.addressof(name))

    @classmethod
    def give_back(cls, name: ctypes.Array) -> None:
        name.value = b"given back"
        cls.names.append(name)


# --- the Python methods -------------------------------------------------------------------------


@faulty("DP-01")
class DeviceQueryMissing(Memory):
    """`__dlpack__` without `__dlpack_device__`."""

    __dlpack__ = ExportsDLPack.__dlpack__
    check_keywords = ExportsDLPack.check_keywords
    check_describable = ExportsDLPack.check_describable
    export = ExportsDLPack.export
    describe_tensor = ExportsDLPack.describe_tensor


# fmt: off
row(faulty("DP-02"), Base, "DeviceIsAList", "`__dlpack_device__` answers a list.",
    __dlpack_device__=lambda self: [*CPU])
row(faulty("DP-02"), Base, "DeviceIsText", '`__dlpack_device__` answers ("cpu", 0).',
    __dlpack_device__=lambda self: ("cpu", 0))
# fmt: on


@faulty("DP-02")
class DeviceVaries(Base):
    """`__dlpack_device__` counts its calls in the device number."""

    calls = itertools.count()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, next(self.calls))


@faulty("DP-03")
class CapsuleIsKept(Base):
    """Each form of capsule is made once and returned by every call."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        self.check_keywords(stream, max_version, dl_device)
        kept = self.__dict__.setdefault("kept", {})
        form = (max_version is not None and max_version >= (1, 0), bool(copy))
        if form not in kept:
            kept[form] = super().__dlpack__(max_version=max_version, copy=copy)
        return kept[form]


@faulty("DP-03")
class CapsuleOfAnotherName(_Capsule):
    """The capsule is named `tensor`."""

    def capsule_of(self, export: Export) -> object:
        export.name = b"tensor"
        return export.capsule()


@faulty("DP-04")
class CapsuleOfAnotherDevice(_EditedTensor):
    """The tensor says page-locked memory (3, 0), the query says (1, 0)."""

    def edit(self, export: Export, tensor: Tensor) -> None:
        tensor.device_type = 3


@faulty(advises=("DP-11",))
class AlwaysVersioned(Base):
    """A versioned capsule for consumers that did not ask for one."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        return super().__dlpack__(
            stream=stream, max_version=max_version or (1, 0), dl_device=dl_device, copy=copy
        )


@faulty(advises=("DP-12",))
class OldConsumerGetsVersioned(Base):
    """A versioned capsule for a consumer that reads versions up to (0, 1)."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        if isinstance(max_version, tuple) and len(max_version) == 2 and max_version < (1, 0):
            max_version = (1, 0)
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )


@faulty(advises=["DP-13"])
class AnyMaxVersion(Base):
    """A list is as good as a tuple for max_version."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        if max_version is not None:
            major = max_version[0] if isinstance(max_version, (list, tuple)) else 1
            max_version = (major, 0)
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )


@faulty(advises=["DP-14"])
class StandardOf2022(Base):
    """Only the keyword `stream`, as in the first standard."""

    def __dlpack__(self, *, stream=None) -> object:
        return super().__dlpack__(stream=stream)


@faulty("DP-14")
class KeywordsMissing(Base):
    """Only the keywords `stream` and `max_version`: a device or a copy cannot be requested."""

    def __dlpack__(self, *, stream=None, max_version=None) -> object:
        return super().__dlpack__(stream=stream, max_version=max_version)


@faulty("DP-15")
class AnyStream(Base):
    """Host memory accepts stream 1 in silence."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        return super().__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


@faulty(advises=("DP-20",))
class CopyTrueIsATypeError(Base):
    """A copy is refused with TypeError."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        if copy:
            raise TypeError("this array cannot copy")
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )


@faulty("DP-20")
class CopyTrueAliases(_Capsule):
    """copy=True hands out the array's own memory, flagged as a copy."""

    def copied(self) -> Memory:
        return self

    def capsule_of(self, export: Export) -> object:
        return export.capsule()


@faulty("DP-21")
class AlwaysCopies(Base):
    """copy=False and copy=None copy as well."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=True
        )


@faulty("DP-22")
class CopiesUnlessForbidden(Base):
    """copy=None copies."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        copy = copy or (copy is None and not self.readonly)
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )


@faulty("DP-23")
class AnyDevice(Base):
    """dl_device (2, 0) is accepted and ignored."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        return super().__dlpack__(stream=stream, max_version=max_version, copy=copy)


def _refuses(error: type[Exception], *devices: object):
    """A `__dlpack__` that raises another error for these devices."""

    def __dlpack__(self, *, dl_device=None, **keywords) -> object:
        if dl_device in devices:
            raise error(f"dl_device is {dl_device!r}")
        return Base.__dlpack__(self, dl_device=dl_device, **keywords)

    return __dlpack__


# fmt: off
row(faulty(advises=("DP-23",)), Base, "AnotherDeviceIsARuntimeError",
    "A device that cannot be served is a RuntimeError.", __dlpack__=_refuses(RuntimeError, (8, 0)))
row(faulty(advises=("DP-23",)), Base, "TextAsDeviceIsAValueError",
    "A dl_device that is a text is a ValueError.", __dlpack__=_refuses(ValueError, "cpu"))
# fmt: on


@faulty(advises=("DP-23",))
class DeviceNumberIgnored(Base):
    """Of dl_device only the type is looked at: (1, 7) gives the memory of the host."""

    def __dlpack__(self, *, dl_device=None, **keywords) -> object:
        is_host = is_int_pair(dl_device) and dl_device[0] == CPU[0]
        return super().__dlpack__(dl_device=CPU if is_host else dl_device, **keywords)


@faulty("DP-25")
class RecordsAsLanes(ExportsArrayInterface, ExportsDLPack, Memory):
    """Records are exported as vectors of bytes; the array interface calls them records."""

    def check_describable(self, versioned: bool) -> None:
        if self.swapped or not self.element.fields:
            super().check_describable(versioned)

    def describe_tensor(self, export: Export) -> None:
        if not self.element.fields:
            super().describe_tensor(export)
            return
        element, self.element = self.element, self.element._replace(dlpack=(1, 8))
        try:
            super().describe_tensor(export)
            export.managed.tensor.lanes = self.item_bytes
        finally:
            self.element = element


@faulty(advises=["DP-25", "XA-14"])
class RefusesWithRuntimeError(WithBuffer):
    """What DLPack cannot describe raises RuntimeError; the buffer protocol raises BufferError."""

    def check_describable(self, versioned: bool) -> None:
        if self.element.dlpack is None or self.swapped:
            raise RuntimeError("unsupported element type")
        super().check_describable(versioned)


class RefusesOddStridesOfOneElement(Mutant):
    """Axes of extent 1 have a stride that no other element needs; the export refuses it."""

    breaks = frozenset()
    advises = frozenset({"DP-26"})

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        pairs = zip(super().strides(plan, element), plan.shape)
        return tuple(s + (n == 1 < element.itemsize) for s, n in pairs)

    class array_type(WithBuffer):
        def check_describable(self, versioned: bool) -> None:
            if any(stride % self.item_bytes for stride in self.strides):
                raise BufferError("a stride is not a multiple of the item size")
            super().check_describable(versioned)


class ExportsWhatIsNotThere(Mutant):
    """The producer says that its arrays have no memory, but exports them at another address."""

    has_memory = False
    breaks = frozenset({"DP-25"})

    class array_type(WithBuffer):
        """DLPack next to the buffer protocol."""


class ExportsNothingAtNull(Mutant):
    """Arrays without memory are exported with elements at NULL."""

    has_memory = False
    breaks = frozenset({"DL-27", "DL-13", "DP-25"})

    class array_type(Exports.DLPack):
        def describe_tensor(self, export: Export) -> None:
            super().describe_tensor(export)
            export.managed.tensor.data = None


class StrideTruncated(Mutant):
    """Rows are one byte further apart than the exported stride says."""

    breaks = frozenset({"DP-26"})

    def strides(self, plan: Plan, element: Element) -> tuple[int, ...]:
        strides = super().strides(plan, element)
        if plan.alignment_size > 1 or plan.fill is None:
            return strides
        outermost = max(strides, default=0)
        return tuple(s + (s == outermost > element.itemsize > 1) for s in strides)

    class array_type(WithBuffer):
        def check_describable(self, versioned: bool) -> None:
            strides, self.strides = self.strides, (0,) * self.ndim
            try:
                super().check_describable(versioned)
            finally:
                self.strides = strides


@faulty(advises=["DP-27"])
class ReadOnlyInALegacyCapsule(Base):
    """Read-only memory is exported in a legacy capsule, which has no flag for it."""

    def check_describable(self, versioned: bool) -> None:
        super().check_describable(True)


# -- combinations of keywords --------------------------------------------------------------------


class _Combines(Base):
    """Exports by the keywords that were passed."""

    def export_with(self, keywords: dict[str, object]) -> object:
        return super().__dlpack__(**keywords)

    def __dlpack__(self, **keywords: object) -> object:
        return self.export_with(keywords)


@faulty("DP-20")
class SharesForItsOwnDevice(_Combines):
    """With dl_device, copy=True returns the array's memory."""

    def export_with(self, keywords: dict[str, object]) -> object:
        is_asked = keywords.get("dl_device") and keywords.get("copy")
        return super().export_with({**keywords, "copy": None} if is_asked else keywords)


@faulty("DP-21")
class CopiesForItsOwnDevice(_Combines):
    """With dl_device, copy=False returns a copy."""

    def export_with(self, keywords: dict[str, object]) -> object:
        is_asked = keywords.get("dl_device") and keywords.get("copy") is False
        return super().export_with({**keywords, "copy": True} if is_asked else keywords)


@faulty("DP-14")
class TakesTwoKeywords(_Combines):
    """Three keywords are a TypeError."""

    def export_with(self, keywords: dict[str, object]) -> object:
        if len(keywords) > 2:
            raise TypeError(f"__dlpack__ takes 2 keywords, got {len(keywords)}")
        return super().export_with(keywords)


@faulty(advises=("DP-11",))
class VersionedForItsOwnDevice(_Combines):
    """With dl_device and copy=False the capsule is versioned, also without max_version."""

    def export_with(self, keywords: dict[str, object]) -> object:
        is_asked = keywords.get("dl_device") and keywords.get("copy") is False
        return super().export_with({"max_version": (1, 3), **keywords} if is_asked else keywords)
