"""One operation of each kind that gridbuf has, for tests that run all of them where memory, stack or time is short."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from typing import Any

import gridbuf
import gridbuf.storage
import gridbuf.testing
import numpy as np
from abi import DLTensor, ManagedVersioned, exchange_table

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


def refused(operation: Callable[[], Any]) -> None:
    """An operation that is an error, the making of whose message is denied memory."""
    try:
        operation()
    except (ValueError, TypeError, BufferError):
        return


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
