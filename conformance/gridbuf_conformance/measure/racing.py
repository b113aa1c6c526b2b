"""Info on eight threads that export one object at once. Only the profile `threads` asks for it.

What threads meet depends on the load of the machine. An object that is right gets the same info
under any load; one that is wrong may get it, too. So all is ROBUST, and each object of a few plans
is tried.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from ..abi.memory import Memory
from ..interfaces.buffer_protocol.pybuffer import REQUESTS, request
from ..info import ArrayInfo, RaceInfo
from ..info.steps import Stage, only
from ..info.values import attempt
from ..plan.producer import is_declined
from .resizing import resize_info

THREADS = 8
_REPEATS = 50
_MEETING_S = 5.0
_SWITCH_S = 1e-5
"""How often threads take turns where there is a GIL."""

_T = TypeVar("_T")


def race_info(
    read: Callable[[], ArrayInfo], again: Callable[[], Any] | None, memory: Memory
) -> RaceInfo:
    """What threads read, and what resizing does to objects that all exported and gave back."""
    with only(Stage.RACE):
        infos = at_once(read)
        resizes = {} if again is None else resize_info(partial(_raced, again), memory)
    return RaceInfo(infos, resizes)


def at_once(call: Callable[[], _T], threads: int = THREADS) -> list[_T]:
    """The results of a function that each of several threads calls. They start together."""
    barrier = threading.Barrier(threads)

    def called(_: int) -> _T:
        attempt(partial(barrier.wait, _MEETING_S))
        return call()

    with _short_turns(), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(called, range(threads)))


@contextmanager
def _short_turns() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def _raced(again: Callable[[], Any]) -> Any:
    """A fresh object whose memory all threads have exported and given back many times."""
    fresh = again()
    if not is_declined(fresh) and attempt(lambda: memoryview(fresh).release())[1] is None:
        at_once(partial(_export_and_give_back, fresh))
    return fresh


def _export_and_give_back(obj: Any) -> None:
    for _ in range(_REPEATS):
        attempt(lambda: memoryview(obj).release())
    for flags in REQUESTS.values():
        attempt(lambda: request(obj, flags).release())  # noqa: B023 (called at once)
