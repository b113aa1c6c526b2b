"""Reading and writing memory by address, only where the process has it mapped.

`Memory` couples the address map with the two `ctypes` calls that touch memory. It returns None (or
False) instead of touching memory that is not mapped with the access that the operation needs, so a
wrong address becomes a finding and not a crash.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from ..info import UNMAPPED, Entries
from .device import Devices, Space
from .maps import AddressMap

POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)
_ENTRIES_LIMIT = 1024
_NAME_LIMIT_BYTES = 4096
_NAME_STEP_BYTES = 64


class Memory(Space):
    """The process's memory, seen through its address map; and the way to the devices' memory."""

    def __init__(self, devices: Devices | None = None) -> None:
        self.map = AddressMap()
        self.devices = devices or Devices()

    def readable(self, low: int, high: int) -> bool:
        """Whether [low, high) may be read."""
        return self.map.covers(low, high, "r")

    def writable(self, low: int, high: int) -> bool:
        """Whether [low, high) may be written."""
        return self.map.covers(low, high, "w")

    def read(self, address: int, count: int) -> bytes | None:
        """`count` bytes at `address`, or None where they are not all mapped readable."""
        if not count:
            return b""
        return ctypes.string_at(address, count) if self.readable(address, address + count) else None

    def write(self, address: int, data: bytes) -> bool:
        """Writes `data` at `address`; False, and nothing written, if it is not mapped writable."""
        if not self.writable(address, address + len(data)):
            return False
        ctypes.memmove(address, data, len(data))
        return True

    def integers(self, address: int, count: int) -> list[int] | None:
        """`count` signed 64-bit (pointer-sized) integers at `address`, or None."""
        raw = self.read(address, count * POINTER_BYTES)
        return None if raw is None else list(struct.unpack(f"={count}{_INTEGER}", raw))

    def entries(self, pointer: ctypes._Pointer[Any], count: int) -> Entries:
        """The integers behind a pointer of a struct; None for NULL, `UNMAPPED` if unreadable."""
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        if not address:
            return None
        if not 0 <= count <= _ENTRIES_LIMIT or (count and address % POINTER_BYTES):
            return UNMAPPED
        entries = self.integers(address, count)
        return UNMAPPED if entries is None else entries

    def text(self, address: int) -> bytes | None:
        """The NUL-terminated string at `address` without its NUL; None if it is not all mapped."""
        found = b""
        while len(found) < _NAME_LIMIT_BYTES:
            room = _NAME_STEP_BYTES - address % _NAME_STEP_BYTES
            if not self.readable(address, address + room):
                return None
            # Up to the NUL only: the bytes after it belong to other code, and a sanitizer in this
            # process reports a read.
            part = (ctypes.c_char * room).from_address(address).value
            found += part
            if len(part) < room:
                return found
            address += room
        return None


_INTEGER = "q" if POINTER_BYTES == 8 else "i"
