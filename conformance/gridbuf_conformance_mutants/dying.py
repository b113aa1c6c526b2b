"""Producers that die, hang, or speak out of turn: the run must go on and say so."""

from __future__ import annotations
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer

import ctypes
import os
import sys
import time
import weakref

from gridbuf_conformance.plan import Plan

from .memory import Block
from .mutant import Mutant, faulty
from .reference import Array, Exports, Memory


def _segfault() -> None:
    """Read a page that must not be accessed."""
    block = Block(1)
    ctypes.string_at(block.high, 1)


def _is_struck(array: Memory) -> bool:
    """These defects affect only complex arrays of two axes: few deaths, and work for shrinking."""
    return array.ndim >= 2 and array.element.kind == "c"


def _is_fatal(plan: Plan) -> bool:
    """The same for plans."""
    return plan.ndim >= 2 and plan.dtype.startswith("complex")


@faulty("XA-18")
class SegfaultInTheGetter(Array):
    """Reading `__array_interface__` of a complex 2-d array is a segmentation fault."""

    def array_interface(self) -> dict:
        if _is_struck(self):
            _segfault()
        return super().array_interface()


@faulty("XA-18")
class HangInTheGetter(Array):
    """Reading `__array_interface__` of a complex 2-d array never returns."""

    def array_interface(self) -> dict:
        while _is_struck(self):
            time.sleep(1)
        return super().array_interface()


@faulty(advises=("XA-18",))
class OSErrorInTheGetter(Array):
    """Reading `__array_interface__` of a complex 2-d array raises OSError."""

    def array_interface(self) -> dict:
        if _is_struck(self):
            raise OSError("the file of this array is gone")
        return super().array_interface()


@faulty("DP-03")
class SegfaultInTheExport(Exports.DLPack):
    """`__dlpack__` of a complex 2-d array is a segmentation fault."""

    def export(self, versioned: bool, *, copied: bool) -> object:
        if _is_struck(self):
            _segfault()
        return super().export(versioned, copied=copied)


@faulty("PB-02")
class SegfaultInTheRequest(Exports.Buffer):
    """A buffer request to a complex 2-d array is a segmentation fault."""

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        if _is_struck(self):
            _segfault()
        super().get_buffer(view, flags)


class SegfaultInProduce(Mutant):
    """Making a complex 2-d array is a segmentation fault."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        if _is_fatal(plan):
            _segfault()
        return super().produce(plan)


class HangInProduce(Mutant):
    """Making a complex 2-d array never returns."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        while _is_fatal(plan):
            time.sleep(1)
        return super().produce(plan)


class ExitInProduce(Mutant):
    """Making a complex 2-d array ends the process with success."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        if _is_fatal(plan):
            os._exit(0)
        return super().produce(plan)


class RaisesInProduce(Mutant):
    """Making a complex 2-d array raises KeyError instead of declining."""

    breaks = frozenset({"GT-20"})

    def produce(self, plan: Plan) -> object:
        if _is_fatal(plan):
            raise KeyError("layout")
        return super().produce(plan)


class CrashesOnTheTenthPlan(Mutant):
    """The process dies on its tenth plan; the same plan passes in a fresh process."""

    breaks = frozenset({"GT-20"})

    def __init__(self) -> None:
        self.seen: set[Plan] = set()

    def produce(self, plan: Plan) -> object:
        self.seen.add(plan)
        if len(self.seen) >= 10:
            os._exit(3)
        return super().produce(plan)


class SegfaultAtTheEnd(Mutant):
    """Dropping a complex 2-d array is a segmentation fault."""

    breaks = frozenset({"XA-11"})

    def produce(self, plan: Plan) -> object:
        array = super().produce(plan)
        if _is_fatal(plan):
            weakref.finalize(array, _segfault)
        return array


class Chatty(Mutant):
    """Prints to both streams and reads standard input: unusual, but not a defect."""

    breaks = frozenset()

    def produce(self, plan: Plan) -> object:
        print("producing", plan, flush=True)
        os.write(1, b"\x00\x00\x00\x08{}{}{}{}")
        print("producing", plan, file=sys.stderr, flush=True)
        sys.stdin.read()
        return super().produce(plan)
