"""Producers for the tests of known failures: one defect each, on some plans only."""

from __future__ import annotations

import ctypes
import os
import signal

from gridbuf_conformance.plan.producer import Capabilities, Unsupported


class _Exporting(bytearray):
    """Bytes that show an array interface, right but for what a subclass makes of it."""

    typestr = "|u1"

    @property
    def __array_interface__(self):
        address = ctypes.addressof(ctypes.c_char.from_buffer(self)) if self else 0
        honest = {"shape": (len(self),), "typestr": self.typestr, "version": 3}
        return self.changed({**honest, "data": (address, False)})

    def changed(self, interface):
        return interface


class Good:
    name = "good"
    made = _Exporting
    capabilities = Capabilities(
        dtypes=("uint8",),
        byteorders=("native",),
        readonly=(False,),
        min_ndim=1,
        max_ndim=1,
        max_extent=64,
        layouts="C",
    )

    def version(self):
        return "1.5.0"

    def produce(self, plan):
        return self.made(plan.content())


class _ShapeIsAList(_Exporting):
    def changed(self, interface):
        return {**interface, "shape": list(interface["shape"])} if len(self) > 2 else interface


class Faulty(Good):
    """Breaks AI-03 on arrays of more than two elements."""

    name = "faulty"
    made = _ShapeIsAList


class LaterNumPy(Faulty):
    """Has the name of a library with a shipped file, in a release after it."""

    name = "numpy"

    def version(self):
        return "99.5.5"


class _ShapeIsANumber(_Exporting):
    def changed(self, interface):
        return {**interface, "shape": 7} if len(self) > 2 else interface


class FaultyOtherwise(Good):
    """Breaks AI-03 on the same arrays, with another text."""

    name = "faulty"
    made = _ShapeIsANumber


class Fixed(Good):
    name = "faulty"


class Dying(Good):
    """Dies on five elements (GT-20)."""

    name = "dying"

    def produce(self, plan):
        if plan["shape"] == (5,):
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().produce(plan)


class DyingInTheEnd(Good):
    """Its process dies as it ends (XA-11), whatever was asked."""

    name = "late"

    def __init__(self):
        import atexit

        atexit.register(os.kill, os.getpid(), signal.SIGSEGV)


class Choosy(Good):
    """Declares two element types, and only ever makes one (GT-20)."""

    name = "choosy"
    capabilities = Capabilities(
        dtypes=("uint8", "int8"),
        byteorders=("native",),
        readonly=(False,),
        min_ndim=1,
        max_ndim=1,
        max_extent=64,
        layouts="C",
    )

    def produce(self, plan):
        if plan["dtype"] != "uint8":
            return Unsupported("uint8 only")
        return super().produce(plan)


class Able(Choosy):
    """Makes both by now, though not at every size."""

    def produce(self, plan):
        if plan["dtype"] != "uint8" and plan["shape"] in ((1,), (2,)):
            return Unsupported("not of this size")
        made = Good.produce(self, plan)
        made.typestr = {"uint8": "|u1", "int8": "|i1"}[plan["dtype"]]
        return made


def reversed_view(exporter):
    """A consumer that turns arrays of more than two elements around (DP-30)."""
    taken = memoryview(exporter)
    return taken[::-1] if taken.ndim == 1 and len(taken) > 2 else taken
