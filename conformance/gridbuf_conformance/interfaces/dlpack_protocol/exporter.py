"""An exporter with `__dlpack__` and `__dlpack_device__` over a block; it observes its exports.

The struct, its shape and its strides belong to an `CountedTensor`, which counts: calls of the
deleter (by machine code, see `native`), and what the capsule's destructor did. The capsule itself
is kept alive until the consumer has returned, for its destructor is Python code and would lose an
exception that is on its way.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_int64, c_void_p, cast
from dataclasses import dataclass
from typing import Any

from ..dlpack_structs.structs import CPU, FLAG_COPIED, FLAG_READONLY, Managed, VersionedManaged
from ...abi.libraries import python_api
from ...info import ExportInfo, TensorCounts, Value
from ...info.values import describe
from ...exports.export import Export, ObservedExport, Variant
from ...exports.memory import Block
from ...exports.native import IS_NATIVE, Frame, deleter_address, python_deleter_address

VERSION = (1, 1)
"""What a versioned capsule is stamped with: before 1.2, where NULL strides are legal."""
_MEETING_S = 0.5
"""How long a thread waits for the others; a consumer may let only one in at a time."""
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)
_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"

_api = python_api()
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_api.PyCapsule_GetDestructor.restype = c_void_p
_api.PyCapsule_GetDestructor.argtypes = [ctypes.py_object]
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [c_void_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [c_void_p, ctypes.c_char_p]
_api.Py_IncRef.argtypes = _api.Py_DecRef.argtypes = [c_void_p]

_counted_tensors: dict[int, CountedTensor] = {}
"""Every tensor that may still be in use, by the address of its struct."""


class _Owner:
    """The Python object that a tensor's deleter releases. Its finalizer drops what it keeps: the
    exporter and the capsule."""

    def __init__(self, counted: CountedTensor) -> None:
        self._counted = counted
        self.kept: list[Any] = []

    def __del__(self) -> None:
        self._counted.finalized += 1
        self.kept.clear()


class CountedTensor:
    """One managed tensor over a block, the capsule that carries it, and what becomes of both.

    A variant edits `managed`, `shape` and `strides` before `capsule` is called; None for either
    array leaves a NULL pointer.
    """

    def __init__(self, block: Block, *, versioned: bool) -> None:
        self.block = block
        self.name: bytes = _VERSIONED if versioned else _LEGACY
        self.versioned = versioned
        self.frame = Frame()
        kind = VersionedManaged if versioned else Managed
        self.managed = kind.from_buffer(self.frame)
        self.address = ctypes.addressof(self.frame)
        self.deleter: int | None = deleter_address()
        self.destroyed = 0
        self.held: Any = None
        self.finalized = 0
        self._owner: Callable[[], _Owner | None] = lambda: None
        self.shape: Sequence[int] | int | None = block.shape
        self.strides: Sequence[int] | int | None = [s // block.itemsize for s in block.strides]
        self._describe(versioned)

    def _describe(self, versioned: bool) -> None:
        tensor, block = self.managed.tensor, self.block
        tensor.data = None if block.is_empty else block.address
        tensor.device_type, tensor.device_id = CPU, 0
        tensor.ndim = len(block.shape)
        code, bits = block.plan.dtype_info.dlpack or (
            0,
            8,
        )  # only types that DLPack knows are asked
        tensor.code, tensor.bits = code, bits
        tensor.lanes = 1
        self.managed.manager_ctx = self.address
        if not tensor.ndim:
            self.shape = self.strides = None
        if versioned:
            self.managed.major, self.managed.minor = VERSION
            self.managed.flags = FLAG_READONLY if block.plan.readonly else 0

    def capsule(self) -> object:
        """The capsule; the tensor lives from now on until the suite forgets it."""
        destructor = cast(_destructor, c_void_p)
        self.held = _api.PyCapsule_New(self.publish(), self.name, destructor)
        return self.held

    def delete_by_python(self) -> None:
        """From now on the deleter runs Python code: it drops the last reference to an `_Owner`."""
        owner = _Owner(self)
        self._owner = weakref.ref(owner)
        self.deleter = python_deleter_address()
        self.frame.owner = id(owner)
        _api.Py_IncRef(id(owner))

    def keep(self, *objects: Any) -> None:
        """Leaves references to the deleter's `_Owner`, if there is one."""
        owner = self._owner()
        if owner is not None:
            owner.kept.extend(objects)

    def forget(self) -> None:
        """Drops the capsule. Unless the consumer holds it, its destructor runs here; or in the
        deleter, if the consumer took the tensor and the deleter runs Python code."""
        owner = self._owner()
        if owner is not None and self.info().armed:
            owner.kept.clear()
        self.held = None

    def close(self) -> None:
        """The tensor is no longer used."""
        _counted_tensors.pop(self.address, None)
        owner, self.frame.owner = self.frame.owner, None
        _api.Py_DecRef(owner)

    def publish(self) -> int:
        """The address of the finished struct, for an export without a capsule."""
        tensor = self.managed.tensor
        self._arrays = [_array(self.shape), _array(self.strides)]
        tensor.shape, tensor.strides = (cast(array, POINTER(c_int64)) for array in self._arrays)
        self._written = [bytes(a) for a in self._arrays if isinstance(a, ctypes.Array)]
        self.managed.deleter = self.deleter
        _counted_tensors[self.address] = self
        return self.address

    @property
    def deleter_calls(self) -> int:
        """The number of calls of the deleter, without the call of the capsule's destructor."""
        return int(self.frame.calls)

    @property
    def is_free(self) -> bool:
        """Whether the tensor was deleted; one without a deleter asks for no such thing."""
        return self.deleter is None or self.deleter_calls + self.destroyed > 0

    def info(self) -> TensorCounts:
        """Counters; while the suite holds the capsule, also its name and whether it is armed."""
        arrays = [bytes(a) for a in self._arrays if isinstance(a, ctypes.Array)]
        info = TensorCounts(
            versioned=self.versioned,
            deleter=self.deleter is not None,
            deleter_calls=self.deleter_calls,
            destructor_calls=self.destroyed,
            metadata_unchanged=arrays == self._written,
        )
        if self.held is not None:
            name = _api.PyCapsule_GetName(id(self.held))
            own = cast(_destructor, c_void_p).value
            info.name = None if name is None else name.decode("latin-1")
            info.armed = name == self.name and _api.PyCapsule_GetDestructor(self.held) == own
        return info


