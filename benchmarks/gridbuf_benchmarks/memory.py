"""The memory that copies and fills are measured on: one block to read and one to write, the same for all contenders.

Both are mapped once, on huge pages where the system has them, and touched before anything is timed: no sample
contains a page fault that a contender did not cause itself, and none has better pages than another. A block
grows when a case needs more, and `release` gives both back, so that they are not there when allocation is measured.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gridbuf_benchmarks.placement import Placement

__all__ = [
    "POISON",
    "Role",
    "array",
    "available_bytes",
    "block",
    "facts",
    "poison",
    "release",
    "write_numbers",
]

Role = Literal["source", "target"]

POISON = 0xA5
"""What every byte of a target is before it is written; padding must still be that afterwards."""

_HUGE_PAGE_BYTES = 2 << 20
_GRANULE_BYTES = 64 << 20
_MIX = np.uint64(0x9E3779B97F4A7C15)


class _Block:
    """A mapping on a border of huge pages, touched; `bytes` is all of it."""

    def __init__(self, size_bytes: int) -> None:
        # Private: Python's mappings are shared otherwise, and those get no huge pages.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._map = mmap.mmap(-1, size_bytes + _HUGE_PAGE_BYTES, flags=flags)
        self._map.madvise(mmap.MADV_HUGEPAGE)
        raw = np.frombuffer(self._map, dtype=np.uint8)
        start = -int(raw.ctypes.data) % _HUGE_PAGE_BYTES
        self.bytes: npt.NDArray[np.uint8] = raw[start : start + size_bytes]
        self.bytes[:: mmap.PAGESIZE] = 0

    @property
    def address(self) -> int:
        return int(self.bytes.ctypes.data)


_blocks: dict[Role, _Block] = {}


def available_bytes() -> int:
    """Memory that can be had without swapping, what the blocks hold already included."""
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    free = next(int(words[1]) * 1024 for words in fields if words[0] == "MemAvailable:")
    return free + sum(block.bytes.nbytes for block in _blocks.values())


def block(role: Role, size_bytes: int) -> npt.NDArray[np.uint8]:
    """The first bytes of the block to read or to write. Of the former, no two words of 8 bytes are equal."""
    wanted = max(1, -(-size_bytes // _GRANULE_BYTES)) * _GRANULE_BYTES
    if role not in _blocks or _blocks[role].bytes.nbytes < wanted:
        _blocks.pop(role, None)
        _blocks[role] = _Block(wanted)
        if role == "source":
            _scramble(_blocks[role].bytes)
    return _blocks[role].bytes[:size_bytes]


def _scramble(where: npt.NDArray[np.uint8]) -> None:
    words = where.view(np.uint64)
    chunk = 1 << 17  # stays in the cache
    for begin in range(0, len(words), chunk):
        some = words[begin : begin + chunk]
        some[...] = np.arange(begin, begin + len(some), dtype=np.uint64)
        some *= _MIX


def array(role: Role, shape: Sequence[int], placement: Placement) -> npt.NDArray[Any]:
    """An array of this shape in the block, lying as asked."""
    memory = block(role, placement.span_bytes(shape))
    return np.ndarray(
        tuple(shape),
        placement.dtype,
        buffer=memory,
        offset=placement.offset_bytes,
        strides=placement.strides_bytes(shape),
    )


def write_numbers(dtype: str, size_bytes: int) -> None:
    """Fills the block to read with numbers of this type that can be converted; else it holds any bits."""
    words = block("source", size_bytes)[
        : size_bytes // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize
    ]
    numbers = words.view(dtype)
    some = np.arange(131071, dtype=dtype) + np.dtype(dtype).type(0.5)
    for begin in range(0, len(numbers), len(some)):
        numbers[begin : begin + len(some)] = some[: len(numbers) - begin]


def poison(size_bytes: int) -> None:
    """Sets the first bytes of the block to write to POISON."""
    block("target", size_bytes).fill(POISON)


def release() -> None:
    """Gives both blocks back, as soon as no array lies in them any more."""
    _blocks.clear()


def facts() -> dict[str, Any]:
    """The size of the blocks in use, and of the pages that most of them lie on; for the result."""
    held = sum(one.bytes.nbytes for one in _blocks.values())
    huge_bytes, mapped_bytes = _pages({one.address for one in _blocks.values()})
    fraction = huge_bytes / mapped_bytes if mapped_bytes else 0.0
    return {
        "block_bytes": held,
        "huge_page_fraction": round(fraction, 3),
        "page_bytes": _HUGE_PAGE_BYTES if fraction > 0.5 else mmap.PAGESIZE,
    }


def _pages(addresses: set[int]) -> tuple[int, int]:
    """How many bytes of the mappings at these addresses are on huge pages, and how many they have.

    Both 0 where the system does not tell.
    """
    found = {"AnonHugePages:": 0, "Size:": 0}
    inside = False
    try:
        lines = Path("/proc/self/smaps").read_text().splitlines()
    except OSError:
        return 0, 0
    for line in lines:
        head, *rest = line.split()
        if "-" in head and not head.endswith(":"):
            low, high = (int(part, 16) for part in head.split("-"))
            inside = any(low <= address < high for address in addresses)
        elif inside and head in found:
            found[head] += int(rest[0]) * 1024
    return found["AnonHugePages:"], found["Size:"]
