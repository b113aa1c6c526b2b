"""The exports for consumers: memory with known content, exported through one interface in
one way.

A consumer does not make arrays; it takes exports. This package makes its cases, by
exporters in pure Python and `ctypes` that hold to the published texts to the letter, or miss them
by exactly one property. An `Export` is the plan of one case. Three ideas make it up:

- `memory.Block`: the array of the plan in separate pages, between inaccessible pages;
- an `Interface` (one module each): how that memory is described to a consumer, and the observations
  of the consumer meanwhile (keywords, deleters, releases);
- a `Variant`: the property in which the description differs from the plain one, with the rules that
  it is about and what a consumer may make of it.

A new interface is a module `exports` in the folder of the interface, with a tuple `INTERFACES`.
"""

from __future__ import annotations

from .export import (
    PLAIN,
    Export,
    Interface,
    ObservedExport,
    Variant,
    export_of,
    interface_of,
    interfaces,
    plan_of_dict,
    variant_of,
    variants_about,
)
from .memory import Block

__all__ = [
    "PLAIN",
    "Block",
    "Interface",
    "Export",
    "ObservedExport",
    "Variant",
    "interface_of",
    "interfaces",
    "export_of",
    "plan_of_dict",
    "variant_of",
    "variants_about",
]
