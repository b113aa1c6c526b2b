"""What makes a mutant: a whole producer with one defect, and the exact rules that it breaks.

A mutant runs through the worker like any other library. Nothing in the suite knows it, nothing is
patched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import ClassVar

from gridbuf_conformance.plan import Plan

from .device import DeviceReference
from .exchange_table import AVAILABLE as TABLES_AVAILABLE
from .plans import PLANS, on_device
from .reference import Memory, Reference


class Mutant(Reference):
    """The reference producer with one defect, described by the class's docstring.

    `breaks` is what `report.failed` must be: the id of the defect first, then those that follow
    from it and are not a cascade (two interfaces that now disagree do disagree). `advises` are the
    ids whose outcome must be ADVISORY, `weakens` those that are FRAGILE when several threads export
    its arrays. `since_python` is the first version on which the defect can be seen, `needs_table`
    says that it is in an exchange table, which not every machine can show; `drawn` marks a defect
    that shows only where plans are drawn from the capabilities, `plans` are the ones that are asked
    otherwise.
    """

    breaks: ClassVar[frozenset[str]]
    advises: ClassVar[frozenset[str]] = frozenset()
    weakens: ClassVar[frozenset[str]] = frozenset()
    since_python: ClassVar[tuple[int, int]] = (3, 10)
    needs_table: ClassVar[bool] = False
    drawn: ClassVar[bool] = False
    plans: ClassVar[tuple[Plan, ...]] = PLANS

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__


class DeviceMutant(DeviceReference, Mutant):
    """The same on the zoo's device."""

    plans = on_device("gpu")


def faulty(
    *breaks: str,
    advises: Iterable[str] = (),
    since_python: tuple[int, int] = (3, 10),
    needs_table: bool = False,
    plans: tuple[Plan, ...] = PLANS,
    weakens: Iterable[str] = (),
) -> Callable[[type[Memory]], type[Mutant]]:
    """Turns a faulty array type into the mutant that hands it out; the docstring comes along."""

    def as_producer(array_type: type[Memory]) -> type[Mutant]:
        members = {
            "since_python": since_python,
            "needs_table": needs_table,
            "plans": plans,
            "weakens": frozenset(weakens),
        }
        return _producer(array_type, Mutant, breaks, advises, members)

    return as_producer


def faulty_on(
    device: str, *breaks: str, advises: Iterable[str] = (), needs_table: bool = False
) -> Callable[[type[Memory]], type[DeviceMutant]]:
    """The same for an array type in memory of a kind ("gpu", "pinned", "managed") of its device."""

    def as_producer(array_type: type[Memory]) -> type[DeviceMutant]:
        members = {"plans": on_device(device), "needs_table": needs_table}
        return _producer(array_type, DeviceMutant, breaks, advises, members)

    return as_producer


def _producer(
    array_type: type[Memory],
    base: type[Mutant],
    breaks: Iterable[str],
    advises: Iterable[str],
    members: dict[str, object],
) -> type[Mutant]:
    named = {
        "__doc__": array_type.__doc__,
        "__module__": array_type.__module__,
        "__qualname__": array_type.__qualname__,
        "array_type": array_type,
        "breaks": frozenset(breaks),
        "advises": frozenset(advises),
    }
    return type(array_type.__name__, (base,), {**named, **members})


def can_be_shown(mutant: type[Mutant]) -> bool:
    """Whether this interpreter on this machine can show the mutant's defect."""
    return sys.version_info >= mutant.since_python and (TABLES_AVAILABLE or not mutant.needs_table)


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
