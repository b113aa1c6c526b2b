"""How arrays are placed in memory, and the two blocks that copies and fills are measured on.

All contenders read one block and write the other. Both are mapped once, on huge pages where the system has them, and
touched before anything is timed: a sample has no page faults that its contender did not cause, and no contender has
better pages. A block grows when a case needs more; `release` frees both before allocation is measured.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

LINE_BYTES = 64
"""Bytes of a cache line."""

POISON = 0xA5
"""Every byte of a target before it is written; padding must still have it afterwards."""

Role = Literal["source", "target"]

_HUGE_PAGE_BYTES = 2 << 20
_GRANULE_BYTES = 64 << 20


@dataclass(frozen=True)
class Placement:
    """The element type and the strides of an array, apart from its shape and its memory.

    `layout` is the layout map (rank of each dimension: 0 has the largest stride). `rows` are those of the contiguous
    dimension: "dense", or "lines" for an odd number of cache lines with at least one byte of padding, which avoids
    conflicts in the caches. With `step` > 1, only every step-th element of a row belongs to the array.
    """

    dtype: str
    layout: tuple[int, ...]
    rows: Literal["dense", "lines"] = "dense"
    step: int = 1
    offset_bytes: int = 0

    def strides_bytes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The stride of each dimension of an array of this shape."""
        strides = [0] * len(shape)
        stride = self.itemsize_bytes * self.step
        for rank in reversed(range(len(shape))):
            dim = self.layout.index(rank)
            strides[dim] = stride
            stride *= shape[dim]
            if rank == len(shape) - 1 and self.rows == "lines":
                stride = ((stride // LINE_BYTES + 1) | 1) * LINE_BYTES
        return tuple(strides)

    def span_bytes(self, shape: Sequence[int]) -> int:
        """The bytes of memory that it needs, the offset and the padding of the last row included."""
        extents = [extent * stride for extent, stride in zip(shape, self.strides_bytes(shape))]
        return self.offset_bytes + max(extents, default=self.itemsize_bytes)

    @property
    def itemsize_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def keeps_order(self) -> bool:
        """Whether the last dimension is the contiguous one, as in C order."""
        return not self.layout or self.layout[-1] == len(self.layout) - 1


_blocks: dict[Role, npt.NDArray[np.uint8]] = {}


def block(role: Role, size_bytes: int) -> npt.NDArray[np.uint8]:
    """The first bytes of the block to read or to write. In the source no two words of 8 bytes are equal."""
    wanted = max(1, -(-size_bytes // _GRANULE_BYTES)) * _GRANULE_BYTES
    if role not in _blocks or _blocks[role].nbytes < wanted:
        _blocks.pop(role, None)
        # Private: Python's mappings are shared by default, and shared ones get no huge pages.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        mapping = mmap.mmap(-1, wanted + _HUGE_PAGE_BYTES, flags=flags)
        mapping.madvise(mmap.MADV_HUGEPAGE)
        raw = np.frombuffer(mapping, dtype=np.uint8)
        start = -raw.ctypes.data % _HUGE_PAGE_BYTES
        _blocks[role] = raw[start : start + wanted]
        _blocks[role][:: mmap.PAGESIZE] = 0
        if role == "source":
            words = _blocks[role].view(np.uint64)
            for begin in range(0, len(words), 1 << 17):  # a chunk that stays in the cache
                some = words[begin : begin + (1 << 17)]
                some[...] = np.arange(begin, begin + len(some), dtype=np.uint64)
                some *= np.uint64(0x9E3779B97F4A7C15)
    return _blocks[role][:size_bytes]


def array(role: Role, shape: Sequence[int], placement: Placement) -> npt.NDArray[Any]:
    """An array of this shape and placement in the block."""
    return np.ndarray(
        tuple(shape),
        placement.dtype,
        buffer=block(role, placement.span_bytes(shape)),
        offset=placement.offset_bytes,
        strides=placement.strides_bytes(shape),
    )


def write_numbers(dtype: str, size_bytes: int) -> None:
    """Fills the source with numbers of this type that can be converted; without this it has arbitrary bits."""
    itemsize = np.dtype(dtype).itemsize
    numbers = block("source", size_bytes // itemsize * itemsize).view(dtype)
    some = np.arange(131071, dtype=dtype) + np.dtype(dtype).type(0.5)
    for begin in range(0, len(numbers), len(some)):
        numbers[begin : begin + len(some)] = some[: len(numbers) - begin]


def poison(size_bytes: int) -> None:
    """Sets the first bytes of the target to POISON."""
    block("target", size_bytes).fill(POISON)


def release() -> None:
    """Frees both blocks when no array uses them."""
    _blocks.clear()


def available_bytes() -> int:
    """Memory that is available without swapping, the blocks included."""
    (kib,) = re.findall(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
    return int(kib) * 1024 + sum(one.nbytes for one in _blocks.values())


def info() -> dict[str, Any]:
    """For the result: the size of the blocks in use, and the size of most of their pages."""
    addresses = [one.ctypes.data for one in _blocks.values()]
    kib = {"AnonHugePages": 0, "Size": 0}
    for mapping in re.split(r"\n(?=[0-9a-f]+-)", Path("/proc/self/smaps").read_text()):
        low, high = (int(part, 16) for part in mapping.split(maxsplit=1)[0].split("-"))
        if any(low <= address < high for address in addresses):
            for name, size in re.findall(r"^(AnonHugePages|Size): +(\d+)", mapping, re.MULTILINE):
                kib[name] += int(size)
    fraction = kib["AnonHugePages"] / kib["Size"] if kib["Size"] else 0.0
    return {
        "block_bytes": sum(one.nbytes for one in _blocks.values()),
        "huge_page_fraction": round(fraction, 3),
        "page_bytes": _HUGE_PAGE_BYTES if fraction > 0.5 else mmap.PAGESIZE,
    }
