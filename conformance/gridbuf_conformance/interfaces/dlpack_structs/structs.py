"""DLPack from the outside: both capsules' structs, and deleters that can be counted.

`Exported` wraps the capsule that `__dlpack__` returned. `info()` reads the struct behind it where
it is mapped; `count_deletions` puts a counting function in the place of the deleter, which then
calls the producer's own; `consume` does what a consumer does: rename, and call the deleter when
done.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...info import CapsuleInfo
from ...abi.capsule import (
    capsule_name,
    capsule_name_address,
    capsule_pointer,
    is_capsule,
    rename_capsule,
)
from ...abi.libraries import c_function, python_api
from ...abi.memory import POINTER_BYTES, Memory

CPU, CUDA, CUDA_HOST, ROCM, CUDA_MANAGED = 1, 2, 3, 10, 13
HOST_READABLE = frozenset({CPU, CUDA_HOST, 11, CUDA_MANAGED})
"""The device types whose memory the host can read as well."""
DEVICE_TYPES = MappingProxyType(
    {
        1: "CPU",
        2: "CUDA",
        3: "CUDAHost",
        4: "OpenCL",
        7: "Vulkan",
        8: "Metal",
        9: "VPI",
        10: "ROCM",
        11: "ROCMHost",
        12: "ExtDev",
        13: "CUDAManaged",
        14: "OneAPI",
        15: "WebGPU",
        16: "Hexagon",
        17: "MAIA",
        18: "Trn",
        19: "TPU",
        20: "TPUHost",
        21: "Ascend",
    }
)
TYPE_CODES = MappingProxyType(
    {
        0: "int",
        1: "uint",
        2: "float",
        3: "handle",
        4: "bfloat",
        5: "complex",
        6: "bool",
        7: "float8_e3m4",
        8: "float8_e4m3",
        9: "float8_e4m3b11fnuz",
        10: "float8_e4m3fn",
        11: "float8_e4m3fnuz",
        12: "float8_e5m2",
        13: "float8_e5m2fnuz",
        14: "float8_e8m0fnu",
        15: "float6_e2m3fn",
        16: "float6_e3m2fn",
        17: "float4_e2m1fn",
        18: "bcomplex",
    }
)
NARROW_CODES = frozenset({0, 1, 15, 16, 17})
"""The type codes whose elements may take less than a byte."""
FLAG_READONLY, FLAG_COPIED, FLAG_PADDED = 0x1, 0x2, 0x4
_USED = {"dltensor": b"used_dltensor", "dltensor_versioned": b"used_dltensor_versioned"}


class Tensor(ctypes.Structure):
    """`DLTensor` (48 bytes)."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """`DLManagedTensor` (64 bytes), what a legacy capsule holds."""

    _fields_ = [
        ("tensor", Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class VersionedManaged(ctypes.Structure):
    """`DLManagedTensorVersioned` (80 bytes)."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_STRUCTS: dict[str, type[Managed] | type[VersionedManaged]] = {
    "dltensor": Managed,
    "dltensor_versioned": VersionedManaged,
}
_DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_COUNTING_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_THREAD_START = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_NO_SWITCH_S = 1000.0
_PATIENCE_S = 5.0
_api = python_api()  # its functions, those of the C library too, do not release the GIL
_tryjoin: Any = getattr(_api, "pthread_tryjoin_np", None)
for _name in ("PyInterpreterState_Get", "PyInterpreterState_ThreadHead", "PyThreadState_Next"):
    getattr(_api, _name).restype = ctypes.c_void_p
    getattr(_api, _name).argtypes = [ctypes.c_void_p] * (_name != "PyInterpreterState_Get")


def read_tensor(info: CapsuleInfo, tensor: Tensor, memory: Memory) -> CapsuleInfo:
    """The info with the fields of a tensor filled in."""
    return replace(
        info,
        data=tensor.data or 0,
        device=[tensor.device_type, tensor.device_id],
        ndim=tensor.ndim,
        dtype=[tensor.code, tensor.bits, tensor.lanes],
        byte_offset=tensor.byte_offset,
        shape=memory.entries(tensor.shape, tensor.ndim),
        strides=memory.entries(tensor.strides, tensor.ndim),
    )


def read_managed(
    info: CapsuleInfo, managed: Managed | VersionedManaged, memory: Memory
) -> CapsuleInfo:
    """The info with a managed tensor's fields: version, flags, deleter, and those of the tensor."""
    info = replace(info, deleter=_code_word(managed.deleter, memory))
    if isinstance(managed, VersionedManaged):
        info = replace(info, version=[managed.major, managed.minor], flags=managed.flags)
    return read_tensor(info, managed.tensor, memory)


def _code_word(address: int | None, memory: Memory) -> str:
    if not address:
        return "NULL"
    executable = memory.map.covers(address, address + 1, "x")
    return "executable" if executable else "not executable"


def callable_deleter(managed: Managed | VersionedManaged, memory: Memory) -> int | None:
    """The deleter's address, or None where it is NULL or cannot be code."""
    return managed.deleter if _code_word(managed.deleter, memory) == "executable" else None


def count_deletions(
    pointer: int, managed: Managed | VersionedManaged | None, memory: Memory
) -> Counter | None:
    """Replaces the deleter of the struct at `pointer`, of which `managed` is a copy, by one that
    counts and then calls the original; None if it cannot. The counter has to live as long as the
    deleter can be called.
    """
    original = None if managed is None else callable_deleter(managed, memory)
    if managed is None or original is None:
        return None
    counter = Counter(_DELETER(original))
    field = pointer + type(managed).deleter.offset
    address = ctypes.cast(counter.function, ctypes.c_void_p).value or 0
    written = memory.write(field, address.to_bytes(POINTER_BYTES, sys.byteorder))
    return counter if written else None


