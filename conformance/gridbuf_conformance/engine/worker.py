"""The worker: a separate process that imports, calls and measures the producer.

The driver starts it as a fresh interpreter (never a fork: no locks, threads or device
contexts of the parent come along) with the driver's `sys.path`, and talks to it over one socket:
messages are JSON with their length before them, one answer for each request. The producer's
standard output is free for its own use. The worker writes its current step to a shared page
(`steps`), which outlives it.

The worker does not judge: it answers with its observations. `serve` is the whole loop; `answer` is
the same for the path without isolation.
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
import sysconfig
import traceback
from collections.abc import Callable
from typing import Any

from ..abi.device import Devices, TableAccess
from ..info import steps, to_json
from ..info.values import text_of, type_name
from ..plan import NoContent, Plan
from ..plan.consumer import Consumer
from ..plan.producer import Capabilities, is_declined, python_view
from ..targets import CannotLoad, Target, WrongSide, load, loading
from .messages import receive, send

_PR_SET_PDEATHSIG = 1


def serve(socket_fd: int, slot_fd: int, target: dict[str, Any]) -> None:
    """Loads the producer, then answers requests until the driver closes the socket."""
    channel = connected(socket_fd, slot_fd)
    steps.enter(steps.Stage.IMPORT)
    try:
        producer = load(Target(**target))
        devices = devices_of(producer)
        send(channel, {"kind": "loaded", **describe(producer), "number": 0})
    except CannotLoad as error:
        kind = "wrong_side" if isinstance(error, WrongSide) else "cannot_load"
        send(channel, {"kind": kind, "reason": str(error), "number": 0})
        return
    from .. import measure  # noqa: F401 (loaded now, so that no plan's time limit pays for it)

    answer_all(channel, lambda request: to_json(answer(producer, request, devices)))


def connected(socket_fd: int, slot_fd: int) -> socket.socket:
    """The socket of the driver, in a process that is ready to die."""
    _settle()
    channel = socket.socket(fileno=socket_fd)
    os.set_inheritable(socket_fd, False)
    steps.share(mmap.mmap(slot_fd, steps.SLOT_BYTES))
    return channel


def answer_all(
    channel: socket.socket, answered: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Answers requests until the driver closes the socket."""
    gc.collect()
    gc.freeze()  # loaded modules stay: collections during a measurement need not scan them
    steps.enter(steps.Stage.IDLE)
    while (request := receive(channel)) is not None:
        number = request.pop("number")
        message = contained(lambda: answered(request))  # noqa: B023 (called at once)
        send(channel, {**message, "number": number})
        steps.enter(steps.Stage.IDLE)
    steps.enter(steps.Stage.EXIT)


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


def system() -> tuple[str, str]:
    """The Python, with a "t" if it is free-threaded, and the platform."""
    threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    name = f"{platform.system()} {platform.machine()}".lower()
    return platform.python_version() + threaded, name


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
    with loading("its name, version and capabilities"):
        capabilities = getattr(producer, "capabilities", None) or Capabilities()
        version = getattr(producer, "version", "")
        version = str((version() if callable(version) else version) or "")
        name = str(getattr(producer, "name", "") or type_name(producer))
    if not isinstance(capabilities, Capabilities):
        kind = type_name(capabilities)
        raise CannotLoad(f"capabilities is {kind}, must be gridbuf_conformance.Capabilities")
    return _description(name, version, capabilities)


def _description(name: str, version: str, capabilities: Capabilities) -> dict[str, Any]:
    python, platform_name = system()
    return {
        "name": name,
        "version": version,
        "python": python,
        "platform": platform_name,
        "capabilities": capabilities.to_dict(),
    }


def devices_of(producer: Any) -> Devices:
    """The way to the producer's device memory: its own table if it has one, else the CUDA driver.

    Raises CannotLoad for a table that cannot be had or read.
    """
    with loading("device_table() gives no device table"):
        export = getattr(producer, "device_table", None)
        capsule = None if export is None else export()
        if capsule is not None:
            TableAccess(capsule)
    return Devices() if export is None else Devices(lambda: capsule)


def contained(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer of a function, or an "error" with the traceback of what it raised: what is under
    test may raise anything.
    """
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return {"kind": "error", "reason": traceback.format_exc()}


def answer(producer: Any, request: dict[str, Any], devices: Devices) -> dict[str, Any]:
    """What one plan came to. `kind` is "observation" (with `observation`) or, with
    a `reason`, "unsupported", "raised" (`produce` raised), "error" (the suite itself went wrong).
    """
    if isinstance(producer, Consumer):
        return contained(lambda: _consume(producer, request, devices))
    return contained(lambda: _produce_and_observe(producer, request, devices))


def _produce_and_observe(
    producer: Any, request: dict[str, Any], devices: Devices
) -> dict[str, Any]:
    plan = Plan.from_json(request["plan"])
    made = _produce(producer, plan)
    if isinstance(made, dict):
        return made
    from ..measure import observe

    product, ways = made
    observation = observe(
        product,
        plan,
        groups=frozenset(request["groups"]),
        again=_again(producer, plan),
        other=_again(producer, plan.with_other_content()),
        reshaped=_again(producer, _reshaped(plan)) if plan.ndim == 1 and not plan.views else None,
        devices=devices,
        **ways,
    )
    steps.enter(steps.Stage.TEARDOWN)
    del made, product
    return {"kind": "observation", "observation": observation}


def _consume(consumer: Consumer, request: dict[str, Any], devices: Devices) -> dict[str, Any]:
    from ..exports import Export
    from ..measure.consumption import consume

    export = Export.from_json(request["plan"])
    observation = consume(consumer.function, export, devices=devices)
    return {"kind": "observation", "observation": observation}


def _produce(producer: Any, plan: Plan) -> tuple[Any, dict[str, Any]] | dict[str, Any]:
    """The object, and what the producer says of its objects; or a message that says why not."""
    steps.enter(steps.Stage.PRODUCE)
    try:
        made = producer.produce(plan)
        ways = {
            "apply_view": getattr(producer, "apply_view", python_view),
            "on_stream": getattr(producer, "on_stream", None),
            "has_memory": bool(getattr(producer, "has_memory", True)),
            "exports_move": bool(getattr(producer, "exports_move", False)),
        }
    except NoContent:
        return {"kind": "unsupported", "reason": "it makes no array without content"}
    except MemoryError as error:
        return {"kind": "unsupported", "reason": f"MemoryError: {text_of(error)}"}
    except BaseException as error:  # a producer that calls sys.exit must not end the run
        return {"kind": "raised", "reason": f"{type(error).__name__}: {text_of(error)}"[:500]}
    if is_declined(made):
        return {"kind": "unsupported", "reason": str(made.reason)}
    return made, ways


def _reshaped(plan: Plan) -> Plan:
    """The plan of one dimension with another extent, a smaller one where there is one."""
    extent = plan.shape[0]
    shape = (extent - 1 if extent > 1 else extent + 1,)
    return plan.replaced(shape=shape, aligned_index=None, halo=None)


def _again(producer: Any, plan: Plan) -> Callable[[], Any]:
    def again() -> Any:
        steps.enter(steps.Stage.AGAIN)
        return producer.produce(plan)

    return again
