"""Calls in a fork of this process: a death, or a call that never returns, is an observation."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..info import wire

CAN_FORK = hasattr(os, "fork")
LIMIT_S = 2.0
"""How long a fork may take. The threads of a library do not exist in a fork, and a call that waits
for them hangs.
"""


def run_fork(answers: Callable[[], Iterable[Any]]) -> tuple[list[Any], str | None]:
    """Runs a function in a fork.

    Parameters
    ----------
    answers : callable
        It gives answers that JSON can hold. An error ends them.

    Returns
    -------
    tuple of list and (str or None)
        The answers until the end, and how the fork ended: the name of a signal, "", or None for a
        fork that hung.
    """
    receiver, sender = os.pipe()
    with warnings.catch_warnings():
        # of forks of processes with threads: a fork that hangs is ended
        warnings.simplefilter("ignore")
        pid = os.fork()
    if not pid:
        _be_the_fork(sender, answers)
    os.close(sender)
    text, is_whole = _read(receiver)
    os.close(receiver)
    if not is_whole:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    lines = [
        wire.decode(line.decode())
        for line in text.splitlines(keepends=True)
        if line.endswith(b"\n")
    ]
    if not is_whole:
        return lines, None
    return lines, signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""


def _be_the_fork(sender: int, answers: Callable[[], Iterable[Any]]) -> None:
    """Sends the answers and ends this process: nothing of it may run on."""
    try:
        faulthandler.disable()  # a death here is expected
        with contextlib.suppress(BaseException):
            for answer in answers():
                os.write(sender, wire.encode(answer).encode() + b"\n")
    finally:
        os._exit(0)


def _read(receiver: int) -> tuple[bytes, bool]:
    """Everything that the fork wrote, and whether it ended in time."""
    text, end = b"", time.monotonic() + LIMIT_S
    while (left := end - time.monotonic()) > 0 and select.select([receiver], [], [], left)[0]:
        part = os.read(receiver, 65536)
        if not part:
            return text, True
        text += part
    return text, False
