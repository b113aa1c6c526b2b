"""Consumers that import DLPack tensors wrongly, each in one way."""

from __future__ import annotations
from gridbuf_conformance.abi.descriptors import c_strides
from gridbuf_conformance.interfaces.dlpack_structs.structs import Managed, Tensor, VersionedManaged

import ctypes
import math
import os
import time
import weakref
from contextlib import nullcontext
from typing import Any

from . import capsules
from .consumer import wrong
from .elements import ELEMENTS, Element
from .importer import Imported, Importer
from .table import rows

row = rows(__name__)

# -- the array -----------------------------------------------------------------------------------


# fmt: off
row(wrong("DL-10"), Importer, "IgnoresByteOffset", "The first element is taken to be at `data`.",
    address_of=lambda self, tensor: int(tensor.data or 0))
# fmt: on


@wrong("DL-08")
class ReadsNullStrides(Importer):
    """NULL strides are read like any."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> Any:
        if tensor.ndim and not tensor.strides:
            _read_null()
        return super().strides_of(tensor, shape, itemsize)


@wrong("DL-08")
class RefusesNullStrides(Importer):
    """NULL strides are refused, from old producers as well."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> Any:
        if tensor.ndim and not tensor.strides:
            raise BufferError("strides is NULL, must be given")
        return super().strides_of(tensor, shape, itemsize)


@wrong(weakens=("DL-08",))
class TrustsVersion12(Importer):
    """Strides of version 1.2 are read like any."""

    interfaces = ("dlpack",)

    def check_version(self, managed: Managed | VersionedManaged) -> None:
        super().check_version(managed)
        if isinstance(managed, VersionedManaged) and managed.minor >= 2:
            if managed.tensor.ndim and not managed.tensor.strides:
                _read_null()


@wrong("DL-14", "DP-30")
class IgnoresStrides(Importer):
    """Every tensor is taken for row-major."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> None:
        return None


@wrong("DP-30")
class ReversesTheLastAxis(Importer):
    """The elements of the last axis come in the opposite order, also of plain arrays."""

    def describe(self, tensor: Tensor, readonly: bool) -> dict[str, Any]:
        described = super().describe(tensor, readonly)
        shape, (address, flag) = described["shape"], described["data"]
        if not shape or 0 in shape:
            return described
        itemsize = self.element_of(tensor).itemsize
        strides = described["strides"] or c_strides(shape, itemsize)
        address += (shape[-1] - 1) * strides[-1]
        strides = (*strides[:-1], -strides[-1])
        return {**described, "strides": strides, "data": (address, flag)}


@wrong("DL-14")
class StridesAreUnsigned(Importer):
    """Strides are taken as positive."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> Any:
        strides = super().strides_of(tensor, shape, itemsize)
        return None if strides is None else tuple(map(abs, strides))


@wrong(weakens=("DP-33",))
class BelievesEveryStride(Importer):
    """A stride of an axis of extent 1, or of an empty tensor, has to be the row-major one."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> Any:
        if tensor.ndim and tensor.strides:
            wanted = 1
            for extent, stride in zip(reversed(shape), reversed(tensor.strides[: tensor.ndim])):
                if extent <= 1 and stride != wanted:
                    raise BufferError(f"a stride is {stride}, must be {wanted}: row-major only")
                wanted *= extent
        return super().strides_of(tensor, shape, itemsize)


@wrong("DP-33")
class PrefetchesTheNextRow(Importer):
    """Reads ahead by strides of axes that have no next row."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> Any:
        wanted = 1
        for axis in reversed(range(tensor.ndim if tensor.strides else 0)):
            stride = tensor.strides[axis]
            if shape[axis] <= 1 and stride != wanted:
                ctypes.string_at(self.address_of(tensor) + stride * itemsize, 1)
            wanted *= shape[axis]
        return super().strides_of(tensor, shape, itemsize)


@wrong("DL-13")
class ReadsTheShapeOfScalars(Importer):
    """The first extent is read before ndim is checked."""

    def shape_of(self, tensor: Tensor) -> tuple[int, ...]:
        first = tensor.shape[0] if tensor.shape else 0
        return super().shape_of(tensor) if first is not None else ()


@wrong("DP-30")
class SignIsLost(Importer):
    """Signed integers become unsigned ones."""

    def element_of(self, tensor: Tensor) -> Element:
        element = super().element_of(tensor)
        return element._replace(kind="u") if element.kind == "i" else element


