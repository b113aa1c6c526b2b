"""Producers for the tests of driver and run: a good one, and many that misbehave.

They are loaded by the worker, by path.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import stat
import struct
import sys
import time
from pathlib import Path

from gridbuf_conformance.plan.producer import Capabilities, Unsupported

_CODES = {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "int16": "h", "uint8": "B"}


class Good:
    """`array.array`: one dimension, writable, native byte order."""

    name = "good"
    capabilities = Capabilities(
        dtypes=tuple(_CODES),
        min_ndim=1,
        max_ndim=1,
        max_nbytes=2**20,
        byteorders=("native",),
        readonly=(False,),
    )

    def version(self):
        return "1.2"

    def produce(self, plan):
        return array.array(_CODES[plan["dtype"]], plan.content())


class Segfault(Good):
    def produce(self, plan):
        ctypes.string_at(0)


class SegfaultOnLongArrays(Good):
    """Dies from extent 3 on: what the smallest crashing plan must come down to."""

    def produce(self, plan):
        if plan["shape"][0] >= 3:
            ctypes.string_at(0)
        return super().produce(plan)


class LeavesQuietly(Good):
    def produce(self, plan):
        os._exit(0)


class Sleeps(Good):
    def produce(self, plan):
        time.sleep(1000)


class Slow(Good):
    """As on a busy machine: its first array takes more than a second."""

    slept_s = 0.0

    def produce(self, plan):
        if not self.slept_s:
            self.slept_s = 1.5
            time.sleep(self.slept_s)
        return super().produce(plan)


class Spins(Good):
    def produce(self, plan):
        while True:
            pass


class HangsInC(Good):
    """Holds the interpreter's lock: no signal handler of Python's would ever run."""

    def produce(self, plan):
        ctypes.PyDLL(None).usleep(10**9)


class CallsExit(Good):
    def produce(self, plan):
        sys.exit(3)


class _Acts(Good):
    """Makes what `Good` makes, and something else first."""

    def produce(self, plan):
        self.act()
        return super().produce(plan)


class ShrinksFiles(_Acts):
    def act(self):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                os.ftruncate(int(name), 0)


class ReplacesJson(_Acts):
    def act(self):
        json.dumps = json.loads = json.JSONEncoder.encode = lambda *_, **__: "{"


def _writing(message):
    """A producer that writes to every socket of its process: bytes, or what is sent as the body of
    a message.
    """

    def act(self):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    os.write(int(name), struct.pack("<Q", len(body)) + body)

    return type("_Writes", (_Acts,), {"act": act})


WritesNoJson = _writing(b"{")
WritesNoText = _writing(b"\xff")
WritesDeepLists = _writing(b"[" * 100_000)
WritesALongNumber = _writing(b'{"number": ' + b"9" * 5000 + b"}")
WritesAList = _writing([1])
WritesNoKind = _writing({"number": 1})
WritesAnAnswer = _writing({"kind": "unsupported", "reason": "forged"})
WritesNoObservation = _writing({"kind": "observation", "observation": 5, "number": 1})
WritesAnotherForm = _writing({"kind": "observation", "observation": {"live": []}, "number": 1})


class AnnouncesAHugeMessage(_Acts):
    def act(self):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    os.write(int(name), struct.pack("<Q", 2**62))


class ExitsInVersion(Good):
    def version(self):
        sys.exit(2)


class ExitsInCapabilities(Good):
    @property
    def capabilities(self):
        sys.exit(2)


class ExitsInDeviceTable(Good):
    def device_table(self):
        sys.exit(2)


class ExitsInApplyView(Good):
    @property
    def apply_view(self):
        sys.exit(2)


class Raises(Good):
    def produce(self, plan):
        raise RuntimeError(f"no luck with {plan['shape']} at 0x7f0012345678")


class OutOfMemory(Good):
    def produce(self, plan):
        raise MemoryError("no room")


class Declines(Good):
    capabilities = Capabilities()

    def produce(self, plan):
        return Unsupported("not today")


class DeclaresTooMuch(Good):
    """Says that it can make float32, and never does."""

    def produce(self, plan):
        if plan["dtype"] == "float32":
            return Unsupported("float32 is planned for next year")
        return super().produce(plan)


class Noisy(Good):
    """Writes to every stream, as print and below Python, before and while it works."""

    print("importing, noisily")

    def produce(self, plan):
        print("to standard output")
        print("to standard error", file=sys.stderr)
        os.write(1, b'{"kind":"observation"}\n')
        return super().produce(plan)


class Floods(Good):
    """Far more output than any pipe holds."""

    def produce(self, plan):
        for _ in range(64):
            os.write(1, b"x" * 1_000_000)
            os.write(2, b"y" * 1_000_000)
        return super().produce(plan)


class ClosesItsStreams(Good):
    def produce(self, plan):
        os.closerange(0, 3)
        return super().produce(plan)


class DiesOnce(Good):
    """Dies the first time that any process asks it; the test names the file that remembers."""

    def produce(self, plan):
        mark = Path(os.environ["DIES_ONCE_MARK"])
        if not mark.exists():
            mark.touch()
            os.abort()
        return super().produce(plan)


class LeavesAChild(Good):
    """Its child keeps the worker's socket and streams open after the worker has died."""

    def produce(self, plan):
        if os.fork() == 0:
            time.sleep(1000)
        os.abort()


class RaisesInGetter(Good):
    """The object's getter raises an exception other than AttributeError."""

    def produce(self, plan):
        return _Raising(plan)


class _Raising:
    def __init__(self, plan):
        self._data = plan.content()

    @property
    def __array_interface__(self):
        raise RuntimeError("not supported here")


class SegfaultInGetter(Good):
    def produce(self, plan):
        return _Crashing()


class _Crashing:
    @property
    def __array_interface__(self):
        ctypes.string_at(0)


class DiesAtExit(Good):
    """Good on every plan; its library crashes when the interpreter ends."""

    def __init__(self):
        self._trap = _Trap()


class _Trap:
    def __init__(self):
        import atexit

        atexit.register(os.abort)


class NoProducer:
    name = "none"


class RaisesInImport(Good):
    def __init__(self):
        raise OSError("the library's licence server is down")


class DiesInImport(Good):
    def __init__(self):
        os.abort()


class BadCapabilities(Good):
    capabilities = "float64 only"
