"""The exported memory: the array of one plan, in separate pages.

A block is between two inaccessible pages, so that a consumer that reads far outside the
array dies there and then. Around the array, in its pages, are bytes that no content has, so
a consumer that reads close to it shows wrong values. A read-only array is in pages that refuse
writing. Nothing is taken from any library's allocator, and a block is given back only when the
suite has seen the consumer let go of it.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from itertools import product
from math import prod

from ..abi.libraries import c_function
from ..plan import Plan

__all__ = ["OUTSIDE", "Block", "Pages"]

OUTSIDE = 0xA5
"""What the bytes around an array hold; the plans' content has no byte above 0x7b (`dtypes`), long
doubles apart."""
_ROOM_BYTES = 1024
_ALIGNMENT_BYTES = 64
_mmap, _munmap, _mprotect = (
    c_function(name, use_errno=True) for name in ("mmap", "munmap", "mprotect")
)
if _mmap is not None:
    _mmap.restype = ctypes.c_void_p
    _mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
    _munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    _mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PROT_NONE = 0
_FAILED = ctypes.c_void_p(-1).value
_PAGE_BYTES = mmap.PAGESIZE


class Pages:
    """At least `length_bytes` readable and writable bytes, between two inaccessible pages.

    `low` and `high` bound the usable ones. Unmapped when the object is collected. Raises
    MemoryError if the system refuses.
    """

    def __init__(self, length_bytes: int) -> None:
        if _mmap is None:
            raise NotImplementedError(f"{sys.platform} has no mmap, by which exports are protected")
        usable = max(1, -(-length_bytes // _PAGE_BYTES)) * _PAGE_BYTES
        total = usable + 2 * _PAGE_BYTES
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = _mmap(None, total, _PROT_NONE, flags, -1, 0)
        if start in (None, _FAILED):
            raise MemoryError(f"mmap of {total} bytes failed with errno {ctypes.get_errno()}")
        self.low = start + _PAGE_BYTES
        self.high = self.low + usable
        self._finalizer = weakref.finalize(self, _munmap, start, total)
        self._finalizer.atexit = False  # type: ignore[misc]  # a property with a setter
        self.protect(mmap.PROT_READ | mmap.PROT_WRITE)

    @property
    def forbidden(self) -> int:
        """An address in an inaccessible page, a multiple of any alignment up to a page."""
        return int(self.high)

    def protect(self, permission: int) -> None:
        """Gives the usable pages a permission: `mmap.PROT_READ` and so on, 0 for none."""
        if _mprotect(self.low, self.high - self.low, permission):
            raise MemoryError(f"mprotect failed with errno {ctypes.get_errno()}")

    def bytes(self) -> bytes:
        """All usable bytes."""
        return ctypes.string_at(self.low, self.high - self.low)


class Block(Pages):
    """The array of a plan, its views applied.

    `address` is that of element (0, …, 0) of the viewed array; `shape` and `strides` (bytes) are
    the viewed array's; `low` and `high` bound the pages. `shift_bytes` moves the array off its
    alignment. The array starts at a multiple of `alignment_size`, at least of 64 (as the viewed
    array's hull goes), as close to the end of its pages as that allows.

    Raises NoContent for a plan without content.
    """

    def __init__(self, plan: Plan, *, shift_bytes: int = 0) -> None:
        self.plan = plan
        self.itemsize = plan.itemsize
        base_strides = _packed_strides(plan)
        content = plan.content()
        alignment = max(plan.alignment_size, _ALIGNMENT_BYTES)
        super().__init__(_ROOM_BYTES + plan.nbytes + 2 * alignment + abs(shift_bytes))
        aligned = sum(i * s for i, s in zip(plan.aligned_element, base_strides))
        last = self.high - plan.nbytes - max(shift_bytes, 0)
        start = last - (last + aligned) % alignment + shift_bytes
        ctypes.memset(self.low, OUTSIDE, self.high - self.low)
        for number, index in enumerate(product(*map(range, plan.shape))):
            place = start + sum(i * s for i, s in zip(index, base_strides))
            item = content[number * self.itemsize : (number + 1) * self.itemsize]
            ctypes.memmove(place, item, self.itemsize)
        view = plan.view_map
        self.shape = view.shape
        self.strides = view.strides(base_strides)
        self.address = start + view.offset(base_strides)
        self._before = self.bytes()
        if plan.readonly:
            self.protect(mmap.PROT_READ)

    @property
    def nbytes(self) -> int:
        """Bytes of all viewed elements."""
        return self.itemsize * prod(self.shape)

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    def holds(self, address: int) -> bool:
        """Whether an address is in the pages of the block."""
        return bool(self.low <= address < self.high)

    def is_unchanged(self) -> bool:
        """Whether every byte, those around the array included, is unchanged since the export.

        Opens the pages again if an exporter has closed them.
        """
        self.allow()
        return self.bytes() == self._before

    def allow(self) -> None:
        """Gives the pages their permission back: for exporters that take their memory back."""
        writable = 0 if self.plan.readonly else mmap.PROT_WRITE
        self.protect(mmap.PROT_READ | writable)


def _packed_strides(plan: Plan) -> tuple[int, ...]:
    """Byte strides without padding, in the order of the plan's layout map."""
    layout = plan.layout if plan.layout is not None else range(plan.ndim)
    slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
    strides, step = [0] * plan.ndim, plan.itemsize
    for axis in reversed(slowest_first):
        strides[axis] = step
        step *= max(plan.shape[axis], 1)
    return tuple(strides)
