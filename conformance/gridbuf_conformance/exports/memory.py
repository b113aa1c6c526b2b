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
from itertools import product
from math import prod

from ..abi.descriptors import is_contiguous
from ..abi.pages import Pages
from ..plan import Plan

OUTSIDE = 0xA5
"""What the bytes around an array hold; the plans' content has no byte above 0x7b (`dtypes`), long
doubles apart."""
_ROOM_BYTES = 1024
_ALIGNMENT_BYTES = 64


class Block(Pages):
    """The array of a plan, its views applied.

    `address` is that of element (0, …, 0) of the viewed array; `shape` and `strides` (bytes) are
    the viewed array's; `low` and `high` bound the pages. `shift_bytes` moves the array off its
    alignment, `gap_bytes` are left after each element. The array starts at a multiple of 64 bytes
    (as the viewed array's hull goes), as close to the end of its pages as that allows.

    Raises NoContent for a plan without content.
    """

    def __init__(self, plan: Plan, *, shift_bytes: int = 0, gap_bytes: int = 0) -> None:
        self.plan = plan
        self.itemsize = plan.itemsize
        base_strides = _packed_strides(plan, plan.itemsize + gap_bytes)
        content = plan.content()
        length = plan.nbytes + plan.element_count * gap_bytes
        super().__init__(_ROOM_BYTES + length + 2 * _ALIGNMENT_BYTES + abs(shift_bytes))
        last = self.high - length - max(shift_bytes, 0)
        start = last - last % _ALIGNMENT_BYTES + shift_bytes
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

    @property
    def is_row_major(self) -> bool:
        return is_contiguous(self.shape, self.strides, self.itemsize, "C")

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


def _packed_strides(plan: Plan, distance: int) -> tuple[int, ...]:
    """Byte strides in the order of the plan's layout map, with elements at that distance."""
    layout = plan.layout if plan.layout is not None else range(plan.ndim)
    slowest_first = sorted(range(plan.ndim), key=lambda axis: layout[axis])
    strides, step = [0] * plan.ndim, distance
    for axis in reversed(slowest_first):
        strides[axis] = step
        step *= max(plan.shape[axis], 1)
    return tuple(strides)