@wrong("DL-21")
class ConvertsStridesInPlace(Importer):
    """Strides are converted to bytes in place, in the producer's memory."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> Any:
        strides = super().strides_of(tensor, shape, itemsize)
        for axis, stride in enumerate(strides or ()):
            tensor.strides[axis] = stride
        return strides


@wrong(advises=("DL-12",))
class RefusesEmptyNull(Importer):
    """A tensor with data NULL is refused, whether it has elements or not."""

    def address_of(self, tensor: Tensor) -> int:
        if not tensor.data:
            raise BufferError("data is NULL")
        return super().address_of(tensor)


@wrong(advises=("DP-28",))
class ForgetsReadOnly(Importer):
    """The read-only bit is not looked at."""

    def is_readonly(self, managed: Managed | VersionedManaged) -> bool:
        return False


@wrong(advises=("DP-28",))
class MakesReadOnly(Importer):
    """Copies can be written; results that share memory cannot."""

    interfaces = ("dlpack",)

    def __call__(self, exporter: Any, copy: bool | None = None) -> Any:
        self.check_device(*exporter.__dlpack_device__())
        with self.turn():
            return self.take(exporter.__dlpack__(max_version=(1, 3), copy=copy))

    def is_readonly(self, managed: Managed | VersionedManaged) -> bool:
        return not managed.flags & 2


@wrong("DL-01")
class RefusesCopies(Importer):
    """Any flag but read-only is an error."""

    def is_readonly(self, managed: Managed | VersionedManaged) -> bool:
        if isinstance(managed, VersionedManaged) and managed.flags > 1:
            raise BufferError(f"flags is {managed.flags}, must be 0 or 1")
        return super().is_readonly(managed)


# -- no array ------------------------------------------------------------------------------------


class _GivesNoArray(Importer):
    """Unusual strides, which DL-14 judges, and empty arrays, which DL-12 judges, are left alone."""

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        if 0 in interface["shape"] or min(interface["strides"] or (1,)) <= 0:
            return super().result(interface, owner)
        return self.instead(interface, owner)

    def instead(self, interface: dict[str, Any], owner: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define instead")


# fmt: off
row(wrong("DP-30"), _GivesNoArray, "ReturnsNothing", "The array is not returned.",
    instead=lambda self, interface, owner: None)
row(wrong("DP-30"), _GivesNoArray, "PointsNowhere", "The result has an address where no memory is.",
    instead=lambda self, interface, owner: Imported({**interface, "data": (64, False)}, owner))
# fmt: on


@wrong("DP-30")
class ReturnsObjects(_GivesNoArray):
    """The elements become Python objects."""

    def instead(self, interface: dict[str, Any], owner: Any) -> Any:
        count = math.prod(interface["shape"])
        objects = (ctypes.py_object * max(count, 1))(*(0,) * count)
        as_objects = {"typestr": "|O8", "data": (ctypes.addressof(objects), False), "strides": None}
        return Imported({**interface, **as_objects}, (objects, owner))


# -- unknown values -----------------------------------------------------------------------------


@wrong("DL-22")
class ReadsAnotherMajor(Importer):
    """The major version is not looked at: the tensor behind it is junk."""

    def check_version(self, managed: Managed | VersionedManaged) -> None:
        if isinstance(managed, VersionedManaged) and managed.major != 1:
            ctypes.string_at(ctypes.cast(managed.tensor.shape, ctypes.c_void_p).value, 8)


# fmt: off
row(wrong("DL-22"), Importer, "TakesAnyMajor", "The major version is not looked at.",
    check_version=lambda self, managed: None)
# fmt: on


@wrong("DL-23")
class RefusesLaterMinor(Importer):
    """Only known minor versions are accepted."""

    def check_version(self, managed: Managed | VersionedManaged) -> None:
        super().check_version(managed)
        if isinstance(managed, VersionedManaged) and managed.minor > 3:
            raise BufferError(f"the minor version is {managed.minor}, must be at most 3")


@wrong("DL-23")
class GuessesTypes(Importer):
    """An unknown type code is taken for a float."""

    def element_of(self, tensor: Tensor) -> Element:
        if tensor.code == 200:
            return ELEMENTS["float32"]
        return super().element_of(tensor)


@wrong(weakens=("DL-23",))
class AssertsTypes(Importer):
    """An unknown type code is an AssertionError."""

    def element_of(self, tensor: Tensor) -> Element:
        assert tensor.code < 18, "this cannot happen"
        return super().element_of(tensor)


@wrong("DL-23")
class DropsLanes(Importer):
    """Of a vector of four lanes only the first is read."""

    def element_of(self, tensor: Tensor) -> Element:
        tensor.lanes, lanes = 1, tensor.lanes
        try:
            return super().element_of(tensor)
        finally:
            tensor.lanes = lanes


@wrong(advises=("DL-23",))
class ForgetsTheTypeOfVectors(Importer):
    """A vector of lanes is taken as raw bytes."""

    def element_of(self, tensor: Tensor) -> Element:
        if tensor.lanes == 1:
            return super().element_of(tensor)
        return Element("V", tensor.lanes * tensor.bits // 8, "", None)


class _Carried:
    """A tensor that is exported again as it came."""

    def __init__(self, tensor: Tensor, owner: Any) -> None:
        self._tensor, self._owner = tensor, owner

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.device_type, self._tensor.device_id

    def __dlpack__(self, **keywords: Any) -> object:
        managed = VersionedManaged(major=1, minor=1, tensor=self._tensor)
        return capsules.Export(managed, owner=self).capsule()


@wrong(advises=("DL-23",))
class CarriesUnknownTypes(Importer):
    """A tensor of an unknown type is taken, and handed on as it came."""

    def describe(self, tensor: Tensor, readonly: bool) -> dict[str, Any]:
        if tensor.code == 200:
            return {"tensor": tensor}
        return super().describe(tensor, readonly)

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        tensor = interface.get("tensor")
        return super().result(interface, owner) if tensor is None else _Carried(tensor, owner)


@wrong("DL-23")
class TakesAnyDevice(Importer):
    """An unknown device is taken for the host."""

    def check_device(self, device_type: int, device_id: int) -> None:
        if device_type == 77:
            return
        super().check_device(device_type, device_id)


@wrong(weakens=("DL-23",))
class ChecksTheDeviceOfTheMethod(Importer):
    """The device of the tensor is not looked at."""

    def ask(self, exporter: Any) -> object:
        super().check_device(*exporter.__dlpack_device__())
        return self.call(exporter)

    def check_device(self, device_type: int, device_id: int) -> None:
        return None


@wrong(weakens=("DL-23", "DP-32"))
class AssertsOneDevice(Importer):
    """Another device in the tensor than from `__dlpack_device__` is an AssertionError."""

    def ask(self, exporter: Any) -> object:
        self._device, _ = exporter.__dlpack_device__()
        return self.call(exporter)

    def check_device(self, device_type: int, device_id: int) -> None:
        assert device_type == self._device, "this cannot happen"
        super().check_device(device_type, device_id)


@wrong("DL-26")
class TakesWideNarrowFloats(Importer):
    """Floats of 4 and 6 bits are taken for bytes if they say they have 8."""

    def element_of(self, tensor: Tensor) -> Element:
        if tensor.code in (15, 16, 17) and tensor.bits == 8:
            return ELEMENTS["uint8"]
        return super().element_of(tensor)


# -- the capsule and its tensor ------------------------------------------------------------------


@wrong("DL-19")
class DeletesTwice(Importer):
    """The deleter is called twice."""

    def delete(self, address: int, deleter: int | None, context: int | None) -> None:
        super().delete(address, deleter, context)
        super().delete(address, deleter, context)


# fmt: off
row(wrong("DP-31"), Importer, "NeverDeletes", "The deleter is never called.",
    delete=lambda self, address, deleter, context: None)
row(wrong("DP-31"), Importer, "DeletesEarly",
    "The tensor is released before the array over it is returned.",
    result=lambda self, interface, owner: Imported(interface, None))
# fmt: on


@wrong("DP-31")
class ReleasesTheExporter(Importer):
    """After the import ends a reference to the exporter that it did not take."""

    def __call__(self, exporter: Any) -> Any:
        result = super().__call__(exporter)
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(exporter))
        return result


@wrong(advises=("DP-31",))
class NeverReleasesTheExporter(Importer):
    """Takes a reference to the exporter, and never releases it."""

    def __call__(self, exporter: Any) -> Any:
        result = super().__call__(exporter)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(exporter))
        return result


@wrong("DP-31")
class LeaksEmptyTensors(Importer):
    """The deleter of a tensor without elements is forgotten."""

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        if 0 in interface["shape"]:
            _leaked.append(owner)
        return super().result(interface, owner)


_leaked: list[Any] = []


@wrong("DP-31")
class KeepsOneDeleterForEachAddress(Importer):
    """Of two tensors over the same memory, the deleter of the first is forgotten."""

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        address, _ = interface["data"]
        earlier = _open[address]() if address in _open else None
        if earlier is not None:
            _leaked.append(earlier)
        _open[address] = weakref.ref(owner)
        return super().result(interface, owner)


_open: dict[int, weakref.ref[Any]] = {}


@wrong("DL-19")
class CallsNullDeleters(Importer):
    """A deleter that is NULL is called."""

    def delete(self, address: int, deleter: int | None, context: int | None) -> None:
        if not deleter:
            _read_null()
        super().delete(address, deleter, context)


@wrong("DL-19")
class RefusesNullDeleters(Importer):
    """A tensor without a deleter is refused."""

    def check_version(self, managed: Managed | VersionedManaged) -> None:
        super().check_version(managed)
        if not managed.deleter:
            raise BufferError("the deleter is NULL")


@wrong(weakens=("DL-20",))
class DeletesOnAThreadAndKeepsTheGil(Importer):
    """The deleter is called on a thread of C, for which the importer waits with the GIL."""

    interfaces = ("dlpack",)

    def delete(self, address: int, deleter: int | None, context: int | None) -> None:
        if deleter:
            thread = ctypes.c_ulong()
            _api.pthread_create(ctypes.byref(thread), None, deleter, address)
            _api.pthread_join(thread, None)


@wrong("DL-28")
class DeletesOnlyWithContext(Importer):
    """The deleter is called only if manager_ctx is not NULL."""

    def delete(self, address: int, deleter: int | None, context: int | None) -> None:
        if context:
            super().delete(address, deleter, context)


@wrong("DL-28")
class ReadsTheContext(Importer):
    """manager_ctx is looked into."""

    def check_version(self, managed: Managed | VersionedManaged) -> None:
        super().check_version(managed)
        if managed.manager_ctx:
            ctypes.string_at(managed.manager_ctx, 8)


# fmt: off
row(wrong("DP-08", weakens=("DP-05", "DL-19")), Importer, "NeverRenames",
    "The capsule keeps its name, and its destructor deletes the tensor as well.",
    rename=lambda self, capsule, name: None)
# fmt: on


@wrong("DP-08")
class RenamesLate(Importer):
    """The tensor is taken first; a refused one is deleted, and the capsule deletes it again."""

    def take(self, capsule: Any) -> Any:
        name = self.name_of(capsule)
        try:
            return super().take(capsule)
        except BufferError:
            address = _pointer(capsule, name)
            managed = self.struct_of(name).from_address(address)
            self.delete(address, managed.deleter, managed.manager_ctx)
            raise


@wrong("DP-09")
class ForgetsWhatItRefuses(Importer):
    """The capsule is renamed at once, and a tensor that is refused later is never deleted."""

    def take(self, capsule: Any) -> Any:
        name = self.name_of(capsule)
        try:
            return super().take(capsule)
        except BufferError:
            self.rename(capsule, name)
            raise


@wrong("DP-09")
class LosesExceptions(Importer):
    """A refusal ends in a SystemError: an exception was cleared on the way."""

    def take(self, capsule: Any) -> Any:
        try:
            return super().take(capsule)
        except BufferError:
            raise SystemError("returned NULL without setting an exception") from None


@wrong("DP-05", weakens=("DL-19",))
class TakesUsedCapsules(Importer):
    """A capsule that was used is used again."""

    def name_of(self, capsule: Any) -> bytes:
        for used, name in _UNUSED.items():
            if _name(capsule) == used:
                _rename(capsule, name)
        return super().name_of(capsule)


class HoldsTheCapsule(Importer):
    """A right consumer that takes over nothing: the capsule lives as long as the last array."""

    def rename(self, capsule: Any, name: bytes) -> None:
        self._held = capsule

    def owner(self, address: int, managed: Managed | VersionedManaged) -> Any:
        return self.__dict__.pop("_held")


holds_the_capsule = HoldsTheCapsule()


@wrong(weakens=("DP-05", "DL-19"))
class RenamesAfterAPause(Importer):
    """Other threads run between the check of a capsule's name and the renaming."""

    def turn(self) -> Any:
        return nullcontext()

    def rename(self, capsule: Any, name: bytes) -> None:
        time.sleep(_PAUSE_S)
        super().rename(capsule, name)


