"""Entries that work on the memory that all contenders share, and the yardsticks beside them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks import memory
from gridbuf_benchmarks.case import Entry, Work

__all__ = ["copy_entries", "copy_yardsticks", "fill_entries", "fill_yardsticks", "needed_bytes"]

_HALVES_FROM_BYTES = 256 << 10
"""Below, handing half of the work to another thread takes longer than doing it."""

_ONE_THREAD_TO_BYTES = 8 << 20
"""Above, one thread is never the faster."""


def needed_bytes(work: Work) -> int:
    """The memory of both blocks, with something to spare for what else is going on."""
    placements = [one for one in (work.source, work.target) if one is not None]
    largest = max(one.span_bytes(work.shape) for one in placements)
    return len(placements) * largest + (1 << 30)


def _arrays(work: Work) -> dict[str, Any]:
    """`src` and `dst`, as NumPy arrays, where the work has them."""
    found = {}
    # As much at once as the yardsticks need, who come later: a block that grows is another block.
    placements = [one for one in (work.source, work.target) if one is not None]
    spans = [one.span_bytes(work.shape) for one in placements]
    size_bytes = max([*spans, (work.bytes_moved or 0) // len(placements)])
    memory.block("target", size_bytes)
    if work.source is not None:
        memory.block("source", size_bytes)
        if work.source.dtype != work.dtype:
            memory.write_numbers(work.source.dtype, work.source.span_bytes(work.shape))
        found["src"] = memory.array("source", work.shape, work.source)
    if work.target is not None:
        found["dst"] = memory.array("target", work.shape, work.target)
    return found


def copy_entries(work: Work) -> tuple[Entry, ...]:
    """gridbuf's, NumPy's and PyTorch's copy from `src` to `dst`."""

    def arrays(module: ModuleType) -> dict[str, Any]:
        return {"copyto": module.copyto, **_arrays(work)}

    def tensors(module: ModuleType) -> dict[str, Any]:
        found = _arrays(work)
        tensors = {key: module.from_numpy(value) for key, value in found.items()}
        return {**tensors, "view": found["dst"]}

    return (
        Entry("gridbuf", "copyto(dst, src)", arrays, result="dst"),
        Entry("numpy", "copyto(dst, src)", arrays, result="dst"),
        Entry("torch", "dst.copy_(src)", tensors, result="view"),
    )


def copy_yardsticks(moved_bytes: int) -> tuple[Entry, ...]:
    """Copies of as many bytes from the begin of one block to that of the other: half of `moved_bytes`.

    `moved_bytes` counts those read and those written, as Work does. Of a conversion, a copy of the mean of both
    arrays moves as many.
    """
    count = moved_bytes // 2

    def blocks() -> dict[str, Any]:
        return {"src": memory.block("source", count), "dst": memory.block("target", count)}

    def addresses(module: ModuleType) -> dict[str, Any]:
        found = blocks()
        return {
            **found,
            "memcpy": module.memcpy,
            "wake_helper": module.wake_helper,
            "to": found["dst"].ctypes.data,
            "from_": found["src"].ctypes.data,
            "count": count,
        }

    def tensors(module: ModuleType) -> dict[str, Any]:
        found = blocks()
        # Words of 8 bytes, which PyTorch moves faster than single ones; the last few bytes do not matter.
        words = {key: value[: count // 8 * 8].view(np.int64) for key, value in found.items()}
        flat = {f"flat_{key}": module.from_numpy(value) for key, value in words.items()}
        return {**words, **flat}

    pair = "(src, dst)"
    found = []
    if count <= _ONE_THREAD_TO_BYTES:
        found.append(Entry("memcpy", "memcpy(to, from_, count, 1)", addresses, result=pair))
    if count >= _HALVES_FROM_BYTES:
        halves = "memcpy(to, from_, count, 2)"
        found += [
            Entry("memcpy_halves", halves, addresses, result=pair, setup="wake_helper()"),
            Entry("torch_copy", "flat_dst.copy_(flat_src)", tensors, result=pair),
        ]
    return tuple(found)


def fill_entries(work: Work) -> tuple[Entry, ...]:
    """gridbuf's, NumPy's and PyTorch's assignment of one element to all of `dst`."""
    assert work.values is not None
    element = np.asarray(work.values, dtype=work.dtype)

    def arrays(module: ModuleType) -> dict[str, Any]:
        return {"copyto": module.copyto, "element": element, **_arrays(work)}

    def tensors(module: ModuleType) -> dict[str, Any]:
        dst = _arrays(work)["dst"]
        return {"dst": module.from_numpy(dst), "view": dst, "value": element.item()}

    entries = [
        Entry("gridbuf", "copyto(dst, element)", arrays, result="dst"),
        Entry("numpy", "copyto(dst, element)", arrays, result="dst"),
    ]
    if element.dtype.names is None:  # tensors have no structures
        entries.append(Entry("torch", "dst.fill_(value)", tensors, result="view"))
    return tuple(entries)


def fill_yardsticks(count: int, *, own: bool = False) -> tuple[Entry, ...]:
    """Sets `count` bytes at the begin of the block to write; `own`: in memory of their own, touched before."""
    byte = 0x3F

    def target() -> Any:
        if own:
            return np.full(count, 1, dtype=np.uint8)
        return memory.block("target", count)

    def addresses(module: ModuleType) -> dict[str, Any]:
        dst = target()
        return {
            "memset": module.memset,
            "wake_helper": module.wake_helper,
            "to": dst.ctypes.data,
            "byte": byte,
            "count": count,
            "expected": np.full(1, byte, dtype=np.uint8),
            "dst": dst,
        }

    def tensors(module: ModuleType) -> dict[str, Any]:
        words = target()[: count // 8 * 8].view(np.float64)
        value = 1.5
        flat = {"flat": module.from_numpy(words), "value": value}
        return {**flat, "dst": words, "expected": np.full(1, value)}

    pair = "(expected, dst)"
    found = []
    if count <= _ONE_THREAD_TO_BYTES:
        found.append(Entry("memset", "memset(to, byte, count, 1)", addresses, result=pair))
    if count >= _HALVES_FROM_BYTES:
        halves = "memset(to, byte, count, 2)"
        found += [
            Entry("memset_halves", halves, addresses, result=pair, setup="wake_helper()"),
            Entry("torch_fill", "flat.fill_(value)", tensors, result=pair),
        ]
    return tuple(found)
