"""The driver: gives plans to a worker, and survives whatever the producer does to it.

`Worker` runs the producer in a separate process, `LocalWorker` in this one (for debuggers and
sanitizers); both answer a plan with a `Result`. A worker that dies or hangs is an ordinary result
here (`process`):

- it died: the plan runs again in a fresh worker. If that dies too the result is "crash",
  else "unstable". (Once a death at some step has repeated, the next ones there are believed at
  once);
- it did not answer in time: "timeout". The process gets SIGABRT first, so that faulthandler says
  where it hangs, then SIGKILL with its whole process group.

The result names the step at which it happened, read from the page that the worker writes (`steps`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..info import ConsumerObservation, Observation, from_json
from ..plan import Plan
from ..plan.consumer import Consumer, version_of
from ..plan.producer import Capabilities
from ..plan.profiles import PLAN_LIMIT_S
from ..targets import CannotLoad, Target, WrongSide, load, name_of, shown
from . import process
from .process import Ending, Process, Restarted
from .worker import answer, describe, devices_of

_ANSWERS = frozenset({"observation", "unsupported", "raised", "error"})


@dataclass(frozen=True)
class Description:
    """The worker's description of the target; `side` is "producer" or "consumer", `takes` are the
    interfaces that a consumer is documented to take (None: not documented)."""

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
        # Nothing here refers to the worker: it ends with its last reference.
        self._process = Restarted(partial(_loaded, self._target))
        self.description: Description = self._process.started().hello

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
                is_alive = self._process.is_alive
                upcoming = self._sent(next(ahead, None), groups) if is_alive else None
                yield plan, result
                if not is_alive:
                    upcoming = self._sent(next(ahead, None), groups)
        except BaseException:  # an interrupt, or the caller gave up with a plan still under way
            self._process.discard()
            raise

    def close(self) -> Result | None:
        """Lets the process end; a "crash" result with step "exit" if it died while it did."""
        ending = self._process.leave()
        return None if ending is None else _ended(ending)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.discard()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self._process.discard()

    def _sent(self, plan: Plan | None, groups: list[str]) -> Plan | None:
        if plan is not None:
            self._process.send(_request(plan, groups), self._time_limit_s)
        return plan

    def _result(self, plan: Plan, groups: list[str]) -> Result:
        first: Result | Ending = self._process.receive()
        if not isinstance(first, Ending):
            return first
        second: Result | Ending = self._process.again(
            first, _request(plan, groups), self._time_limit_s
        )
        if isinstance(second, Ending):
            return _ended(second)
        if first.kind == "timeout":
            return second
        reason = f"{first.reason}; the same plan did not do so in a fresh process"
        return Result("unstable", reason=reason, step=first.step, diagnosis=first.output)


def _request(plan: Plan, groups: Iterable[str]) -> dict[str, Any]:
    return {"plan": plan.to_dict(), "groups": sorted(groups)}


def _loaded(target: Target) -> Process[Any]:
    """A process that has loaded a target; raises CannotLoad."""
    worker: Process[Any] = Process(f"{__package__}.worker", {"target": target.to_dict()}, _hello)
    try:
        hello = worker.reply()
        if isinstance(hello, Ending):
            is_late = hello.kind == "timeout"
            late = f"the import took longer than {process.START_LIMIT_S:g} s"
            raise CannotLoad(f"{target.written}: {late if is_late else hello.reason}")
        if isinstance(hello, CannotLoad):
            raise hello
    except BaseException:
        worker.kill()
        raise
    worker.hello, worker.read = hello, _result
    return worker


def _hello(message: dict[str, Any]) -> CannotLoad | Description:
    error = {"cannot_load": CannotLoad, "wrong_side": WrongSide}.get(message.pop("kind"))
    return _description(message) if error is None else error(message["reason"])


def _ended(ending: Ending) -> Result:
    return Result(ending.kind, reason=ending.reason, step=ending.step, diagnosis=ending.output)


def _result(message: dict[str, Any]) -> Result:
    """The worker's answer to a plan; raises ValueError or TypeError for anything else."""
    raw = message.pop("observation", None)
    has_form = isinstance(raw, dict) if message.get("kind") == "observation" else raw is None
    if message.get("kind") not in _ANSWERS or not has_form:
        raise ValueError("not the answer to a plan")
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
