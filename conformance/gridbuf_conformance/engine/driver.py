"""The driver: starts a worker, gives it plans, and survives whatever the producer does to it.

`Worker` runs the producer in a spawned process, `LocalWorker` in this one (for debuggers and
sanitizers); both answer a plan with a `Result`. A worker that dies or hangs is an ordinary result
here:

- it died: the plan runs again in a fresh worker. If that dies too the result is "crash",
  else "unstable". (Once a death at some step has repeated, the next ones there are believed at
  once);
- it did not answer in time: "timeout". The process gets SIGABRT first, so that faulthandler says
  where it hangs, then SIGKILL with its whole process group.

The result names the step at which it happened, read from the page that the worker writes (`steps`).
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..info import ConsumerObservation, Observation, from_json, steps
from ..plan import Plan
from ..plan.consumer import Consumer, version_of
from ..plan.producer import Capabilities
from ..targets import CannotLoad, Target, WrongSide, load, name_of, shown
from . import messages
from .worker import COMMAND, answer, describe, devices_of

__all__ = ["CannotLoad", "Description", "LocalWorker", "Result", "Worker", "opened"]

START_LIMIT_S = 120.0
"""How long a producer's import may take: large libraries on a cold disk."""
PLAN_LIMIT_S = 10.0
_EXIT_LIMIT_S = 5.0
_PATIENCE = 3
"""A plan that hung runs again with this many times its time."""
_ABORT_LIMIT_S = 1.0
_TAIL_BYTES = 16_384
_NOT_A_MESSAGE = "wrote something else than its answers to the suite's socket"
_ANSWERS = frozenset({"observation", "unsupported", "raised", "error"})


@dataclass(frozen=True)
class Description:
    """The worker's description of the target; `side` is "producer" or "consumer", `takes` are the interfaces that
    a consumer is documented to take (None: not documented)."""

    name: str
    version: str
    python: str
    platform: str
    capabilities: Capabilities
    side: str = "producer"
    takes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Result:
    """The result of one plan.

    `kind`: "observation", "unsupported" (declined), "raised" (`produce` raised), "crash",
    "unstable", "timeout", or "error" (of the suite). `reason` says why in one sentence fit
    for reports; `step` is where a crash or timeout happened; `diagnosis` is the end of what the
    process wrote, for people only (it may hold paths and addresses).
    """

    kind: str
    observation: Observation | ConsumerObservation | None = None
    reason: str = ""
    step: str = ""
    diagnosis: str = ""