_PAUSE_S = 0.05
_UNUSED = {b"used_dltensor": b"dltensor", b"used_dltensor_versioned": b"dltensor_versioned"}


@wrong("DP-11")
class BelievesWhatItAskedFor(Importer):
    """The capsule is opened by the name of the requested form, which gives NULL."""

    def name_of(self, capsule: Any) -> bytes:
        name = super().name_of(capsule)
        if name != self._asked:
            _read_null()
        return name

    def call(self, exporter: Any) -> object:
        self._asked = b"dltensor_versioned"
        try:
            return exporter.__dlpack__(max_version=(1, 3))
        except TypeError:
            self._asked = b"dltensor"
            return exporter.__dlpack__()


@wrong("DL-19", "DP-31")
class HasOneTensorForAll(Importer):
    """The importer remembers the tensor taken last, and deletes it in place of the others."""

    def owner(self, address: int, managed: Managed | VersionedManaged) -> Any:
        self._last = address, managed.deleter, managed.manager_ctx
        return super().owner(address, managed)

    def delete(self, address: int, deleter: int | None, context: int | None) -> None:
        super().delete(*self._last)


@wrong(weakens=("DP-32",))
class RefusesASecondThread(Importer):
    """An import while another one is under way is an error."""

    _is_busy = False

    def __call__(self, exporter: Any) -> Any:
        if self._is_busy:
            raise BufferError("another import is under way")
        self._is_busy = True
        try:
            return super().__call__(exporter)
        finally:
            self._is_busy = False


