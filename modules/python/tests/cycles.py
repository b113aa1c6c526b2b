"""Allocates, exports, imports and drops in a loop, and says how much memory that cost.

`python cycles.py 1000000` is the long run (some ten seconds); test_lifetime.py runs a short one. Every cycle goes through all
ways out and back: buffer protocol, array interface and struct, DLPack capsules of both kinds, the exchange table, views.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from pathlib import Path

import gridbuf
import numpy as np
from abi import exchange_table

TABLE = exchange_table(gridbuf.Buffer)


def through_the_table(buffer: gridbuf.Buffer) -> gridbuf.Buffer:
    out, back = ctypes.c_void_p(), ctypes.py_object()
    TABLE.from_object(buffer, ctypes.byref(out))
    TABLE.to_object(out.value, ctypes.byref(back))
    result: gridbuf.Buffer = back.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))
    return result


def cycle(number: int) -> None:
    buffer = gridbuf.allocate((4, number % 7, 6), "f4", layout=(2, 0, 1), alignment_size=64)
    np.asarray(buffer)
    np.from_dlpack(buffer)
    buffer.__dlpack__()
    buffer.__array_interface__  # noqa: B018
    buffer.__array_struct__  # noqa: B018
    gridbuf.as_numpy(through_the_table(buffer)[1:])
    gridbuf.empty_like(buffer)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE


def grown_bytes(count: int) -> int:
    """How much memory `count` cycles left in use, after some to fill the caches."""
    for number in range(min(count, 10_000)):
        cycle(number)
    gc.collect()
    before = resident_bytes()
    for number in range(count):
        cycle(number)
    gc.collect()
    return resident_bytes() - before


if __name__ == "__main__":
    cycles = int(sys.argv[1])
    grown = grown_bytes(cycles)
    print(f"{cycles} cycles: {grown} bytes more in memory")
    sys.exit(grown > 4 << 20)