@_DESTRUCTOR
def _destructor(capsule: int, api: Any = _api, tensors: Any = _counted_tensors) -> None:
    """An unused capsule releases its tensor; a used capsule has another name.

    A capsule may go when the process ends, and the names of this module before it: so they are
    defaults.
    """
    name = api.PyCapsule_GetName(capsule)
    counted = tensors.get(api.PyCapsule_GetPointer(capsule, name))
    if counted is not None and counted.name == name and not name.startswith(b"used_"):
        counted.destroyed += 1


def _array(values: Sequence[int] | int | None) -> Any:
    """Numbers as a new array, an address unchanged, None as NULL."""
    if values is None or isinstance(values, int):
        return values
    return (c_int64 * max(1, len(values)))(*values)


class Exporter:
    """An object with the two methods of DLPack. Its `ObservedDLPack` notes the calls."""

    def __init__(self, observed: ObservedDLPack) -> None:
        self._observed = observed

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._observed.device

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> object:
        return self._observed.hand_out(arguments, keywords)


class MeetingExporter(Exporter):
    """An exporter that answers several threads at the same time."""

    def __init__(self, observed: ObservedDLPack) -> None:
        super().__init__(observed)
        self._turn = threading.Lock()
        self._meeting = threading.Barrier(max(observed.variant.threads, 1))

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> object:
        with self._turn:
            capsule = super().__dlpack__(*arguments, **keywords)
        try:
            self._meeting.wait(_MEETING_S)
        except threading.BrokenBarrierError:
            pass  # the consumer lets in one thread after the other
        return capsule


