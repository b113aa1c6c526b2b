"""Defects that only several threads at the same time can show. Each pauses where another thread can
come between.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer
from gridbuf_conformance.plan import Plan

from .mutant import faulty
from .reference import Block, ExportsArrayInterface, ExportsBuffer, ExportsDLPack, Memory

_PAUSE_S = 0.05
_PLANS = (Plan(shape=(3,), fill=1),)


class _Alone:
    """Whether another thread is inside, too."""

    def __init__(self, pause_s: float = _PAUSE_S) -> None:
        self._inside = 0
        self._pause_s = pause_s

    def __enter__(self) -> bool:
        self._inside += 1
        if threading.active_count() > 2:
            time.sleep(self._pause_s)
        return self._inside == 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1


@faulty(weakens=("XA-13",), plans=_PLANS)
class DictOfTwoThreads(ExportsArrayInterface, Memory):
    """Two threads that read the dict at the same time write it into one another's."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._alone = _Alone()

    def array_interface(self) -> dict:
        with self._alone as is_alone:
            answer = super().array_interface()
            return answer if is_alone else {**answer, "shape": (*answer["shape"], 1)}


@faulty(weakens=("XA-13",), plans=_PLANS)
class CapsuleForOneThreadOnly(ExportsDLPack, Memory):
    """A second thread is refused while a first one is in `__dlpack__`."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._alone = _Alone()

    def __dlpack__(self, **keywords: Any) -> object:
        with self._alone as is_alone:
            if not is_alone:
                raise RuntimeError("another thread is exporting")
            return super().__dlpack__(**keywords)


@faulty(weakens=("XA-13",), plans=_PLANS)
class CountsExportsWrongly(Memory, ExportsBuffer):
    """Exports of two threads at the same time are counted wrongly: `resize` stays refused
    (CPython's `array.array`).
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._exports = 0
        self._alone = _Alone(1e-3)

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        super().get_buffer(view, flags)
        with self._alone as is_alone:
            self._exports += 1 if is_alone else 2

    def release_buffer(self, view: PyBuffer) -> None:
        super().release_buffer(view)
        self._exports -= 1

    def resize(self, *shape: int) -> None:
        if self._exports:
            raise BufferError("memory that is exported cannot be resized")
        self.block = Block(4096)
        self.address = self.block.low


@faulty(weakens=("XA-13",), plans=_PLANS)
class DiesOfASecondThread(ExportsArrayInterface, Memory):
    """A second thread in the getter ends the process."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._alone = _Alone()

    def array_interface(self) -> dict:
        with self._alone as is_alone:
            if not is_alone:
                os.abort()
            return super().array_interface()
