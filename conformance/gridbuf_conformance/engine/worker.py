"""The worker: a separate process that imports, calls and measures the producer.

The driver starts it by `COMMAND` as a fresh interpreter (never a fork: no locks, threads or device
contexts of the parent come along) with the driver's `sys.path`, and talks to it over one socket:
messages are JSON with their length before them, one answer for each request. The producer's
standard output is free for its own use. The worker writes its current step to a shared page
(`steps`), which outlives it.

The worker does not judge: it answers with its observations. `serve` is the whole loop; `answer` is the
same for the path without isolation.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import mmap
import os
import platform
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ..abi.device import Devices, TableAccess
from ..info import steps, to_json
from ..plan import NoContent, Plan
from ..plan.consumer import Consumer
from ..plan.producer import Capabilities, Unsupported, python_view
from ..targets import CannotLoad, Target, WrongSide, load
from .messages import receive, send

__all__ = ["COMMAND", "answer", "describe", "devices_of", "serve"]

COMMAND = (
    "import json, sys; setup = json.loads(sys.argv.pop(1)); sys.path[:] = setup.pop('path'); "
    "from gridbuf_conformance.engine.worker import serve; serve(**setup)"
)
"""What the worker's interpreter runs: it takes the driver's import path before anything is
imported.
"""

_PR_SET_PDEATHSIG = 1


def serve(socket_fd: int, slot_fd: int, target: dict[str, Any]) -> None:
    """Loads the producer, then answers requests until the driver closes the socket."""
    _settle()
    channel = socket.socket(fileno=socket_fd)
    os.set_inheritable(socket_fd, False)
    steps.share(mmap.mmap(slot_fd, steps.SLOT_BYTES))
    steps.enter("import")
    try:
        producer = load(Target(**target))
        devices = devices_of(producer)
        send(channel, {"kind": "loaded", **describe(producer)})
    except CannotLoad as error:
        kind = "wrong_side" if isinstance(error, WrongSide) else "cannot_load"
        send(channel, {"kind": kind, "reason": str(error)})
        return
    from .. import measure  # noqa: F401 (loaded now, so that no plan's time limit pays for it)

    gc.collect()
    gc.freeze()  # loaded modules stay: collections during a measurement need not scan them
    steps.enter("idle")
    while (request := receive(channel)) is not None:
        send(channel, to_json(answer(producer, request, devices)))
        steps.enter("idle")
    steps.enter("exit")


def _settle() -> None:
    """A crash here must be cheap, leave a trace, and never take the driver with it."""
    faulthandler.enable(open(os.dup(2), "wb", buffering=0), all_threads=False)  # noqa: SIM115
    import resource  # not on Windows, where no worker starts

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides when an interrupted run ends
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # if memory runs out, the system ends this process and no other
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def describe(producer: Any) -> dict[str, Any]:
    """Name, version and capabilities of a producer, JSON-able; raises CannotLoad if they are not
    proper.
    """
    if isinstance(producer, Consumer):
        return {
            **_description(producer.name, producer.version, Capabilities()),
            "side": "consumer",
            "takes": producer.takes,
        }
    capabilities = getattr(producer, "capabilities", None) or Capabilities()
    if not isinstance(capabilities, Capabilities):
        kind = type(capabilities).__name__
        raise CannotLoad(f"capabilities is {kind}, must be gridbuf_conformance.Capabilities")
    version = getattr(producer, "version", "")
    try:
        version = version() if callable(version) else version
    except Exception as error:
        raise CannotLoad(f"version() raised {type(error).__name__}: {error}") from error
    name = str(getattr(producer, "name", "") or type(producer).__name__)
    return _description(name, str(version or ""), capabilities)


def _description(name: str, version: str, capabilities: Capabilities) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}".lower(),
        "capabilities": capabilities.to_dict(),
    }


def devices_of(producer: Any) -> Devices:
    """The way to the producer's device memory: by its own table if it has one, else by the CUDA driver.

    Raises CannotLoad for a table that cannot be had or read.
    """
    export = getattr(producer, "device_table", None)
    if export is None:
        return Devices()
    try:
        capsule = export()
        if capsule is not None:
            TableAccess(capsule)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise CannotLoad(f"device_table() gives no device table: {reason}") from error
    return Devices(lambda: capsule)


def answer(producer: Any, request: dict[str, Any], devices: Devices) -> dict[str, Any]:
    """What one plan came to. `kind` is "observation" (with `observation`) or, with
    a `reason`, "unsupported", "raised" (`produce` raised), "error" (the suite itself went wrong).
    """
    if isinstance(producer, Consumer):
        return _consume(producer, request, devices)
    try:
        plan = Plan.from_json(request["plan"])
        groups = frozenset(request["groups"])
    except Exception:
        return {"kind": "error", "reason": traceback.format_exc()}
    made = _produce(producer, plan)
    if isinstance(made, dict):
        return made
    return _observe(producer, made[0], plan, groups, devices)


def _consume(consumer: Consumer, request: dict[str, Any], devices: Devices) -> dict[str, Any]:
    try:
        from ..exports import Export
        from ..measure.consumption import consume

        export = Export.from_json(request["plan"])
        observation = consume(consumer.function, export, devices=devices)
    except Exception:
        return {"kind": "error", "reason": traceback.format_exc()}
    return {"kind": "observation", "observation": observation}


def _produce(producer: Any, plan: Plan) -> tuple[Any] | dict[str, Any]:
    """The object (in a tuple, because it can be any object), or the message that says why there is
    none.
    """
    steps.enter("produce")
    try:
        made = producer.produce(plan)
    except NoContent:
        return {"kind": "unsupported", "reason": "it makes no array without content"}
    except MemoryError as error:
        return {"kind": "unsupported", "reason": f"MemoryError: {error}"}
    except BaseException as error:  # a producer that calls sys.exit must not end the run
        return {"kind": "raised", "reason": f"{type(error).__name__}: {error}"[:500]}
    if isinstance(made, Unsupported):
        return {"kind": "unsupported", "reason": made.reason}
    return (made,)


def _observe(
    producer: Any, made: Any, plan: Plan, groups: frozenset[str], devices: Devices
) -> dict[str, Any]:
    try:
        from ..measure import observe

        observation = observe(
            made,
            plan,
            groups=groups,
            again=_again(producer, plan),
            apply_view=getattr(producer, "apply_view", python_view),
            devices=devices,
            on_stream=getattr(producer, "on_stream", None),
            has_memory=getattr(producer, "has_memory", True),
        )
    except Exception:
        return {"kind": "error", "reason": traceback.format_exc()}
    steps.enter("teardown")
    del made
    return {"kind": "observation", "observation": observation}


def _again(producer: Any, plan: Plan) -> Callable[[], Any]:
    def again() -> Any:
        steps.enter("again")
        return producer.produce(plan)

    return again
