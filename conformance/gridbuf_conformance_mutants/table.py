"""Mutants that are one line: rows of a table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def rows(module: str) -> Callable[..., None]:
    """The function that adds a mutant to a module.

    `row(faulty("AI-27"), Base, "Name", "What is wrong.", method=lambda self: …)` is the decorated
    class `Name` of `Base` with that docstring and that member.
    """

    def row(made: Callable[[Any], Any], base: type, name: str, about: str, **members: Any) -> None:
        kind = type(name, (base,), {**members, "__doc__": about, "__module__": module})
        setattr(sys.modules[module], name, made(kind))

    return row


def assigned(field: str, value: Callable[[Any], Any]) -> Callable[..., None]:
    """A method that assigns a field of its argument."""

    def method(self: Any, edited: Any, *others: Any) -> None:
        setattr(edited, field, value(self))

    return method
