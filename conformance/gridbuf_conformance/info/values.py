"""Python values as info: what a getter returned, in a form that survives JSON with its type.

`describe` tags each value with its type, because the rules turn on it: a list is not a tuple, a
bool is not an int, a NumPy integer is not a Python one. It calls no method of the value, which may
belong to a subclass. `attempt` runs a producer's code and turns what it raises into info. No text
that could hold an address is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from .arrays import NONE, ErrorInfo, Value

_DEPTH_LIMIT = 8
_LENGTH_LIMIT = 256
_TEXT_LIMIT = 200
_INT_BITS_LIMIT = 192
"""Python does not write integers over 4300 digits; sums and products of these are shorter."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}|\b\d{12,}\b")
_QUALNAME = vars(type)["__qualname__"]
_SCALARS = {int: "int", bool: "bool", str: "str", float: "float"}


def describe(value: Any, depth: int = 0) -> Value:
    """The tagged value; anything unknown is "other" with its type and whether it is callable."""
    kind = type(value)
    if value is None:
        return NONE
    if kind is int and value.bit_length() > _INT_BITS_LIMIT:
        return Value("other", type=f"int of {value.bit_length()} bits")
    if kind in _SCALARS:
        return Value(_SCALARS[kind], value)
    if issubclass(kind, str):  # a subclass, such as a dimension's name with a kind
        return Value("str", str.__str__(value))
    if kind is bytes:
        return Value("bytes", value[:_TEXT_LIMIT].decode("latin-1"))
    sequence = next((one for one in (tuple, list) if issubclass(kind, one)), None)
    if sequence and depth < _DEPTH_LIMIT:
        some = sequence.__getitem__(value, slice(_LENGTH_LIMIT))
        items = [describe(item, depth + 1) for item in some]
        return Value(sequence.__name__, items=items, length=sequence.__len__(value))
    if kind is dict:
        keys = [attempt(partial(repr, key))[0] or "" for key in list(value)[:_LENGTH_LIMIT]]
        return Value("dict", keys=[key[:_TEXT_LIMIT] for key in keys])
    return Value("other", type=type_name(value), callable=callable(value))


def type_name(value: Any) -> str:
    """The qualified name of a value's type, whatever its metaclass says."""
    name: str = _QUALNAME.__get__(type(value))
    return name


def text_of(error: BaseException) -> str:
    """The text of an exception, whose own method may raise another one."""
    text, failure = attempt(partial(str, error))
    return text if failure is None else "(its text cannot be had)"


def error_info(error: BaseException) -> ErrorInfo:
    """An exception as info: its type, the names of its bases, its text without addresses."""
    return ErrorInfo(
        type(error).__name__,
        [base.__name__ for base in type(error).__mro__],
        _ADDRESS.sub("(address)", text_of(error))[:_TEXT_LIMIT],
    )


def attempt(call: Callable[[], Any]) -> tuple[Any, ErrorInfo | None]:
    """(result, None), or (None, info on what `call` raised).

    KeyboardInterrupt propagates: it comes from the user. SystemExit and similar exceptions are a
    failure of the producer.
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
