"""Whose code answers: interfaces that an object has from a class, or an array, of a library.

A subclass inherits the code of its base class. A wrapper hands on what an object that it holds
answers: every answer is then equal.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ..abi.libraries import python_api
from ..abi.memory import Memory
from ..info import ArrayInfo, RequestInfo
from ..info.values import attempt
from ..interfaces.buffer_protocol.measure import buffer_info
from ..interfaces.dlpack_protocol.measure import NEWEST, call_info
from .interface import interface_info, struct_info

_LIBRARIES = ("numpy", "torch")
_ATTRIBUTES = {"AI": "__array_interface__", "AS": "__array_struct__", "DL": "__dlpack__"}
_GETBUFFER = 1  # the number of the slot, CPython's typeslots.h
_slot = python_api().PyType_GetSlot
_slot.restype, _slot.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]


def origins(obj: Any, info: ArrayInfo, memory: Memory) -> dict[str, str]:
    """For each interface, by its group, the type of a library that answers: "numpy.ndarray 2.4.6".

    Interfaces that other code answers have no entry.
    """
    found: dict[str, str] = {}
    for group in (*_ATTRIBUTES, "PB"):
        definer, _ = attempt(partial(_definer, type(obj), group))
        if _named(definer):
            found[group] = _named(definer)
    given = {"AI": info.ai, "AS": info.struct, "DL": info.main, "PB": _anonymous(info.pb)}
    left = {group: answer for group, answer in given.items() if answer and group not in found}
    for held in _held(obj) if left else ():
        given = _answers(held, memory)
        same = (group for group in left if given[group] == left[group])
        found.update(dict.fromkeys(same, _named(type(held))))
    return found


def _named(kind: type | None) -> str:
    """The name of a type of a library, with the library's version; empty for other types."""
    top = str(kind.__module__).partition(".")[0] if kind is not None else ""
    if kind is None or top not in _LIBRARIES:
        return ""
    return f"{top}.{kind.__qualname__} {sys.modules[top].__version__}"


def _definer(kind: type, group: str) -> type | None:
    """The base class whose code answers; None if there is none."""
    bases = type.mro(kind)
    if group == "PB":
        own = _slot(kind, _GETBUFFER)
        return next((base for base in reversed(bases) if own and _slot(base, 1) == own), None)
    return next((base for base in bases if _ATTRIBUTES[group] in vars(base)), None)


def _held(obj: Any) -> Iterator[Any]:
    """The arrays of a library among the attributes of an object."""
    direct = gc.get_referents(obj)
    inner = (value for one in direct if type(one) is dict for value in one.values())
    return (one for one in (*direct, *inner) if _named(type(one)) and not isinstance(one, type))


def _answers(held: Any, memory: Memory) -> dict[str, Any]:
    """What a held array answers, as it is measured of every array."""
    ask: dict[str, Callable[[], Any]] = {
        "AI": lambda: interface_info(held, memory)[0],
        "AS": lambda: struct_info(held, memory)[0],
        "DL": lambda: call_info(held, memory, "max_version=(1,3)", NEWEST),
        "PB": lambda: _anonymous(buffer_info(held, memory)),
    }
    return {group: attempt(answer)[0] for group, answer in ask.items()}


def _anonymous(requests: dict[str, RequestInfo]) -> dict[str, Any]:
    """The answers to all requests without the owner; none without the buffer protocol."""
    views = {
        name: replace(one.view, obj=None)
        if one.view
        else one.error and (one.error.type, one.error.text)
        for name, one in requests.items()
    }
    return views if any(one.view for one in requests.values()) else {}
