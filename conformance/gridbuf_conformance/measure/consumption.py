"""Measuring a consumer: one exporter is put in front of it, and everything that can be seen is noted.

The consumer is called once. What it returned is described through whatever interface the result
offers, and read. Then the suite's own references are dropped, one kind after the other: first the
exporter and its capsules, while the result lives; then the result. What is free at each point, and
how often it was freed, are the facts of life; nothing is decided by what freed memory reads as.

An offer whose refusal would count is asked a second time in its plain form (`control`) if it was
refused, or not taken rightly: a consumer that has no complex numbers has none with a byte offset
either. As everywhere in `measure`, nothing is judged here.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from typing import Any

from ..abi.device import Devices
from ..abi.libraries import python_api
from ..abi.memory import Memory
from ..descriptors import descriptors_of
from ..offers import Block, Offer
from ..offers.twist import Offered
from ..steps import enter
from ..values import attempt, error_facts
from .content import walk
from .observation import light_facts

__all__ = ["consume"]

_CAUSES_LIMIT = 8
_ROUNDS_OF_WAITING = 5
_WAIT_S = 0.02
_incref = python_api().Py_IncRef
_incref.argtypes = [ctypes.py_object]


def consume(
    function: Callable[[Any], Any], offer: Offer, *, devices: Devices | None = None
) -> dict[str, Any]:
    """Puts `offer` in front of a consumer; facts that survive JSON.

    {"side": "consumer", "offer", "main": facts of the offer, "control": those of its plain form, or
    None where that was not needed}.
    """
    enter("consume")
    main = _consumed(function, offer, devices)
    control = offer.control
    needed = control is not None and control != offer and _is_in_question(offer, main)
    if needed:
        enter("control")
    return {
        "side": "consumer",
        "offer": offer.offer,
        "main": main,
        "control": _consumed(function, control, devices) if needed and control else None,
    }


def _is_in_question(offer: Offer, facts: dict[str, Any]) -> bool:
    """Whether the plain form has something to say: a legal offer was refused, or read otherwise."""
    if offer.twist.compared:
        return True
    is_legal = offer.twist.expects != "error"
    return is_legal and (facts["error"] is not None or not _holds_content(offer, facts))


def _holds_content(offer: Offer, facts: dict[str, Any]) -> bool:
    from ..consumption import Consumption  # it knows what the result should be

    return not Consumption(facts, offer).mistake


def _consumed(
    function: Callable[[Any], Any], offer: Offer, devices: Devices | None
) -> dict[str, Any]:
    """One call, and all that follows from it."""
    block = Block(offer.plan, **offer.interface.memory_of(offer))
    subject = offer.interface.make(offer, block)
    block = subject.block  # an interface to device memory has made its own
    memory = Memory(devices)
    result, error = _called(function, subject)
    facts: dict[str, Any] = {
        "error": error,
        "returned": subject.facts(),
        "asked": subject.was_asked(),
        "block": [block.low, block.high],
        "gives_bytes": bool(getattr(function, "gives_bytes", False)),
    }
    if error is None:
        memory.map.refresh()  # an exporter that took its memory back has closed its pages
        facts["result"] = _result_facts(result, memory)
    enter("consume:drop=exporter")
    subject.forget()
    gc.collect()
    facts["kept"] = {**subject.facts(), "free": subject.is_free()}
    enter("consume:drop=result")
    del result
    _settle(subject)
    facts["after"] = {**subject.facts(), "free": subject.is_free()}
    facts["unchanged"] = block.is_unchanged()
    if error is None and not subject.is_free():
        facts["after"] = _after_unseen(function, offer)
    _put_away(subject)
    return facts


def _after_unseen(function: Callable[[Any], Any], offer: Offer) -> dict[str, Any]:
    """The facts after another call, whose result nobody looked into: a result that leaks when it
    is asked for its own exports is no fault of the import."""
    enter("consume:again")
    block = Block(offer.plan, **offer.interface.memory_of(offer))
    subject = offer.interface.make(offer, block)
    result, _ = _called(function, subject)
    subject.forget()
    del result
    _settle(subject)
    facts = {**subject.facts(), "free": subject.is_free()}
    _put_away(subject)
    return facts


def _put_away(subject: Offered) -> None:
    """Closes an exporter that nobody uses any more."""
    if subject.is_free():
        subject.close()
    else:
        # The consumer may still use it, also while the interpreter ends and modules are emptied: no
        # list would live long enough.
        _incref(subject)


def _settle(subject: Offered) -> None:
    """Collects garbage until the memory is free; what a library frees a little later is no leak."""
    gc.collect()
    for _ in range(_ROUNDS_OF_WAITING):
        gc.collect()  # what the first round released may have held what the second one finds
        if subject.is_free():
            return
        time.sleep(_WAIT_S)


def _called(function: Callable[[Any], Any], subject: Offered) -> tuple[Any, dict[str, Any] | None]:
    """(what the consumer returned, None), or (None, facts of what it raised)."""
    try:
        return function(subject.exporter), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, _refusal_facts(error)


def _refusal_facts(error: BaseException) -> dict[str, Any]:
    """The error's facts, whether it is an ordinary exception, and the types that led to it."""
    causes: list[str] = []
    cause = _cause_of(error)
    while cause is not None and len(causes) < _CAUSES_LIMIT:
        causes.append(type(cause).__name__)
        cause = _cause_of(cause)
    return {**error_facts(error), "ordinary": isinstance(error, Exception), "causes": causes}


def _cause_of(error: BaseException) -> BaseException | None:
    """What a traceback would show before the error."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _result_facts(result: Any, memory: Memory) -> dict[str, Any]:
    """What the result says of itself, and the elements that each of its interfaces shows."""
    enter("consume:result")
    facts, kept = light_facts(result, memory)
    way = "its own interfaces"
    if not descriptors_of(facts):
        array, error = attempt(lambda: result.__array__())
        if error is None:
            facts, kept_too = light_facts(array, memory)
            kept += [array, *kept_too]
            way = "__array__()"
    facts["walk"] = {name: walk(array, memory) for name, array in descriptors_of(facts).items()}
    kept.clear()
    return {**facts, "type": type(result).__qualname__, "way": way}