class Exported:
    """One result of `__dlpack__`, whatever it is."""

    def __init__(self, capsule: Any, memory: Memory) -> None:
        self.capsule = capsule
        self.memory = memory
        self.is_capsule = is_capsule(capsule)
        self.name = capsule_name(capsule, memory.text) if self.is_capsule else None
        self._struct = _STRUCTS.get(self.name or "")
        self.pointer = capsule_pointer(capsule) if self._struct else 0

    @property
    def name_address(self) -> int:
        """Where the capsule's name is stored."""
        return capsule_name_address(self.capsule)

    @property
    def what(self) -> str:
        """What it is, in two or three words."""
        return (
            f"a capsule named {self.name!r}"
            if self.is_capsule
            else f"a {type(self.capsule).__name__}"
        )

    def read(self) -> Managed | VersionedManaged | None:
        """A copy of the struct behind the capsule, or None where there is none that can be read."""
        if self._struct is None or self.pointer % POINTER_BYTES:
            return None
        raw = self.memory.read(self.pointer, ctypes.sizeof(self._struct))
        if raw is None:
            return None
        return self._struct.from_buffer_copy(raw)

    def info(self) -> CapsuleInfo:
        """The capsule, and its struct where it can be read."""
        info = CapsuleInfo(capsule=self.is_capsule, name=self.name)
        if not self.is_capsule:
            info.type = type(self.capsule).__name__
        if self._struct is None:
            return info
        managed = self.read()
        if managed is None:
            return replace(info, unmapped=True)
        return read_managed(info, managed, self.memory)

    def callable_deleter(self) -> int | None:
        """The deleter's address, or None where it is NULL or cannot be code."""
        managed = self.read()
        return None if managed is None else callable_deleter(managed, self.memory)

    def count_deletions(self) -> Counter | None:
        """Replaces the deleter by one that counts and then calls the original; None if it cannot.

        The returned counter has to be kept for as long as the deleter can be called.
        """
        return count_deletions(self.pointer, self.read(), self.memory)

    def mark_used(self) -> None:
        """Renames the capsule as a consumer does when it takes the tensor over."""
        rename_capsule(self.capsule, _USED[self.name or ""])

    def delete(self) -> bool:
        """Calls the deleter, if there is one; the struct is gone afterwards."""
        address = self.callable_deleter()
        if address is not None:
            _DELETER(address)(self.pointer)
        return address is not None

    def delete_on_foreign_thread(self) -> bool:
        """Calls the deleter on a thread unknown to Python, without the GIL, and waits for it."""
        create, join = c_function("pthread_create"), c_function("pthread_join")
        thread = None if create is None or join is None else self._start_deleter(create)
        if thread is not None:
            join(thread, None)
        return thread is not None

    def references_without_gil(self, owner: Any) -> list[int]:
        """The same, while this thread holds the GIL until the other one has ended or waits for it.

        The result are the numbers of references to the owner before and then; nothing where that
        cannot be done, or another thread can take the GIL meanwhile.
        """
        if _thread_states() != 1:
            return []
        held = [owner, *filter(_is_of_a_library, gc.get_referents(owner))]
        counts = [_references(held)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_NO_SWITCH_S)  # else the waiting thread makes this one release it
        try:
            thread = self._start_deleter(_api.pthread_create)
            if thread is None:
                return []
            has_ended = _ends_without_gil(thread)
            counts.append(_references(held))
        finally:
            sys.setswitchinterval(interval)
        if not has_ended:
            c_function("pthread_join")(thread, None)
        return counts

    def _start_deleter(self, create: Any) -> ctypes.c_ulong | None:
        address, thread = self.callable_deleter(), ctypes.c_ulong()
        if address is None:
            return None
        start, pointer = _THREAD_START(address), ctypes.c_void_p(self.pointer)
        return None if create(ctypes.byref(thread), None, start, pointer) else thread


def _thread_states() -> int:
    """How many threads the interpreter knows; 0 where they cannot be counted or need no GIL."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or _tryjoin is None:
        return 0
    count, state = 0, _api.PyInterpreterState_ThreadHead(_api.PyInterpreterState_Get())
    while state:
        count, state = count + 1, _api.PyThreadState_Next(state)
    return count


def _ends_without_gil(thread: ctypes.c_ulong) -> bool:
    """Whether a thread has ended. Returns as soon as it has, or has become a thread of Python,
    which is what a thread does before it waits for the GIL."""
    deadline = time.monotonic() + _PATIENCE_S
    while _thread_states() == 1 and time.monotonic() < deadline:
        if not _tryjoin(thread, None):
            return True
        _api.usleep(20)
    return False


def _is_of_a_library(value: Any) -> bool:
    return not isinstance(value, type) and type(value).__module__ != "builtins"


def _references(held: list[Any]) -> int:
    return sum(map(sys.getrefcount, held))


class Counter:
    """Counts the calls of a deleter; the first call is passed on to the producer's own."""

    def __init__(self, original: Callable[[int], None]) -> None:
        self.calls = 0
        self._original = original
        self.function = _COUNTING_DELETER(self._deleted)

    def _deleted(self, managed: int) -> None:
        self.calls += 1
        if self.calls == 1:
            self._original(managed)
