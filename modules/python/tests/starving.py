"""Run in a child process by test_no_memory.py: every allocation of every operation fails once, one after the other.

Prints one line per operation: its name and how many allocations it was denied. Ends with an exception where an operation
answered with anything but a MemoryError, left a block behind, or wrote to one that it had freed. `python` denies Python's own allocations, `native` those
of the extension and libgridbuf, which needs failing_malloc.c preloaded.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

import gridbuf
from gridbuf import _core
from operations import OPERATIONS

# What is kept of freed blocks would serve where memory is to be denied.
gridbuf.memory.configure(cache_limit_bytes=0)

MOST_ALLOCATIONS = 2000
# Without memory ctypes raises its errors, and Python's look-up of an attribute an AttributeError. pybind11 does not check
# whether there was memory for the name of a keyword that is passed (`keyword_index`): no cold function with named parameters is
# called by keyword here.
NOT_OURS = ("exchange", "exchange out", "borrow", "unpickle")
# Pickle makes a new dtype each time, and a bounded cache keeps a record for it.
# The emulated device keeps addresses of freed memory closed for a while, 4096 ranges at most.
CACHING = ("unpickle", "copyto to a device", "device")


def starve(
    name: str, operation: Callable[[], Any], arm: Callable[[int], None], denied: Any
) -> None:
    for _ in range(3):  # Caches and spare objects are there before anything is counted.
        operation()
    for call in range(1, MOST_ALLOCATIONS):
        gc.collect()
        before = live_blocks()
        arm(call)
        error: BaseException | None = None
        try:
            operation()
        except BaseException as caught:  # noqa: BLE001 (judged below, when there is memory again)
            error = caught
        failures = denied()
        if error is not None and not isinstance(error, MemoryError):
            raise AssertionError(
                f"{name}, allocation {call}: {error!r} and no MemoryError"
            ) from error
        del error
        gc.collect()
        if written_after_free():
            raise AssertionError(f"{name}, allocation {call}: freed memory was written to")
        left = live_blocks() - before
        if left > 0 and name not in CACHING:
            raise AssertionError(f"{name}, allocation {call}: {left} blocks were left behind")
        if not failures:
            print(f"{name}: {call - 1}")
            return
    raise AssertionError(f"{name} takes more than {MOST_ALLOCATIONS} allocations")


def live_blocks() -> int:
    return _LIVE()


def written_after_free() -> int:
    return _WRITTEN()


def _no_count() -> int:
    return 0


_LIVE: Callable[[], int] = _no_count
_WRITTEN: Callable[[], int] = _no_count


def extent_of(path: str) -> tuple[int, int]:
    """The addresses of a library."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        ranges = [line.split()[0].split("-") for line in maps if line.rstrip().endswith(path)]
    return min(int(low, 16) for low, _ in ranges), max(int(high, 16) for _, high in ranges)


def starve_native() -> None:
    global _LIVE, _WRITTEN
    library = ctypes.CDLL(None)
    for function in ("failing_malloc_failures", "failing_malloc_live", "failing_malloc_written"):
        getattr(library, function).restype = ctypes.c_int64
    library.failing_malloc_watch.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
    library.failing_malloc_arm.argtypes = [ctypes.c_int64]
    for number, path in enumerate(("_core.so", "libgridbuf.so.0")):
        library.failing_malloc_watch(number, *extent_of(path))
    _LIVE, _WRITTEN = library.failing_malloc_live, library.failing_malloc_written

    def denied() -> int:
        failures: int = library.failing_malloc_failures()
        library.failing_malloc_arm(0)
        return failures

    for name, operation in OPERATIONS.items():
        starve(name, operation, library.failing_malloc_arm, denied)


def starve_python() -> None:
    import _testcapi

    for name, operation in OPERATIONS.items():
        if name in NOT_OURS:
            continue
        operation()
        starved = 0
        for call in range(1, 150):
            error: BaseException | None = None
            _testcapi.set_nomemory(call, call + 1)
            try:
                operation()
            except BaseException as caught:  # noqa: BLE001 (judged below, when there is memory again)
                error = caught
            _testcapi.remove_mem_hooks()
            # SystemError is CPython's own where there is no memory for a traceback, as int("x") shows.
            if error is not None and not isinstance(error, MemoryError | SystemError):
                raise AssertionError(f"{name}, allocation {call}: {error!r}") from error
            starved += error is not None
        print(f"{name}: {starved}")


if __name__ == "__main__":
    gc.freeze()  # Each allocation is followed by a collection: objects that exist by now stay.
    {"python": starve_python, "native": starve_native}[sys.argv[1]]()
    assert _core is not None
