"""The callbacks in machine code: what they count and release, on threads, and with an exception in
flight.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from gridbuf_conformance.abi.machine_code import call, code_pages, framed, load_argument
from gridbuf_conformance.abi.maps import AddressMap
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer
from gridbuf_conformance.exports import native
from gridbuf_conformance.exports.memory import Block
from gridbuf_conformance.plan import Plan

THREADS, CALLS = 4, 5000


def called(address: int, struct: ctypes.Structure) -> None:
    """Calls a deleter as foreign code does: without the GIL."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(struct))


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="ctypes has to do",
)
def test_the_callbacks_are_machine_code() -> None:
    assert native.IS_NATIVE
    for address in (native.deleter_address(), native.python_deleter_address()):
        assert AddressMap().covers(address, address + 4, "x")


def test_calls_on_several_threads_are_all_counted() -> None:
    frame, deleter = native.Frame(), native.deleter_address()

    def work(_: int) -> None:
        for _ in range(CALLS):
            called(deleter, frame)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert frame.calls == THREADS * CALLS
    assert bytes(frame.room) == bytes(native.ROOM_BYTES)
    assert frame.owner is None


class Owner:
    def __init__(self, finalized: list[str]) -> None:
        self.finalized = finalized

    def __del__(self) -> None:
        self.finalized.append("finalized")


def test_the_python_deleter_releases_its_owner_once() -> None:
    finalized: list[str] = []
    frame, owner = native.Frame(), Owner(finalized)
    frame.owner = id(owner)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    del owner
    assert finalized == []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(called, native.python_deleter_address(), frame).result()
    assert (finalized, frame.owner, frame.calls) == (["finalized"], None, 1)


@pytest.mark.skipif(not native.IS_NATIVE, reason="a deleter in Python loses the exception")
@pytest.mark.parametrize("deleter", [native.deleter_address, native.python_deleter_address])
def test_an_exception_in_flight_is_kept(deleter: Callable[[], int]) -> None:
    """A function in machine code sets an exception, then calls the deleter."""
    finalized: list[str] = []
    frame, owner, text = native.Frame(), Owner(finalized), b"in flight"
    frame.owner = id(owner)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    del owner
    code = load_argument(0, id(KeyError))
    code += load_argument(1, ctypes.cast(text, ctypes.c_void_p).value or 0)
    code += call(ctypes.pythonapi.PyErr_SetString)
    code += load_argument(0, ctypes.addressof(frame)) + call(deleter())
    pages = code_pages(mmap.PAGESIZE)
    assert pages is not None
    with pytest.raises(KeyError, match="in flight"):
        ctypes.PYFUNCTYPE(None)(pages.place(framed(code)))()
    assert frame.calls == 1
    assert finalized == (["finalized"] if frame.owner is None else [])


def test_the_last_release_closes_the_pages() -> None:
    block = Block(Plan(shape=(3,)))
    ledger = native.Ledger(2, block.low, block.high - block.low)
    frames = [native.ViewFrame(0, ctypes.pointer(ledger)) for _ in range(2)]
    views = [PyBuffer(internal=ctypes.addressof(frame)) for frame in frames]
    release = cast("Callable[[int, int], None]", native.release_function())

    release(0, ctypes.addressof(PyBuffer()))
    release(0, ctypes.addressof(views[0]))
    assert AddressMap().covers(block.low, block.high, "w")
    assert (ledger.open, [frame.released for frame in frames]) == (1, [1, 0])

    release(0, ctypes.addressof(views[1]))
    assert not AddressMap().covers(block.low, block.high, "r")
    assert (ledger.open, [frame.released for frame in frames]) == (0, [1, 1])
    block.allow()


def test_a_ledger_without_pages_only_counts() -> None:
    ledger = native.Ledger(1, None, 0)
    frame = native.ViewFrame(0, ctypes.pointer(ledger))
    view = PyBuffer(internal=ctypes.addressof(frame))
    release = cast("Callable[[int, int], None]", native.release_function())
    release(0, ctypes.addressof(view))
    assert (ledger.open, frame.released) == (0, 1)
