"""DLPack from the outside: both capsules' structs, and deleters that can be counted.

`Exported` wraps the capsule that `__dlpack__` returned. `facts` reads the struct behind it where it is
mapped; `count_deletions` puts a counting function in the place of the deleter, which then calls the
producer's own; `consume` does what a consumer does: rename, and call the deleter when done.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from .capsule import (
    capsule_name,
    capsule_name_address,
    capsule_pointer,
    is_capsule,
    rename_capsule,
)
from .memory import POINTER_BYTES, Memory

__all__ = [
    "CPU",
    "DEVICE_TYPES",
    "FLAG_COPIED",
    "FLAG_PADDED",
    "FLAG_READONLY",
    "TYPE_CODES",
    "Exported",
]

CPU = 1
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
FLAG_READONLY, FLAG_COPIED, FLAG_PADDED = 0x1, 0x2, 0x4
_NDIM_LIMIT = 1024
_USED = {"dltensor": b"used_dltensor", "dltensor_versioned": b"used_dltensor_versioned"}


class _Tensor(ctypes.Structure):
    """`DLTensor` (48 bytes)."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    """`DLManagedTensor` (64 bytes), what a legacy capsule holds."""

    _fields_ = [
        ("tensor", _Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class _ManagedVersioned(ctypes.Structure):
    """`DLManagedTensorVersioned` (80 bytes)."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_STRUCTS = {"dltensor": _Managed, "dltensor_versioned": _ManagedVersioned}
_DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_COUNTING_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_THREAD_START = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Exported:
    """One result of `__dlpack__`, whatever it is."""

    def __init__(self, capsule: Any, memory: Memory) -> None:
        self.capsule = capsule
        self.memory = memory
        self.is_capsule = is_capsule(capsule)
        self.name = capsule_name(capsule, memory) if self.is_capsule else None
        self._struct = _STRUCTS.get(self.name or "")
        self.pointer = capsule_pointer(capsule) if self._struct else 0

    @property
    def name_address(self) -> int:
        """Where the capsule's name is stored."""
        return capsule_name_address(self.capsule)

    def read(self) -> ctypes.Structure | None:
        """A copy of the struct behind the capsule, or None where there is none that can be read."""
        if self._struct is None or self.pointer % POINTER_BYTES:
            return None
        raw = self.memory.read(self.pointer, ctypes.sizeof(self._struct))
        return None if raw is None else self._struct.from_buffer_copy(raw)

    def facts(self) -> dict[str, Any]:
        """The capsule and its struct as plain values.

        `shape` and `strides` are lists, None (NULL) or {"unmapped": True}; `deleter` is "NULL",
        "executable" or "not executable". A struct that is not mapped leaves {"unmapped": True}.
        """
        facts: dict[str, Any] = {"capsule": self.is_capsule, "name": self.name}
        if not self.is_capsule:
            facts["type"] = type(self.capsule).__name__
        if self._struct is None:
            return facts
        managed = self.read()
        if managed is None:
            return {**facts, "unmapped": True}
        versioned = self._struct is _ManagedVersioned
        facts["version"] = [managed.major, managed.minor] if versioned else None
        facts["flags"] = managed.flags if versioned else None
        facts["deleter"] = self._deleter_word(managed.deleter)
        tensor = managed.tensor
        facts.update(
            data=tensor.data or 0,
            device=[tensor.device_type, tensor.device_id],
            ndim=tensor.ndim,
            dtype=[tensor.code, tensor.bits, tensor.lanes],
            byte_offset=tensor.byte_offset,
            shape=self._entries(tensor.shape, tensor.ndim),
            strides=self._entries(tensor.strides, tensor.ndim),
        )
        return facts

    def _entries(self, pointer: int | None, count: int) -> Any:
        if not pointer:
            return None
        if count == 0:
            return []
        if not 0 <= count <= _NDIM_LIMIT or pointer % POINTER_BYTES:
            return {"unmapped": True}
        entries = self.memory.integers(pointer, count)
        return {"unmapped": True} if entries is None else entries

    def _deleter_word(self, deleter: int | None) -> str:
        if not deleter:
            return "NULL"
        executable = self.memory.map.covers(deleter, deleter + 1, "x")
        return "executable" if executable else "not executable"

    def callable_deleter(self) -> int | None:
        """The deleter's address, or None where it is NULL or cannot be code."""
        managed = self.read()
        if managed is None or self._deleter_word(managed.deleter) != "executable":
            return None
        return managed.deleter

    def count_deletions(self) -> Counter | None:
        """Replaces the deleter by one that counts and then calls the original; None if it cannot.

        The returned counter has to be kept for as long as anybody can call the deleter.
        """
        original = self.callable_deleter()
        if original is None:
            return None
        counter = Counter(_DELETER(original))
        field = self.pointer + self._struct.deleter.offset
        address = ctypes.cast(counter.function, ctypes.c_void_p).value
        written = self.memory.write(field, address.to_bytes(POINTER_BYTES, sys.byteorder))
        return counter if written else None

    def mark_used(self) -> None:
        """Renames the capsule as a consumer does when it takes the tensor over."""
        rename_capsule(self.capsule, _USED[self.name])

    def delete(self) -> bool:
        """Calls the deleter, if there is one; the struct is gone afterwards."""
        address = self.callable_deleter()
        if address is not None:
            _DELETER(address)(self.pointer)
        return address is not None

    def delete_on_foreign_thread(self) -> bool:
        """Calls the deleter on a thread that Python has never seen, without the GIL, and waits for it."""
        address = self.callable_deleter()
        if address is None:
            return False
        library = ctypes.CDLL(None)
        thread = ctypes.c_ulong()
        start = _THREAD_START(address)
        if library.pthread_create(ctypes.byref(thread), None, start, ctypes.c_void_p(self.pointer)):
            return False
        library.pthread_join(thread, None)
        return True


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
