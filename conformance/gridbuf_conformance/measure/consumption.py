"""Measuring a consumer: one exporter is put in front of it, and everything visible is noted.

The consumer is called once, a few times, or once by each of several threads. What it returned is
described through whatever interface the result has, and read. Then the suite's own references are
dropped, one kind after the other: first the exporter and its capsules, while the result lives; then
the result. What is free at each point, and how often it was freed, is the info on life; nothing is
decided by what freed memory reads as.

An export whose refusal would count is asked a second time in its plain form (`control`) if it was
refused, or not taken rightly: a consumer that has no complex numbers has none with a byte offset
either. As everywhere in `measure`, nothing is judged here.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..interfaces.descriptors import descriptors_of
from ..abi.device import Devices
from ..abi.libraries import python_api
from ..abi.memory import Memory
from ..exports import Block, Export, ObservedExport, expected_values
from ..info import ArrayInfo, CallInfo, ConsumerObservation, ConsumptionInfo, ErrorInfo, ExportInfo
from ..info.steps import Stage, enter
from ..info.values import attempt, error_info, type_name
from .content import walk
from .eyes import look
from .keywords import keywords_for
from .observation import light_info
from .racing import at_once

_CAUSES_LIMIT = 8
_WAIT_S = 0.02
_PATIENCE_S = [2.0]
"""How long memory may stay held after the call; little after a leak, which decides the rule."""
_incref = python_api().Py_IncRef
_incref.argtypes = [ctypes.py_object]


def consume(
    function: Callable[[Any], Any], export: Export, *, devices: Devices | None = None
) -> ConsumerObservation:
    """Puts `export` in front of a consumer, and its plain form where that is needed."""
    enter(Stage.CONSUME)
    main = _consumed(function, export, devices)
    control = export.control
    needed = control is not None and control != export and _is_in_question(export, main)
    if needed:
        enter(Stage.CONTROL)
    plain = _consumed(function, control, devices) if needed and control else None
    others = []
    if main.error is None and main.asked and not main.gives_bytes:
        for keywords in keywords_for(function, export):
            enter(Stage.CONSUME, "keywords")
            others.append(_consumed(function, export, devices, keywords))
    return ConsumerObservation(export.export, main, plain, others)


def _is_in_question(export: Export, info: ConsumptionInfo) -> bool:
    """Whether the plain form matters: a legal export was refused, or read otherwise."""
    if export.variant.compared:
        return True
    is_legal = export.variant.expects != "error"
    return is_legal and (info.error is not None or not _holds_content(export, info))


def _holds_content(export: Export, info: ConsumptionInfo) -> bool:
    from ..exports.consumption import Consumption  # it knows what the result should be

    return not Consumption(info, export).mistake


def _consumed(
    function: Callable[..., Any],
    export: Export,
    devices: Devices | None,
    keywords: dict[str, bool | str | None] | None = None,
) -> ConsumptionInfo:
    """One call, and all that follows from it."""
    if keywords:
        function = _with_keywords(function, keywords)
    block = Block(export.plan, **export.interface.memory_of(export))
    subject = export.interface.make(export, block)
    block = subject.block  # an interface to device memory has made its own
    memory = Memory(devices)
    calls = _called(function, subject)
    result, error = next((call for call in calls if call[1] is None), calls[0])
    info = ConsumptionInfo(
        error=error,
        returned=subject.info(),
        asked=subject.was_asked(),
        block=[block.low, block.high],
        gives_bytes=bool(getattr(function, "gives_bytes", False)),
        keywords=keywords or {},
    )
    if error is None:
        memory.map.refresh()  # an exporter that took its memory back has closed its pages
        info.result = _result_info(result, memory)
        if expected_values.can_be_compared(export) and not info.gives_bytes:
            info.looks = look(result)
    if export.variant.threads:
        info.calls = _call_infos(calls, memory)
    enter(Stage.CONSUME, "drop=exporter")
    subject.forget()
    gc.collect()
    info.kept = subject.life_info()
    enter(Stage.CONSUME, "drop=result")
    del result
    calls.clear()
    _settle(subject)
    info.after = subject.life_info()
    info.unchanged = block.is_unchanged()
    if error is None and not subject.is_free():
        info.after = _after_unseen(function, export)
    _put_away(subject)
    return info


def _with_keywords(
    function: Callable[..., Any], keywords: dict[str, bool | str | None]
) -> Callable[[Any], Any]:
    return lambda exporter: function(exporter, **keywords)


def _after_unseen(function: Callable[[Any], Any], export: Export) -> ExportInfo:
    """The observation of another call, whose result was not read: a result that leaks when it
    exports itself is not a failure of the import."""
    enter(Stage.CONSUME, "again")
    block = Block(export.plan, **export.interface.memory_of(export))
    subject = export.interface.make(export, block)
    results = _called(function, subject)
    subject.forget()
    results.clear()
    _settle(subject)
    info = subject.life_info()
    _put_away(subject)
    return info


def _put_away(subject: ObservedExport) -> None:
    """Closes an exporter that is no longer used."""
    if subject.is_free() and not subject.references:
        subject.close()
    else:
        # The consumer may still use it, also while the interpreter ends and modules are emptied: no
        # list would live long enough.
        _incref(subject)


def _settle(subject: ObservedExport) -> None:
    """Collects garbage until the memory is free; memory freed a little later is not a leak."""
    gc.collect()
    deadline = time.monotonic() + _PATIENCE_S[0]
    while time.monotonic() < deadline:
        gc.collect()  # what the first round released may have held what the second one finds
        if subject.is_free():
            return
        time.sleep(_WAIT_S)
    _PATIENCE_S[0] = 0.1


_Call = tuple[Any, "ErrorInfo | None"]


def _called(function: Callable[[Any], Any], subject: ObservedExport) -> list[_Call]:
    """For each call of the consumer (what it returned, None), or (None, info on what it raised)."""
    variant = subject.export.variant
    threads = variant.threads
    if not threads:
        return [_call(function, subject.exporter) for _ in range(variant.calls)]
    return at_once(lambda: _call(function, subject.exporter), threads)


def _call(function: Callable[[Any], Any], exporter: Any) -> _Call:
    try:
        return function(exporter), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, _refusal_info(error)


def _call_infos(calls: list[_Call], memory: Memory) -> list[CallInfo]:
    """The info on each thread's call."""
    return [
        CallInfo(error, None if error else _result_info(result, memory)) for result, error in calls
    ]


def _refusal_info(error: BaseException) -> ErrorInfo:
    """The error's info, whether it is an ordinary exception, and the types that led to it."""
    causes: list[str] = []
    cause = _cause_of(error)
    while cause is not None and len(causes) < _CAUSES_LIMIT:
        causes.append(type(cause).__name__)
        cause = _cause_of(cause)
    return replace(error_info(error), ordinary=isinstance(error, Exception), causes=causes)


def _cause_of(error: BaseException) -> BaseException | None:
    """What a traceback would show before the error."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _result_info(result: Any, memory: Memory) -> ArrayInfo:
    """What the result says of itself, and the elements that each of its interfaces shows."""
    enter(Stage.CONSUME, "result")
    info, kept = light_info(result, memory)
    if not descriptors_of(info):
        array, error = attempt(lambda: result.__array__())
        if error is None:
            info, kept_too = light_info(array, memory)
            kept += [array, *kept_too]
    info.walk = {name: walk(array, memory) for name, array in descriptors_of(info).items()}
    kept.clear()
    return replace(info, type=type_name(result))
