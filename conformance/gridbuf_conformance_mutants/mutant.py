"""What makes a mutant: a whole producer with one fault, and the exact rules that the fault must break.

A mutant runs through the worker like anybody's library. Nothing in the suite knows it, nothing is patched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import ClassVar

from .reference import Memory, Reference

__all__ = ["Mutant", "faulty"]


class Mutant(Reference):
    """The reference producer with one fault, described by the class's docstring.

    `breaks` is what `report.failed` must be: the id of the fault first, then those that follow from it and
    are no cascade (two interfaces that now disagree do disagree). `advises` are the ids whose outcome must
    be ADVISORY. `since_python` is the first version on which the fault can be seen; `drawn` marks a fault
    that shows only where plans are drawn from the capabilities.
    """

    breaks: ClassVar[frozenset[str]]
    advises: ClassVar[frozenset[str]] = frozenset()
    since_python: ClassVar[tuple[int, int]] = (3, 10)
    drawn: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__


def faulty(
    *breaks: str, advises: Iterable[str] = (), since_python: tuple[int, int] = (3, 10)
) -> Callable[[type[Memory]], type[Mutant]]:
    """Turns a faulty array type into the mutant that hands it out; the docstring comes along."""

    def as_producer(array_type: type[Memory]) -> type[Mutant]:
        members = {
            "__doc__": array_type.__doc__,
            "__module__": array_type.__module__,
            "__qualname__": array_type.__qualname__,
            "array_type": array_type,
            "breaks": frozenset(breaks),
            "advises": frozenset(advises),
            "since_python": since_python,
        }
        return type(array_type.__name__, (Mutant,), members)

    return as_producer


def mutants_of(module_name: str) -> list[type[Mutant]]:
    """The mutants that a module defines, in its order."""
    members = vars(sys.modules[module_name]).values()
    return [
        kind
        for kind in members
        if isinstance(kind, type)
        and issubclass(kind, Mutant)
        and kind.__module__ == module_name
        and not kind.__name__.startswith("_")
    ]
