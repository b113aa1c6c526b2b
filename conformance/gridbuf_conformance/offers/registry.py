"""The interfaces by name, found in the modules of this package."""

from __future__ import annotations

import importlib
from functools import cache
from types import MappingProxyType

from .twist import PLAIN, Interface, Twist

__all__ = ["MODULES", "interface_of", "interfaces", "split", "twist_of", "twists_about"]

MODULES: tuple[str, ...] = (
    "dlpack",
    "exchange",
    "array_interface",
    "array_struct",
    "buffer",
    "cuda_interface",
    "data_interface",
)
"""The modules of this package that define `INTERFACES`, in the order in which they are offered."""


@cache
def interfaces() -> MappingProxyType[str, Interface]:
    """All interfaces by name."""
    found: dict[str, Interface] = {}
    for name in MODULES:
        for interface in importlib.import_module(f"{__package__}.{name}").INTERFACES:
            if interface.name in found:
                raise ValueError(f"{interface.name!r} is defined twice; give one another name")
            found[interface.name] = interface
    return MappingProxyType(found)


def split(written: str) -> tuple[str, str]:
    """ "dlpack:byte-offset" as its interface and its twist; without a colon the twist is plain."""
    name, _, twist = written.partition(":")
    return name, twist or PLAIN


def interface_of(written: str) -> Interface:
    """The interface of the key `offer`; raises ValueError naming the ones there are."""
    name, _ = split(written)
    found = interfaces().get(name)
    if found is None:
        known = ", ".join(interfaces())
        raise ValueError(f"offer is {written!r}, its interface must be one of {known}; pick one")
    return found


def twist_of(written: str) -> Twist:
    """The twist of the key `offer`; raises ValueError naming the interface's."""
    interface, (_, name) = interface_of(written), split(written)
    found = interface.twists.get(name)
    if found is None:
        known = ", ".join(interface.twists)
        raise ValueError(f"offer is {written!r}, its twist must be one of {known}; pick one")
    return found


def twists_about(rule: str) -> list[tuple[Interface, Twist]]:
    """Every (interface, twist) whose offers say something of a rule."""
    return [
        (interface, twist)
        for interface in interfaces().values()
        for twist in interface.twists.values()
        if rule in twist.rules
    ]
