"""What is put in front of a consumer: memory with known content, exported through one interface in
one way.

A consumer cannot be asked for an array; it takes what it is given. So its cases are made here, by
exporters in pure Python and `ctypes` that hold to the published texts to the letter, or miss them
by exactly one property. An `Export` is the plan of one case. Three ideas make it up:

- `memory.Block`: the plan's array in pages of its own, between pages that nobody may touch;
- an `Interface` (one module each): how that memory is said to a consumer, and what is seen of the
  consumer meanwhile (keywords, deleters, releases);
- a `Variant`: the one property in which the saying differs from the plain one, with the rules that
  it is about and what a consumer may make of it.

A new interface is a module that defines `INTERFACES`, and its name in `MODULES`.
"""

from __future__ import annotations

from .export import Export, export_of, plan_of_dict
from .memory import Block
from .registry import MODULES, interface_of, interfaces, variant_of, variants_about
from .variant import PLAIN, Interface, ObservedExport, Variant

__all__ = [
    "MODULES",
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
