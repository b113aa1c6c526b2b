"""A separate process that answers messages, and what its watcher survives: a death, a hang, an
answer that is none.

Judging and the scoreboard use it. `Process` is one process; `Restarted` starts another one after
each death, and asks again before a death is believed.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..info import steps
from ..targets import CannotLoad
from . import messages

START_LIMIT_S = 120.0
"""How long an import may take: large libraries on a cold disk."""
_PATIENCE = 3
"""A request that was not answered in time is sent again with this many times its time."""
_EXIT_LIMIT_S = 5.0
_ABORT_LIMIT_S = 1.0
_TAIL_BYTES = 16_384
_NOT_A_MESSAGE = "wrote something else than its answers to the suite's socket"
_COMMAND = (
    "import importlib, json, sys; setup = json.loads(sys.argv.pop(1)); "
    "sys.path[:] = setup.pop('path'); "
    "importlib.import_module(setup.pop('module')).serve(**setup)"
)
"""It takes this process's import path before anything is imported."""


@dataclass(frozen=True)
class Ending:
    """How a process ended instead of an answer.

    `kind` is "crash" or "timeout", `what` says it in words, `step` is where it was, `frame` the
    innermost function of the library there, and `output` the end of what the process wrote.
    """

    kind: str
    what: str
    step: str = ""
    frame: str = ""
    output: str = ""

    @property
    def reason(self) -> str:
        """One sentence without paths."""
        place = f" at step {self.step}" + (f", in {self.frame}" if self.frame else "")
        return f"the process {self.what}{place}"


T = TypeVar("T")


