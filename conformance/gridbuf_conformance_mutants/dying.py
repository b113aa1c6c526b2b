"""Producers that take their process down, hold it up, or speak out of turn: the run must go on and say so."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import time

from gridbuf_conformance.plan import Plan

from .buffer_type import PyBuffer
from .memory import Block
from .mutant import Mutant, faulty
from .reference import Array, Memory, Offers


def _segfault() -> None:
    """Read a page that nobody may read."""
    block = Block(1)
    ctypes.string_at(block.high, 1)


def _is_struck(array: Memory) -> bool:
    """These faults strike only arrays with two axes and more, so that shrinking has something to do."""
    return array.ndim >= 2


@faulty("XA-18")
class SegfaultInTheGetter(Array):
    """Reading `__array_interface__` of a 2-d array is a segmentation fault."""

    def array_interface(self) -> dict:
        if _is_struck(self):
            _segfault()
        return super().array_interface()


@faulty("XA-18")
class HangInTheGetter(Array):
    """Reading `__array_interface__` of a 2-d array never returns."""

    def array_interface(self) -> dict:
        while _is_struck(self):
            time.sleep(1)
        return super().array_interface()


@faulty("XA-18")
class OSErrorInTheGetter(Array):
    """Reading `__array_interface__` of a 2-d array raises OSError."""

    def array_interface(self) -> dict:
        if _is_struck(self):
            raise OSError("the file of this array is gone")
        return super().array_interface()


@faulty("DP-03")
class SegfaultInTheExport(Offers.DLPack):
    """`__dlpack__` of a 2-d array is a segmentation fault."""

    def export(self, versioned: bool, *, copied: bool) -> object:
        if _is_struck(self):
            _segfault()
        return super().export(versioned, copied=copied)


@faulty("PB-02")
class SegfaultInTheRequest(Offers.Buffer):
    """A buffer request to a 2-d array is a segmentation fault."""

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        if _is_struck(self):
            _segfault()
        super().get_buffer(view, flags)


class SegfaultInProduce(Mutant):
    """Making a 2-d array is a segmentation fault."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        if plan.ndim >= 2:
            _segfault()
        return super().produce(plan)


class HangInProduce(Mutant):
    """Making a 2-d array never returns."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        while plan.ndim >= 2:
            time.sleep(1)
        return super().produce(plan)


class ExitInProduce(Mutant):
    """Making a 2-d array ends the process with success."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        if plan.ndim >= 2:
            os._exit(0)
        return super().produce(plan)


class RaisesInProduce(Mutant):
    """Making a 2-d array raises KeyError instead of declining."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        if plan.ndim >= 2:
            raise KeyError("layout")
        return super().produce(plan)


class CrashesOnce(Mutant):
    """Making a 2-d array kills every first process that tries; the next one gets through."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        marker = os.path.join(tempfile.gettempdir(), f"gridbuf-conformance-once-{os.getppid()}")
        if plan.ndim >= 2:
            if os.path.exists(marker):
                os.unlink(marker)
            else:
                with open(marker, "w"):
                    os._exit(3)
        return super().produce(plan)


@faulty("XA-11")
class SegfaultAtTheEnd(Array):
    """Dropping a 2-d array is a segmentation fault."""

    def __del__(self) -> None:
        if _is_struck(self):
            _segfault()


class Chatty(Mutant):
    """Prints to both streams and reads standard input: a nuisance, and no fault."""

    breaks = frozenset()

    def produce(self, plan: Plan) -> object:
        print("producing", plan, flush=True)
        os.write(1, b"\x00\x00\x00\x08{}{}{}{}")
        print("producing", plan, file=sys.stderr, flush=True)
        sys.stdin.read()
        return super().produce(plan)
