"""The functions for programs.

`check` judges one object, `check_producer` a library that makes arrays, and `check_consumer` a
function that takes arrays. An argument that is not given has the value of the configuration
(`config`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import config as configuration
from .engine import consumer_run, producer_run
from .known import KnownFailures
from .render.events import Listener
from .render.report import Report

__all__ = ["check", "check_consumer", "check_producer"]


def check(
    obj: Any,
    rules: str | Iterable[str] | None = None,
    profile: str | None = None,
    *,
    device_table: Any = None,
    storage: bool | None = None,
    spec: str | Iterable[str] | None = None,
    config: str | Path | bool | None = None,
) -> Report:
    """Judges one live object, in this process.

    The suite finds the interfaces of the object. It judges each interface, and compares it with the
    other interfaces. Rules that compare the object with a plan need a producer and are UNSUPPORTED.
    The suite does not read an address whose description breaks a rule, and does not change the
    object.

    Parameters
    ----------
    obj : object
        The object to judge.
    rules : str or iterable of str, optional
        Ids and wildcards that select rules, as text (`"DL-*,XA-03"`) or as a sequence. The default
        is all rules.
    profile : str, optional
        The name of a profile. The report records it. The default is "default".
    device_table : capsule, optional
        A C table that reads device memory (`abi.device`). The default is the CUDA driver.
    storage : bool, optional
        Whether the rules of GT4Py and of storages judge an object without GT4Py's attributes.
    spec : str or iterable of str, optional
        Editions, such as `"array-api-2024.12,dlpack-1.0"`. Rules whose text is newer do not judge.
    config : path or bool, optional
        The file with the configuration; False for none. By default it is searched from the working
        directory upwards.

    Returns
    -------
    Report
        The outcome of each selected rule.

    Raises
    ------
    ValueError
        If the configuration is wrong, if the object has no interface, if a rule, an edition or a
        profile does not exist, or if the capsule is not a device table.

    Examples
    --------
    >>> import gridbuf_conformance
    >>> report = gridbuf_conformance.check(bytearray(8), rules="PB-03,XA-18")
    >>> report.outcomes
    {'PB-03': 'PASS', 'XA-18': 'PASS'}
    >>> report.failed
    ()
    """
    options = configuration.load(config).overridden(
        rules=rules, profile=profile, storage=storage, spec=spec
    )
    chosen = {name: options.options[name] for name in ("rules", "profile", "storage", "spec")}
    return producer_run.check(obj, device_table=device_table, **chosen)


def check_producer(
    producer: Any,
    profile: str | None = None,
    isolate: bool = True,
    *,
    rules: str | Iterable[str] | None = None,
    seed: int | None = None,
    time_limit_s: float | None = None,
    known: str | Path | Iterable[str | Path] | KnownFailures | None = None,
    on_event: Listener | None = None,
    storage: bool | None = None,
    spec: str | Iterable[str] | None = None,
    config: str | Path | bool | None = None,
) -> Report:
    """Judges a producer on many plans, by default in a separate process.

    The report shows a producer that crashes, hangs or raises. With isolation, the run then
    continues.

    Parameters
    ----------
    producer : str, type or object
        The name of a built-in producer or of its library, `package.module:Class`,
        `path/to/file.py:Class`, or a producer class of a module. Without isolation also any object
        with a method `produce(plan)`.
    profile : {"smoke", "default", "thorough", "threads", "soak"}, optional
        How many plans the suite tries. The default is "default".
    isolate : bool, optional
        Whether the producer runs in a separate process. Use False under a debugger.
    rules : str or iterable of str, optional
        Ids and wildcards that select rules. The default is all rules, or the rules of a built-in
        producer.
    seed : int, optional
        Varies the plans. The same seed gives the same report.
    time_limit_s : float, optional
        The time limit of each plan, in seconds. The default is 10.
    known : path, iterable of paths or KnownFailures, optional
        Files of known failures (`known`). Later files override earlier files.
    on_event : callable, optional
        A function that gets each event of the stream (`events`).
    storage : bool, optional
        Whether the rules of GT4Py and of storages (`GT-*`, XA-17) judge a producer that declares no
        layouts, alignment, dims or halo, and whose arrays do not have GT4Py's attributes.
    spec : str or iterable of str, optional
        Editions, such as `"array-api-2024.12,dlpack-1.0"`. Rules whose text is newer do not judge.
    config : path or bool, optional
        The file with the configuration; False for none. By default it is searched from the working
        directory upwards. It has the default of each argument that is not given.

    Returns
    -------
    Report
        The outcome of each selected rule.

    Raises
    ------
    CannotLoad
        If the producer cannot be loaded.
    ValueError
        If a rule, an edition or a profile does not exist, or the configuration is wrong.
    known.KnownError
        If a file of known failures is wrong or matches nothing. A subclass of ValueError.

    Examples
    --------
    >>> import gridbuf_conformance
    >>> report = gridbuf_conformance.check_producer("bytearray", rules="PB-*")
    >>> report.exit_code
    0

    Other targets: `check_producer("mylib.testing:Producer", profile="default")`, and under a
    debugger `check_producer(Producer, isolate=False)`.
    """
    options = configuration.load(config).overridden(
        profile=profile, rules=rules, seed=seed, time_limit=time_limit_s, spec=spec, storage=storage
    )
    return producer_run.check_producer(
        producer,
        isolate=isolate,
        known=KnownFailures.of(options.known if known is None else known),
        on_event=on_event,
        **options.options,
    )


def check_consumer(
    target: Any,
    profile: str | None = None,
    isolate: bool = True,
    *,
    rules: str | Iterable[str] | None = None,
    seed: int | None = None,
    time_limit_s: float | None = None,
    known: str | Path | Iterable[str | Path] | KnownFailures | None = None,
    on_event: Listener | None = None,
    spec: str | Iterable[str] | None = None,
    config: str | Path | bool | None = None,
) -> Report:
    """Judges a consumer on many exports, by default in a separate process.

    A consumer is a function that takes an exporter and returns an array. The suite first exports
    the simplest array through each interface. The rules of an interface that the consumer refuses
    are UNSUPPORTED.

    Parameters
    ----------
    target : str or callable
        The name of a built-in consumer, `package.module:function`, `path/to/file.py:function`, or a
        function of a module. Without isolation also any callable.
    profile, isolate, rules, seed, time_limit_s, known, on_event, spec, config
        As in `check_producer`.

    Returns
    -------
    Report
        The outcome of each selected rule.

    Raises
    ------
    CannotLoad
        If the consumer cannot be loaded.
    ValueError
        If a rule, an edition or a profile does not exist, or the configuration is wrong.
    known.KnownError
        If a file of known failures is wrong or matches nothing. A subclass of ValueError.

    Examples
    --------
    >>> import gridbuf_conformance
    >>> report = gridbuf_conformance.check_consumer("memoryview", rules="PB-35")
    >>> report.exit_code
    0
    """
    options = configuration.load(config).overridden(
        profile=profile, rules=rules, seed=seed, time_limit=time_limit_s, spec=spec
    )
    return consumer_run.check_consumer(
        target,
        isolate=isolate,
        known=KnownFailures.of(options.known if known is None else known),
        on_event=on_event,
        **options.options,
    )
