"""The keywords of a consumer: copy, device and dtype, where its signature has them.

A function without a signature, such as one in C, is called with all of them: one that it does not
have is a TypeError, which is a refusal like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from ..exports import PLAIN, Export

_VALUES: dict[str, tuple[bool | str | None, ...]] = {
    "copy": (True, False, None),
    "device": (None, "cpu"),
    "dtype": (None,),
}
_INTERFACES = ("dlpack", "dlpack-legacy", "array-interface", "buffer")
_DTYPES = ("float64", "int32")
_ELEMENTS_LIMIT = 16


def keywords_for(
    function: Callable[..., Any], export: Export
) -> Iterator[dict[str, bool | str | None]]:
    """The keywords of each further call with an export: for small plain arrays of two types only,
    as calls cost time.
    """
    count = prod(export.view_map.shape)
    is_plain = export.interface.name in _INTERFACES and export.variant.name == PLAIN
    if not is_plain or export.dtype not in _DTYPES or not 0 < count <= _ELEMENTS_LIMIT:
        return
    for name in _declared(function):
        for value in _VALUES[name]:
            yield {name: value}


def _declared(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return list(_VALUES)
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [name for name in _VALUES if name in parameters]
    return [name for name in found if parameters[name].kind in by_name]
