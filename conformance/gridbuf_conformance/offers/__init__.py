"""What is put in front of a consumer: memory with known content, offered through one interface in
one way.

A consumer cannot be asked for an array; it takes what it is given. So its cases are made here, by
exporters in pure Python and `ctypes` that hold to the published texts to the letter, or miss them
by exactly one property. An `Offer` is the plan of one case. Three ideas make it up:

- `memory.Block`: the plan's array in pages of its own, between pages that nobody may touch;
- an `Interface` (one module each): how that memory is said to a consumer, and what is seen of the
  consumer meanwhile (keywords, deleters, releases);
- a `Twist`: the one property in which the saying differs from the plain one, with the rules that
  it is about and what a consumer may make of it.

A new interface is a module that defines `INTERFACES`, and its name in `MODULES`.
"""

from __future__ import annotations

from .memory import Block
from .offer import Offer, offered, plan_of_dict
from .registry import MODULES, interface_of, interfaces, twist_of, twists_about
from .twist import PLAIN, Interface, Offered, Twist

__all__ = [
    "MODULES",
    "PLAIN",
    "Block",
    "Interface",
    "Offer",
    "Offered",
    "Twist",
    "interface_of",
    "interfaces",
    "offered",
    "plan_of_dict",
    "twist_of",
    "twists_about",
]