class ObservedDLPack(ObservedExport):
    """An exporter with `__dlpack__`: notes the keywords of each call, and each capsule."""

    keywords_taken = frozenset({"stream", "max_version", "dl_device", "copy"})

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        self.calls: list[dict[str, Value]] = []
        self.handed_out: list[CountedTensor] = []
        self.make(self.exporter_type)

    @property
    def exporter_type(self) -> Callable[[ObservedDLPack], Any]:
        """What makes the object that the consumer gets."""
        return self.variant.exporter if isinstance(self.variant, DLPackVariant) else Exporter

    @property
    def device(self) -> tuple[int, int]:
        """What `__dlpack_device__` answers."""
        return self.variant.device if isinstance(self.variant, DLPackVariant) else (CPU, 0)

    # -- what the consumer asks ----------------------------------------------------------------

    def hand_out(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> object:
        """What `__dlpack__` answers; raises as a right producer does."""
        self.calls.append({key: describe(value) for key, value in keywords.items()})
        unknown = sorted(set(keywords) - self.keywords_taken)
        if arguments or unknown:
            name = unknown[0] if unknown else "a positional argument"
            raise TypeError(f"__dlpack__() got an unexpected argument: {name}")
        self._check(**keywords)
        return self.answer(keywords.get("max_version"), copied=bool(keywords.get("copy")))

    def answer(self, max_version: Any, *, copied: bool = False) -> object:
        """The capsule for a consumer that understands `max_version`, bent by the variant."""
        variant = self.variant if isinstance(self.variant, DLPackVariant) else None
        versioned = max_version is not None and max_version[0] >= 1
        if variant is not None and variant.other_form:
            versioned = not versioned
        if variant is not None and variant.shares_capsule and self.handed_out:
            return self.handed_out[0].held
        block = Block(self.block.plan.replaced(readonly=False)) if copied else self.block
        if block.plan.readonly and not versioned:
            raise BufferError("a legacy capsule cannot say read-only; pass max_version=(1, 0)")
        counted = CountedTensor(block, versioned=versioned)
        if copied and isinstance(counted.managed, VersionedManaged):
            counted.managed.flags |= FLAG_COPIED
        counted.managed.tensor.device_type, counted.managed.tensor.device_id = self.device
        self.variant.bend(counted)
        self.handed_out.append(counted)
        capsule = counted.capsule()
        counted.keep(self.exporter, capsule)
        return capsule

    def _check(
        self,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> None:
        if stream not in (None, -1) and self.device[0] == CPU:
            raise BufferError(f"stream is {stream!r}, must be None: host memory has no streams")
        if max_version is not None and not _is_int_pair(max_version):
            raise TypeError(f"max_version is {max_version!r}, must be a tuple of two ints")
        if dl_device is not None and not _is_int_pair(dl_device):
            raise TypeError(f"dl_device is {dl_device!r}, must be a tuple of two ints")
        if dl_device is not None and tuple(map(int, dl_device)) != self.device:
            raise BufferError(f"dl_device is {dl_device!r}, must be {self.device}: it is there")

    # -- what the suite sees -------------------------------------------------------------------

    def info(self) -> ExportInfo:
        return ExportInfo(
            calls=self.calls,
            handed_out=[counted.info() for counted in self.handed_out],
            native_deleter=IS_NATIVE,
        )

    def was_asked(self) -> bool:
        return bool(self.handed_out)

    def is_free(self) -> bool:
        return all(counted.is_free for counted in self.handed_out)

    def forget(self) -> None:
        super().forget()
        for counted in self.handed_out:
            counted.forget()

    def close(self) -> None:
        super().close()
        for counted in self.handed_out:
            counted.close()


class ObservedLegacyDLPack(ObservedDLPack):
    """The same of the 2022 standard, which knows `stream` alone."""

    keywords_taken = frozenset({"stream"})


def _is_int_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(n, int) for n in value)


@dataclass(frozen=True)
class DLPackVariant(Variant):
    """A variant of DLPack.

    `bend` edits a tensor before its capsule is made, `exporter` is the type that the consumer is
    given, `device` what both the method and the struct say, `other_form` hands out the form of
    capsule that was not asked for. `shares_capsule`: every call gets the same capsule.
    """

    exporter: Callable[[ObservedDLPack], Any] = Exporter
    device: tuple[int, int] = (CPU, 0)
    other_form: bool = False
    shares_capsule: bool = False
