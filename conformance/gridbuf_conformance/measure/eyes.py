"""A consumer's result as its own library sees it: lists, a NumPy array, a sum, printed values.

The interfaces of a result say where its elements are. They do not say which values the library
itself computes with: a library that forgets strides or an offset exports the right memory and adds
the wrong numbers. Each look here is one documented method of the result, and gives numbers.

Looks run in a fork, so that a crash is an observation. The threads of a library do not exist in a
fork, and a look that waits for them hangs. From then on, looks at results of that type run in this
process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..abi.descriptors import sample_indices
from ..exports import array_repr
from ..info import LookInfo
from ..info.steps import Stage, enter
from .forks import CAN_FORK, run_fork

_ELEMENTS_LIMIT = 256
METHODS = ("tolist", "to_pylist", "numpy", "to_numpy", "__array__")
_DEATHS = frozenset({"SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL"})
_types_with_threads: set[type] = set()
"""Types whose looks hung in a fork."""


def look(result: Any) -> dict[str, LookInfo]:
    """What each look at a result shows: a shape and values, or the signal that ended the process.

    A look that the result does not have, that raises an error or that gives no numbers has no
    entry.
    """
    looks = dict(_looks(result))
    if not looks:
        return {}
    enter(Stage.EYES)
    if CAN_FORK and type(result) not in _types_with_threads:
        seen = _seen_in_forks(looks)
        if seen is not None:
            return seen
        _types_with_threads.add(type(result))
    return {name: LookInfo(**info) for name, info in _seen(looks)}


def _looks(result: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    kind = type(result)
    for name in METHODS:
        if callable(getattr(kind, name, None)):
            yield f"x.{name}()", partial(_called, result, name)
    if hasattr(kind, "__add__"):
        yield "x + 0", lambda: listed(result + 0)
    if getattr(kind, "__repr__") is not getattr(object, "__repr__"):
        yield "repr(x)", lambda: array_repr.values(repr(result))


def _called(result: Any, name: str) -> Any:
    return listed(getattr(result, name)())


def listed(array: Any) -> Any:
    """The numbers of an array as nested lists; raises TypeError if it has no way to them."""
    if isinstance(array, (list, bool, int, float, complex)):
        return array
    for name in METHODS:
        method = getattr(array, name, None)
        if callable(method):
            made = method()
            return made if isinstance(made, (list, int, float, complex)) else made.tolist()
    raise TypeError("it has no way to a list")


def _seen(looks: dict[str, Callable[[], Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The looks, one after the other. An empty entry is a look without numbers."""
    for name, take in looks.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield name, _described(take())
        except Exception:
            yield name, {}


def _described(nested: Any) -> dict[str, Any]:
    """The shape of nested lists and texts of sampled numbers; empty if no array of numbers."""
    shape: list[int] = []
    inner = nested
    while isinstance(inner, list):
        shape.append(len(inner))
        if not inner:
            return {}
        inner = inner[0]
    values = []
    for index in sample_indices(tuple(shape), _ELEMENTS_LIMIT):
        element = nested
        for position in index:
            element = element[position]
        if not isinstance(element, (bool, int, float, complex, str)):
            return {}
        values.append(element if isinstance(element, str) else repr(element))
    return {"shape": shape, "values": values}


def _seen_in_forks(looks: dict[str, Callable[[], Any]]) -> dict[str, LookInfo] | None:
    """The looks in a fork, and after a death the rest in another fork; None if one hung."""
    found: dict[str, LookInfo] = {}
    left = dict(looks)
    while left:
        lines, death = run_fork(partial(_seen, left))
        for name, info in lines:
            del left[name]
            found[name] = LookInfo(**info)
        if death is None:
            return None
        if left:
            name = next(iter(left))
            del left[name]
            found[name] = LookInfo(died=death if death in _DEATHS else None)
    return found