class Restarted(Generic[T]):
    """A process that is started at the first request and after each death. `start` gives it."""

    def __init__(self, start: Callable[[], Process[T]]) -> None:
        self._start = start
        self._process: Process[T] | None = None
        self._confirmed: set[Hashable] = set()

    @property
    def is_alive(self) -> bool:
        return self._process is not None

    def started(self) -> Process[T]:
        """The process; raises what `start` raises."""
        if self._process is None:
            self._process = self._start()
        return self._process

    def send(self, request: Mapping[str, Any], limit_s: float) -> None:
        """Sends a request, for which `receive` waits at most `limit_s` seconds from now."""
        self.started().request(request, limit_s)

    def receive(self) -> T | Ending:
        """The answer, or how the process ended, which is then gone."""
        answer = self.started().reply()
        if isinstance(answer, Ending):
            self.discard()
        return answer

    def again(
        self, first: Ending, request: Mapping[str, Any], limit_s: float, cause: Hashable = None
    ) -> T | Ending:
        """What the same request came to in a fresh process. Once a death of the same cause (without
        one: at the same step) has repeated, `first` is believed at once. A hang gets more time,
        because the machine may have been busy."""
        if (first.step if cause is None else cause) in self._confirmed:
            return first
        self.send(request, (_PATIENCE if first.kind == "timeout" else 1) * limit_s)
        second = self.receive()
        if isinstance(second, Ending):
            self._confirmed.add(second.step if cause is None else cause)
        return second

    def leave(self) -> Ending | None:
        """Lets the process end; the ending if it died while it did."""
        process, self._process = self._process, None
        return process.leave() if process is not None else None

    def discard(self) -> None:
        """Ends the process at once."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()


class Process(Generic[T]):
    """One process: its socket, its output, its step page, and the ways it can end.

    `serve(socket_fd, slot_fd, **setup)` of `module` runs in it, in a fresh interpreter. It answers
    request 0 when it is ready, without having got it. `read` makes an answer of a message, and
    raises ValueError or the like for what is none.
    """

    def __init__(
        self,
        module: str,
        setup: Mapping[str, Any],
        read: Callable[[dict[str, Any]], T],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        _require_posix()
        with contextlib.ExitStack() as opened:
            ours, theirs = socket.socketpair()
            opened.callback(theirs.close)
            read_fd, write_fd = os.pipe()
            opened.callback(os.close, write_fd)
            self._slot_file = slot_file = tempfile.TemporaryFile()  # noqa: SIM115
            slot_file.truncate(steps.SLOT_BYTES)
            self._channel, self._output_fd = ours, read_fd
            self._number = 0
            self._tail = b""
            self._deadline = time.monotonic() + START_LIMIT_S
            self.read = read
            self.hello: Any = None  # what the first answer said, for those who want to keep it
            self._popen = _spawn(
                {"module": module, **setup},
                (theirs.fileno(), slot_file.fileno()),
                write_fd,
                {**(environment or {}), **os.environ},
            )
        os.set_blocking(read_fd, False)
        ours.setblocking(False)

    def request(self, message: Mapping[str, Any], limit_s: float) -> None:
        """Sends a request; that the process has died meanwhile is found by `reply`."""
        self._deadline = time.monotonic() + limit_s
        self._number += 1
        self._channel.setblocking(True)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            messages.send(self._channel, {**message, "number": self._number})
        self._channel.setblocking(False)

    def reply(self) -> T | Ending:
        """Waits for the answer, until the process dies or the time is over. A process that writes
        anything else to its socket counts as dead."""
        try:
            message = self._receive()
            if message is None:
                return self._died()
            if message.pop("number", None) != self._number:
                raise ValueError("not the answer to this request")
            return self.read(message)
        except TimeoutError:
            return self._timed_out()
        except (AttributeError, KeyError, TypeError, ValueError):
            return self._ended("crash", _NOT_A_MESSAGE)

    def leave(self) -> Ending | None:
        """Ends the process normally; returns an ending if it dies while it ends."""
        self._channel.close()
        try:
            code = self._wait_for_exit(_EXIT_LIMIT_S)
            return self._ended("crash") if code is not None and code < 0 else None
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends the process and all that it started; closes everything. You can call it twice."""
        if self._popen.returncode is None:
            # Not reaped yet, so its process id is still the id of the group, even if it has
            # ended.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
        self._channel.close()
        self._slot_file.close()
        self._close_output()

    def _receive(self) -> dict[str, Any] | None:
        """One message; None after a death. Raises TimeoutError, or ValueError for all else."""
        received = bytearray()
        wanted = messages.HEADER.size
        while len(received) < wanted:
            # Asked before the read: children of a dead process may hold its socket open, so that no
            # end of file comes, yet all it wrote can be read.
            dead = self._exit_code() is not None
            self._wait(0.0 if dead else 0.1)
            try:
                chunk = self._channel.recv(1 << 20)
            except ConnectionResetError:
                return None
            except BlockingIOError:
                if dead:
                    return None
                if time.monotonic() > self._deadline:
                    raise TimeoutError from None
                continue
            if not chunk:
                return None
            received += chunk
            if len(received) >= messages.HEADER.size:
                wanted = messages.HEADER.size + messages.body_bytes(received)
        return messages.decode(bytes(received[messages.HEADER.size :]))

    def _wait(self, at_most_s: float) -> None:
        """Waits for news, and takes in what the producer prints so that it never blocks on a full
        pipe.
        """
        poller = select.poll()
        if self._channel.fileno() >= 0:
            poller.register(self._channel, select.POLLIN)
        if self._output_fd >= 0:
            poller.register(self._output_fd, select.POLLIN)
        ready = poller.poll(at_most_s * 1000)
        if any(fd == self._output_fd for fd, _ in ready):
            self._drain()

    def _drain(self) -> None:
        """Keeps the end of the output; returns when nothing waits, or to let a flood be noticed."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                chunk = os.read(self._output_fd, 65_536) if self._output_fd >= 0 else b""
                if not chunk:
                    self._close_output()
                    return
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def _close_output(self) -> None:
        fd, self._output_fd = self._output_fd, -1
        if fd >= 0:
            os.close(fd)

    def _exit_code(self) -> int | None:
        """As `Popen.returncode`, without reaping: the process id stays ours until `kill`."""
        try:
            end = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # this program ignores SIGCHLD: the system has reaped it
            return 0
        if end is None:
            return None
        return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def _wait_for_exit(self, at_most_s: float) -> int | None:
        """Waits for the process to end, and reads the rest of its output."""
        deadline = time.monotonic() + at_most_s
        while (code := self._exit_code()) is None and time.monotonic() < deadline:
            self._wait(0.005)
        self._drain()
        return code

    def _died(self) -> Ending:
        self._channel.close()
        self._wait_for_exit(_EXIT_LIMIT_S)
        return self._ended("crash")

    def _timed_out(self) -> Ending:
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._popen.pid, signal.SIGABRT)
        self._wait_for_exit(_ABORT_LIMIT_S)
        return self._ended("timeout")

    def _ended(self, kind: str, what: str = "") -> Ending:
        step = steps.read(self._slot_file.fileno())
        text = self._tail.decode(errors="replace")
        if not what:
            what = "gave no answer in time" if kind == "timeout" else _ending(self._exit_code())
        return Ending(kind, what, step, _innermost_frame(text), text)


def _require_posix() -> None:
    """Raises CannotLoad where no process can be watched: Windows, and macOS before Python 3.13."""
    missing = [
        f"{module.__name__}.{name}"
        for module, name in ((os, "waitid"), (os, "killpg"), (select, "poll"))
        if not hasattr(module, name)
    ]
    if missing:
        raise CannotLoad(
            f"no separate process can be started here: {sys.platform} with Python "
            f"{platform.python_version()} lacks {', '.join(missing)}; "
            "pass --no-isolate (in a program: isolate=False), or use Linux"
        )


def _spawn(
    setup: dict[str, Any], fds: tuple[int, int], output_fd: int, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise CannotLoad("sys.executable is empty, so no worker can be started; pass isolate=False")
    path = [entry or os.getcwd() for entry in sys.path]
    setup = {**setup, "path": path, "socket_fd": fds[0], "slot_fd": fds[1]}
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND, json.dumps(setup)],
        stdin=subprocess.DEVNULL,
        stdout=output_fd,
        stderr=output_fd,
        pass_fds=fds,
        start_new_session=True,
        env=environment,
    )


def _ending(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"left with exit status {code}"
    with contextlib.suppress(ValueError):
        return f"died by {signal.Signals(-code).name}"
    return f"died by signal {-code}"


_FRAME = re.compile(r'^  File "(?P<path>.*)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)


_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PRODUCERS_FOLDER = os.path.join(_OWN_FOLDER, "producers", "")
_STANDARD_FOLDER = os.path.dirname(os.__file__) + os.sep


def _innermost_frame(text: str) -> str:
    """Where in the producer's code it happened, by faulthandler's last report: `file.py:12
    function`.

    An empty string if the suite's own reading was at work. Only the file's own name is kept:
    reports hold no absolute paths.
    """
    report = text.rpartition("(most recent call first):")[2]
    for frame in _FRAME.finditer(report):
        path = frame["path"]
        if path.startswith(_OWN_FOLDER) and not path.startswith(_PRODUCERS_FOLDER):
            return ""
        standard = path.startswith(_STANDARD_FOLDER) and "site-packages" not in path
        if not standard and not path.startswith("<"):
            return f"{os.path.basename(path)}:{frame['line']} {frame['name']}"
    return ""