# -- the methods ---------------------------------------------------------------------------------


# fmt: off
row(wrong(advises=("DP-14",)), Importer, "NeverAsksForAVersion",
    "`__dlpack__()` is called without keywords.", call=lambda self, exporter: exporter.__dlpack__())
row(wrong(advises=("DP-14",)), Importer, "DoesNotAskAgain",
    "A producer that does not know max_version is refused.",
    call=lambda self, exporter: exporter.__dlpack__(max_version=(1, 3)))
# fmt: on


@wrong("DP-19")
class SendsStreamZero(Importer):
    """Devices with streams get stream=0."""

    def ask(self, exporter: Any) -> object:
        device, _ = exporter.__dlpack_device__()
        if device == 2:
            exporter.__dlpack__(stream=0)
        return super().ask(exporter)


@wrong("DP-21")
class CopiesAgainstItsWord(Importer):
    """It asks for no copy, and makes one itself."""

    def call(self, exporter: Any) -> object:
        try:
            return exporter.__dlpack__(max_version=(1, 3), copy=False)
        except TypeError:
            return exporter.__dlpack__()

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        if interface["strides"] is not None or 0 in interface["shape"]:
            return super().result(interface, owner)
        count = 1
        for extent in interface["shape"]:
            count *= extent
        length = count * int(interface["typestr"][2:])
        copy = ctypes.create_string_buffer(ctypes.string_at(interface["data"][0], length), length)
        return Imported({**interface, "data": (ctypes.addressof(copy), False)}, copy)


