"""A function in a fork of this process: what it corrupts ends with the fork, and it starts in
milliseconds.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

LIMIT_S = 10.0
"""What takes longer hangs."""

_Result = TypeVar("_Result")


class ForkDied(Exception):
    """The fork ended or hung without a result; run the function where a worker is watched."""


def in_fork(function: Callable[..., _Result], *arguments: object) -> _Result:
    """What the function returns; raises ForkDied."""
    forks = multiprocessing.get_context("fork")
    receiver, sender = forks.Pipe(duplex=False)
    process = forks.Process(target=_send, args=(sender, function, *arguments))
    process.start()
    sender.close()
    try:
        if receiver.poll(LIMIT_S):
            with contextlib.suppress(EOFError):
                return receiver.recv()
    finally:
        process.kill()
        process.join()
    raise ForkDied(f"the fork gave no result within {LIMIT_S} s, exit code {process.exitcode}")


def _send(sender: Connection, function: Callable[..., object], *arguments: object) -> None:
    faulthandler.disable()  # pytest's; a death is expected here
    gc.freeze()  # so that the many collections of a measurement look at new objects only
    sender.send(function(*arguments))
