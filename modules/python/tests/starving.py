"""Run in a child process by test_no_memory.py: every allocation of every operation fails once, one after the other.

Prints one line per operation: its name and how many allocations it was denied. Ends with an exception where an operation
answered with anything but a MemoryError, left a block behind, or wrote to one that it had freed. `python` denies Python's own allocations, `native` those
of the extension, which needs failing_malloc.c preloaded.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
from collections.abc import Callable
from typing import Any

import gridbuf
import gridbuf.storage
import gridbuf.testing
import numpy as np
from abi import DLTensor, ManagedVersioned, exchange_table
from gridbuf import _core

# What is kept of freed blocks would serve where memory is to be denied.
gridbuf.memory.configure(cache_limit_bytes=0)

TABLE = exchange_table(gridbuf.Buffer)
BUFFER = gridbuf.ones((3, 4, 5), layout=(2, 0, 1), alignment_size=64).base
ARRAY = np.ones((3, 4), "f4")
PICKLED = pickle.dumps(BUFFER)
TARGET, NUMBERS, MASK = np.zeros((3, 4), "f8"), np.ones((4, 3), ">f4").T, np.eye(3, 4) > 0
TEXTS = np.array(["1", "2", "3", "4"])


def exchange() -> None:
    out = ctypes.c_void_p()
    TABLE.from_object(BUFFER, ctypes.byref(out))
    back = ctypes.py_object()
    TABLE.to_object(out.value, ctypes.byref(back))
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(back.value))


def abandoned_export() -> None:
    out = ctypes.c_void_p()
    TABLE.from_object(BUFFER, ctypes.byref(out))
    managed = ManagedVersioned.from_address(out.value or 0)
    managed.deleter(ctypes.addressof(managed))


def copy_to_device() -> None:
    with gridbuf.testing.emulated_device():
        try:
            buffer = gridbuf.allocate((3, 4), memory="device")
            gridbuf.copyto(buffer, NUMBERS, where=MASK)
            gridbuf.copyto(buffer, TARGET)
            del buffer
        finally:  # What is on its way keeps the memory that it was staged in.
            gridbuf.testing.synchronize()


def on_the_device() -> None:
    with gridbuf.testing.emulated_device():
        buffer = BUFFER.copy("device")
        buffer.__cuda_array_interface__
        buffer.__gt_data_interface__
        buffer.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
        del buffer
        gridbuf.testing.synchronize()


def ten_dimensions() -> None:
    """More dimensions than a list has entries outside the heap."""
    array = gridbuf.ones((2,) * 10, "f4", alignment_size=64)
    gridbuf.copyto(array, array.T[::-1])
    view = array.base.T[::-1, None]
    repr(view)
    view.copy().__dlpack__(max_version=(1, 0))
    gridbuf.storage.zeros((2,) * 10)[::-1].copy()


OPERATIONS: dict[str, Callable[[], Any]] = {
    "allocate": lambda: gridbuf.allocate((3, 4), "f4", backend="gt:cpu_ifirst", dims="JK"),
    "allocate pages": lambda: gridbuf.allocate((1 << 19,), alignment_size=4096),
    "empty": lambda: gridbuf.empty((3, 4)),
    "zeros": lambda: gridbuf.zeros((3, 4), alignment_size=96),
    "full": lambda: gridbuf.full((3, 4), 2.5, layout=(1, 0)),
    "empty_like": lambda: gridbuf.empty_like(ARRAY),
    "from_array": lambda: gridbuf.from_array(ARRAY.T),
    "copyto": lambda: gridbuf.copyto(TARGET, ARRAY.astype("f8").T[:, :1].T),
    "copyto with a cast": lambda: gridbuf.copyto(TARGET, NUMBERS),
    "copyto with a mask": lambda: gridbuf.copyto(memoryview(TARGET), NUMBERS, where=MASK),
    "copyto with an overlap": lambda: gridbuf.copyto(TARGET[1:], TARGET[:-1, ::-1]),
    "copyto by NumPy": lambda: gridbuf.copyto(TARGET, TEXTS, casting="unsafe"),
    "copyto of one number": lambda: gridbuf.copyto(TARGET, 3),
    "copyto of a bad shape": lambda: refused(lambda: gridbuf.copyto(TARGET, [1, 2])),
    "copyto to a device": copy_to_device,
    "plan": lambda: gridbuf.plan((3, 4, 5), layout=(2, 0, 1)),
    "draw": lambda: BUFFER.plan.draw() if BUFFER.plan else None,
    "copy": BUFFER.copy,
    "views": lambda: BUFFER[1:, ::-1].T.toreadonly(),
    "element": lambda: BUFFER[1, 2, 3],
    "repr": lambda: repr(BUFFER),
    "memoryview": lambda: memoryview(BUFFER),
    "to_numpy": BUFFER.to_numpy,
    "array interface": lambda: BUFFER.__array_interface__,
    "array struct": lambda: BUFFER.__array_struct__,
    "data interface": lambda: BUFFER.__gt_data_interface__,
    "dlpack": lambda: BUFFER.__dlpack__(),
    "dlpack versioned": lambda: BUFFER.__dlpack__(max_version=(1, 0), copy=True),
    "exchange": exchange,
    "exchange out": abandoned_export,
    "borrow": lambda: TABLE.borrow(BUFFER, ctypes.byref(DLTensor())),
    "pickle": lambda: BUFFER.__reduce_ex__(2),
    "unpickle": lambda: pickle.loads(PICKLED),
    "a bad shape": lambda: refused(lambda: gridbuf.empty((2**62, 2**62))),
    "a bad keyword": lambda: refused(lambda: gridbuf.empty(3, banana=1)),  # type: ignore[call-overload]
    "a bad buffer request": lambda: refused(lambda: BUFFER.__dlpack__(dl_device=(9, 9))),
    "device": on_the_device,
    "ten dimensions": ten_dimensions,
}

MOST_ALLOCATIONS = 2000
# Without memory ctypes raises its errors, and Python's look-up of an attribute an AttributeError. pybind11 does not check
# whether there was memory for the name of a keyword that is passed (`keyword_index`): no cold function with named parameters is
# called by keyword here.
NOT_OURS = ("exchange", "exchange out", "borrow", "unpickle")
# Pickle makes a new dtype each time, and a bounded cache keeps a record for it.
# The emulated device keeps addresses of freed memory closed for a while, 4096 ranges at most.
CACHING = ("unpickle", "copyto to a device", "device")


def refused(operation: Callable[[], Any]) -> None:
    """An operation that is an error, the making of whose message is denied memory."""
    try:
        operation()
    except (ValueError, TypeError, BufferError):
        return


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
    library.failing_malloc_watch.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    library.failing_malloc_arm.argtypes = [ctypes.c_int64]
    library.failing_malloc_watch(*extent_of("_core.so"))
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
