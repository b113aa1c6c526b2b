"""The interfaces by name, found in the modules of this package."""

from __future__ import annotations

import importlib
from functools import cache
from types import MappingProxyType

from .variant import PLAIN, Interface, Variant

__all__ = ["MODULES", "interface_of", "interfaces", "split", "variant_of", "variants_about"]

MODULES: tuple[str, ...] = (
    "dlpack",
    "dlpack_exchange",
    "array_interface",
    "array_struct",
    "buffer",
    "cuda_interface",
    "data_interface",
)
"""The modules of this package that define `INTERFACES`, in the order in which they are exported."""


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
    """ "dlpack:byte-offset" as its interface and its variant; without a colon the variant is plain."""
    name, _, variant = written.partition(":")
    return name, variant or PLAIN


def interface_of(written: str) -> Interface:
    """The interface of the key `export`; raises ValueError naming the ones there are."""
    name, _ = split(written)
    found = interfaces().get(name)
    if found is None:
        known = ", ".join(interfaces())
        raise ValueError(f"export is {written!r}, its interface must be one of {known}; pick one")
    return found


def variant_of(written: str) -> Variant:
    """The variant of the key `export`; raises ValueError naming the interface's."""
    interface, (_, name) = interface_of(written), split(written)
    found = interface.variants.get(name)
    if found is None:
        known = ", ".join(interface.variants)
        raise ValueError(f"export is {written!r}, its variant must be one of {known}; pick one")
    return found


def variants_about(rule: str) -> list[tuple[Interface, Variant]]:
    """Every (interface, variant) whose exports say something of a rule."""
    return [
        (interface, variant)
        for interface in interfaces().values()
        for variant in interface.variants.values()
        if rule in variant.rules
    ]