@wrong(advises=("DP-29",))
class HidesTheExportersError(Importer):
    """Whatever the exporter raises becomes a ValueError without a cause."""

    def call(self, exporter: Any) -> object:
        try:
            return super().call(exporter)
        except RuntimeError:
            raise ValueError("no array") from None


# -- dying ---------------------------------------------------------------------------------------


@wrong("DP-32")
class AbortsOnNegativeStrides(Importer):
    """A negative stride is an abort."""

    def strides_of(self, tensor: Tensor, shape: tuple[int, ...], itemsize: int) -> Any:
        strides = super().strides_of(tensor, shape, itemsize)
        if any(stride < 0 for stride in strides or ()):
            os.abort()
        return strides


@wrong("DP-32")
class OverrunsManyDimensions(Importer):
    """More dimensions than it has room for are the end."""

    def check_dimensions(self, tensor: Tensor) -> None:
        if tensor.ndim > 64:
            os.abort()


@wrong("DP-32")
class HangsOnEmptyTensors(Importer):
    """A tensor without elements is waited for."""

    interfaces = ("dlpack",)

    def address_of(self, tensor: Tensor) -> int:
        while tensor.ndim == 1 and not tensor.shape[0]:
            time.sleep(1)
        return super().address_of(tensor)


@wrong(weakens=("DP-32",))
class ExitsOnWrongResults(Importer):
    """An object that is not a capsule ends the program."""

    def name_of(self, capsule: Any) -> bytes:
        if isinstance(capsule, int):
            raise SystemExit("no capsule")
        return super().name_of(capsule)


_api = ctypes.PyDLL(None)
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.pthread_create.argtypes = [ctypes.c_void_p] * 4
_api.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]


def _read_null() -> None:
    """What following a NULL pointer comes to."""
    ctypes.c_int64.from_address(8).value  # noqa: B018


def _name(capsule: Any) -> bytes | None:
    name: bytes | None = _api.PyCapsule_GetName(capsule)
    return name


def _pointer(capsule: Any, name: bytes) -> int:
    return int(_api.PyCapsule_GetPointer(capsule, name))


def _rename(capsule: Any, name: bytes) -> None:
    _api.PyCapsule_SetName(capsule, name)