class LocalWorker:
    """The producer in this process. A crash or a hang ends the run; do not use it for gates."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._devices = devices_of(producer)
        self.description = _description(describe(producer))

    def run(self, plan: Plan, groups: Iterable[str]) -> Result:
        """Sends and measures one plan."""
        return Result(**answer(self._producer, _request(plan, groups), self._devices))

    def run_all(
        self, plans: Iterable[Plan], groups: Iterable[str]
    ) -> Iterator[tuple[Plan, Result]]:
        """`run` for each plan, in order."""
        groups = sorted(groups)
        for plan in plans:
            yield plan, self.run(plan, groups)

    def close(self) -> Result | None:
        """Nothing to end here."""
        return None

    def __enter__(self) -> LocalWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """The producer in a separate process, which restarts if it dies.

    Starting raises CannotLoad. Use it as a context manager, or call `close`: then no
    process and no file descriptor remains.
    """

    def __init__(self, target: Target | str, *, time_limit_s: float = PLAN_LIMIT_S) -> None:
        self._target = Target(target) if isinstance(target, str) else target
        self._time_limit_s = time_limit_s
        self._process: _Process | None = None
        self._confirmed: set[str] = set()
        self.description = self._started().description

    def run(self, plan: Plan, groups: Iterable[str]) -> Result:
        """Sends and measures one plan: one round trip, unless the process dies."""
        ((_, result),) = self.run_all([plan], groups)
        return result

    def run_all(
        self, plans: Iterable[Plan], groups: Iterable[str]
    ) -> Iterator[tuple[Plan, Result]]:
        """`run` for each plan, in order. The next plan is measured while the caller judges this
        one, but after a death the caller's view is waited for: it may want no more plans."""
        groups = sorted(groups)
        ahead = iter(plans)
        try:
            upcoming = self._sent(next(ahead, None), groups)
            while upcoming is not None:
                plan, result = upcoming, self._result(upcoming, groups)
                is_alive = self._process is not None
                upcoming = self._sent(next(ahead, None), groups) if is_alive else None
                yield plan, result
                if not is_alive:
                    upcoming = self._sent(next(ahead, None), groups)
        except BaseException:  # an interrupt, or the caller gave up with a plan still under way
            self._discard()
            raise

    def close(self) -> Result | None:
        """Lets the process end; a "crash" result with step "exit" if it died while it did."""
        process, self._process = self._process, None
        return process.leave() if process is not None else None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._discard()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self._discard()

    def _started(self) -> _Process:
        if self._process is None:
            self._process = _Process(self._target)
        return self._process

    def _discard(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _sent(self, plan: Plan | None, groups: list[str], patience: int = 1) -> Plan | None:
        if plan is not None:
            self._started().request(_request(plan, groups), patience * self._time_limit_s)
        return plan

    def _result(self, plan: Plan, groups: list[str]) -> Result:
        """The answer. After a death the plan runs again, unless a death at the same step has repeated before: a hang with
        more time, because the machine may have been busy.
        """
        first = self._once()
        if first.kind not in ("crash", "timeout") or first.step in self._confirmed:
            return first
        self._sent(plan, groups, _PATIENCE if first.kind == "timeout" else 1)
        second = self._once()
        if second.kind in ("crash", "timeout"):
            self._confirmed.add(second.step)
        if second.kind == "crash" or first.kind == "timeout":
            return second
        reason = f"{first.reason}; the same plan did not do so in a fresh process"
        return Result("unstable", reason=reason, step=first.step, diagnosis=first.diagnosis)

    def _once(self) -> Result:
        result = self._started().reply()
        if result.kind in ("crash", "timeout"):
            self._discard()
        return result


class _Process:
    """One worker process: its socket, its output, its step page, and the ways it can end."""

    def __init__(self, target: Target) -> None:
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
            self._popen = _spawn(target, theirs.fileno(), slot_file.fileno(), write_fd)
        os.set_blocking(read_fd, False)
        ours.setblocking(False)
        self.description = self._loaded(target)

    def request(self, message: dict[str, Any], limit_s: float) -> None:
        """Sends one plan; that the process has died meanwhile is found by `reply`."""
        self._deadline = time.monotonic() + limit_s
        self._number += 1
        self._channel.setblocking(True)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            messages.send(self._channel, {**message, "number": self._number})
        self._channel.setblocking(False)

    def reply(self) -> Result:
        """Waits for the answer, until the process dies or the time is over. A process that writes anything else to its
        socket counts as dead."""
        try:
            message = self._receive()
            return self._died() if message is None else _result(message, self._number)
        except TimeoutError:
            return self._timed_out()
        except (AttributeError, TypeError, ValueError):
            return self._described("crash", _NOT_A_MESSAGE)

    def leave(self) -> Result | None:
        """Ends the process normally; returns a result if it dies while it ends."""
        self._channel.close()
        try:
            code = self._wait_for_exit(_EXIT_LIMIT_S)
            return self._described("crash") if code is not None and code < 0 else None
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends the process and all processes that it started; closes everything. You can call it twice."""
        if self._popen.returncode is None:
            # Not reaped yet, so its process id is still the id of the group, even if it has
            # ended.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
        self._channel.close()
        self._slot_file.close()
        self._close_output()

    def _loaded(self, target: Target) -> Description:
        try:
            result = self._receive()
            if result is None:
                raise CannotLoad(f"{target.written}: {self._died().reason}")
            error = {"cannot_load": CannotLoad, "wrong_side": WrongSide}.get(result.pop("kind"))
            if error is not None:
                raise error(result["reason"])
            return _description(result)
        except (AttributeError, KeyError, TimeoutError, TypeError, ValueError) as problem:
            self.kill()
            is_late = isinstance(problem, TimeoutError)
            what = f"the import took longer than {START_LIMIT_S:g} s" if is_late else _NOT_A_MESSAGE
            raise CannotLoad(f"{target.written}: {what}") from None
        except BaseException:
            self.kill()
            raise

    def _receive(self) -> dict[str, Any] | None:
        """One message; None if the process died; raises TimeoutError at the deadline, ValueError for anything else."""
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

    def _died(self) -> Result:
        self._channel.close()
        self._wait_for_exit(_EXIT_LIMIT_S)
        return self._described("crash")

    def _timed_out(self) -> Result:
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._popen.pid, signal.SIGABRT)
        self._wait_for_exit(_ABORT_LIMIT_S)
        return self._described("timeout")

    def _described(self, kind: str, what: str = "") -> Result:
        step = steps.read(self._slot_file.fileno())
        text = self._tail.decode(errors="replace")
        if not what:
            what = "gave no answer in time" if kind == "timeout" else _ending(self._exit_code())
        frame = _innermost_frame(text)
        place = f" at step {step}" + (f", in {frame}" if frame else "")
        return Result(kind, reason=f"the process {what}{place}", step=step, diagnosis=text)


def _require_posix() -> None:
    """Raises CannotLoad where a process cannot be watched: on Windows, and on macOS before Python 3.13."""
    missing = [
        f"{module.__name__}.{name}"
        for module, name in ((os, "waitid"), (os, "killpg"), (select, "poll"))
        if not hasattr(module, name)
    ]
    if missing:
        raise CannotLoad(
            f"no separate process can be started here: {sys.platform} with Python "
            f"{platform.python_version()} lacks {', '.join(missing)}; pass --no-isolate (in a program: "
            "isolate=False), or use Linux"
        )


def _spawn(target: Target, socket_fd: int, slot_fd: int, output_fd: int) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise CannotLoad("sys.executable is empty, so no worker can be started; pass isolate=False")
    path = [entry or os.getcwd() for entry in sys.path]
    setup = {"path": path, "socket_fd": socket_fd, "slot_fd": slot_fd, "target": target.to_dict()}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, json.dumps(setup)],
        stdin=subprocess.DEVNULL,
        stdout=output_fd,
        stderr=output_fd,
        pass_fds=(socket_fd, slot_fd),
        start_new_session=True,
    )


def _request(plan: Plan, groups: Iterable[str]) -> dict[str, Any]:
    return {"plan": plan.to_dict(), "groups": sorted(groups)}


def _result(message: dict[str, Any], number: int) -> Result:
    """The worker's answer to the plan of that number; raises ValueError or TypeError for anything else."""
    raw = message.pop("observation", None)
    has_form = isinstance(raw, dict) if message.get("kind") == "observation" else raw is None
    if message.pop("number", None) != number or message.get("kind") not in _ANSWERS or not has_form:
        raise ValueError("not the answer to this plan")
    if raw is None:
        return Result(**message)
    observation: Observation | ConsumerObservation
    if "export" in raw:
        observation = from_json(ConsumerObservation, raw)
    else:
        observation = from_json(Observation, raw)
    return Result(**message, observation=observation)


def _description(message: dict[str, Any]) -> Description:
    return Description(**{**message, "capabilities": Capabilities(**message["capabilities"])})


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


def opened(
    producer: Any, isolate: bool, time_limit_s: float, side: str = "producer"
) -> Worker | LocalWorker:
    """A started worker; without isolation, classes and objects are passed unchanged."""
    if side == "consumer" and sys.platform == "win32":
        raise CannotLoad(
            "exports to consumers need mmap and mprotect, absent on Windows; use Linux"
        )
    if isolate:
        return Worker(name_of(producer, side), time_limit_s=time_limit_s)
    if isinstance(producer, str):
        return LocalWorker(load(name_of(producer, side)))
    if isinstance(producer, Consumer):
        return LocalWorker(producer)
    if side == "consumer":
        return LocalWorker(Consumer(producer, shown(producer, side), version_of(producer)))
    return LocalWorker(producer() if isinstance(producer, type) else producer)
