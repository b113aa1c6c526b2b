"""The functions that programs call: `check` for one object, `check_producer` for a library that makes
arrays, `check_consumer` for a function that takes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import consumer_run, producer_run
from .driver import PLAN_LIMIT_S
from .events import Listener
from .known import KnownFailures
from .report import Report

__all__ = ["check", "check_consumer", "check_producer"]


def check(
    obj: Any,
    rules: str | Iterable[str] | None = None,
    profile: str = "default",
    *,
    device_table: Any = None,
) -> Report:
    """Judges one live object, in this process.

    ```python
    report = gridbuf_conformance.check(numpy.zeros((3, 4)))
    print(report)
    ```

    The interfaces of the object are found out; each is judged by itself and against the
    others. The rules that compare an object with what was asked for need a producer and come out as
    UNSUPPORTED. No address is followed that the rules on its description reject, and the object is
    left as it was.

    `rules` selects by ids and wildcards, as text ("DL-*,XA-03") or as a sequence; `profile` is
    recorded. `device_table` is the capsule of a C table by which device memory is read
    (`abi.device`); without it the CUDA driver is asked. Raises ValueError for a rule or a profile
    that does not exist, and for a capsule that holds no such table.
    """
    return producer_run.check(obj, rules=rules, profile=profile, device_table=device_table)


def check_producer(
    producer: Any,
    profile: str = "smoke",
    isolate: bool = True,
    *,
    rules: str | Iterable[str] | None = None,
    seed: int | None = None,
    time_limit_s: float = PLAN_LIMIT_S,
    known: str | Path | Iterable[str | Path] | KnownFailures | None = None,
    on_event: Listener | None = None,
) -> Report:
    """Judges a producer on many plans, by default in a process of its own.

    ```python
    report = gridbuf_conformance.check_producer("numpy")
    report = gridbuf_conformance.check_producer("mylib.testing:Producer", profile="default")
    report = gridbuf_conformance.check_producer(Producer, isolate=False)  # under a debugger
    ```

    `producer` is the name of a built-in producer, `package.module:Class`, `path/to/file.py:Class`,
    or a producer class that a module holds; without isolation any object with a method
    `produce(plan)` will do. A producer that crashes, hangs or raises is reported as that, and the
    run goes on (with isolation).

    `profile` is "smoke", "default", "thorough" or "soak"; `seed` varies the plans (same seed, same
    report); `time_limit_s` bounds each plan; `known` names files of known failures (`known`), later
    ones over earlier ones; `on_event` is called with each event of the stream (`events`).

    Raises CannotLoad if the producer cannot be loaded, ValueError for a rule or a profile that does
    not exist, its subclass `known.KnownError` for a file of known failures that is wrong or stale.
    """
    return producer_run.check_producer(
        producer,
        profile=profile,
        rules=rules,
        isolate=isolate,
        seed=seed,
        time_limit_s=time_limit_s,
        known=KnownFailures.of(known),
        on_event=on_event,
    )


def check_consumer(
    target: Any,
    profile: str = "smoke",
    isolate: bool = True,
    *,
    rules: str | Iterable[str] | None = None,
    seed: int | None = None,
    time_limit_s: float = PLAN_LIMIT_S,
    known: str | Path | Iterable[str | Path] | KnownFailures | None = None,
    on_event: Listener | None = None,
) -> Report:
    """Judges a consumer on many exports, by default in a process of its own.

    ```python
    report = gridbuf_conformance.check_consumer("numpy.from_dlpack")
    report = gridbuf_conformance.check_consumer("mylib:asarray", profile="default")
    report = gridbuf_conformance.check_consumer(mylib.asarray, isolate=False)  # under a debugger
    ```

    A consumer is a function that is given an exporter and returns an array. `target` is the name of
    a built-in one, `package.module:function`, `path/to/file.py:function`, or a function of a
    module; without isolation any callable will do. Which interfaces it takes is found out: of each
    it gets the simplest array, and the rules of those that it refuses are UNSUPPORTED.

    The other parameters and the errors are those of `check_producer`.
    """
    return consumer_run.check_consumer(
        target,
        profile=profile,
        rules=rules,
        isolate=isolate,
        seed=seed,
        time_limit_s=time_limit_s,
        known=KnownFailures.of(known),
        on_event=on_event,
    )
