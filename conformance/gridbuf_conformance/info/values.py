"""Python values as info: what a getter returned, in a form that survives JSON without losing its type.

`describe` tags each value with its type, because the rules turn on it: a list is not a tuple, a bool is not
an int, a NumPy integer is not a Python one. `attempt` runs a producer's code and turns what it raises into
info. No text that could hold an address is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .arrays import NONE, ErrorInfo, Value

__all__ = ["attempt", "describe", "error_info", "has"]

_DEPTH_LIMIT = 8
_LENGTH_LIMIT = 256
_TEXT_LIMIT = 200
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}|\b\d{12,}\b")
_SCALARS = {int: "int", bool: "bool", str: "str", float: "float"}


def describe(value: Any, depth: int = 0) -> Value:
    """The value with its tag; anything unknown is "other" with its type's name and whether it is callable."""
    kind = type(value)
    if value is None:
        return NONE
    if kind in _SCALARS:
        return Value(_SCALARS[kind], value)
    if isinstance(value, str):  # of a subclass, such as a dimension's name with a kind
        return Value("str", str.__str__(value))
    if kind is bytes:
        return Value("bytes", value[:_TEXT_LIMIT].decode("latin-1"))
    sequence = next(
        (name for t, name in ((tuple, "tuple"), (list, "list")) if isinstance(value, t)), None
    )
    if sequence and depth < _DEPTH_LIMIT:
        items = [describe(item, depth + 1) for item in value[:_LENGTH_LIMIT]]
        return Value(sequence, items=items, length=len(value))
    if kind is dict:
        keys = [repr(key)[:_TEXT_LIMIT] for key in list(value)[:_LENGTH_LIMIT]]
        return Value("dict", keys=keys)
    return Value("other", type=kind.__qualname__, callable=callable(value))


def error_info(error: BaseException) -> ErrorInfo:
    """An exception as info: its type, the names of all its bases, and its text without addresses."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be had)"
    return ErrorInfo(
        type(error).__name__,
        [base.__name__ for base in type(error).__mro__],
        _ADDRESS.sub("(address)", text)[:_TEXT_LIMIT],
    )


def attempt(call: Callable[[], Any]) -> tuple[Any, ErrorInfo | None]:
    """(result, None), or (None, info on what `call` raised).

    KeyboardInterrupt propagates: it comes from the user. SystemExit and similar exceptions are a failure of the producer.
    """
    try:
        return call(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error_info(error)


def has(obj: Any, name: str) -> bool:
    """Whether the object has an attribute; one whose question raises counts as absent."""
    return bool(attempt(lambda: hasattr(obj, name))[0])
