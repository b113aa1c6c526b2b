"""Info as JSON and back.

`encode` and `decode` are taken when this module is imported: what is under test may replace the
functions of `json`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["decode", "encode", "from_json", "to_json"]

encode = json.JSONEncoder(separators=(",", ":")).encode
decode = json.JSONDecoder().decode


_T = TypeVar("_T")


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def to_json(info: Any) -> Any:
    """Plain values of an info: dataclasses become dicts without their None fields."""
    if isinstance(info, (str, int, float)) or info is None:
        return info
    if isinstance(info, (list, tuple)):
        return [to_json(one) for one in info]
    if isinstance(info, Mapping):
        return {key: to_json(one) for key, one in info.items()}
    kind: Any = type(info)
    found = {name: getattr(info, name) for name in _names(kind)}
    return {name: to_json(one) for name, one in found.items() if one is not None}


def from_json(kind: Callable[..., _T], raw: Mapping[str, Any]) -> _T:
    """The info of a class that `to_json` wrote; raises TypeError for a field that it lacks."""
    readers = _readers(kind)
    return kind(
        **{
            name: readers[name](one) if name in readers and one is not None else one
            for name, one in raw.items()
        }
    )


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """How the fields that hold infos are read; other fields are the values of the JSON."""
    hints = get_type_hints(kind)
    found = {name: _reader(hints[name]) for name in _names(kind)}
    return {name: reader for name, reader in found.items() if reader is not None}


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda raw: from_json(hint, raw)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        some = [reader for reader in map(_reader, arguments) if reader is not None]
        return some[0] if len(some) == 1 else None
    inner = _reader(arguments[-1]) if origin in (list, dict) else None
    if inner is None:
        return None
    if origin is list:
        return lambda raw: [inner(one) for one in raw]
    return lambda raw: {key: inner(one) for key, one in raw.items()}
