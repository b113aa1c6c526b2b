"""Facts of the memory itself: is it mapped, what do the elements hold, does a write show everywhere."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from ..abi.memory import Memory
from ..descriptors import Descriptor
from ..steps import enter

__all__ = ["mapping_facts", "poke_facts", "walk"]


def mapping_facts(found: dict[str, Descriptor], memory: Memory) -> dict[str, Any]:
    """For each interface's host array: is its first element mapped, all of it readable, all of it writable.

    {"first": bool, "read": bool, "write": bool}; empty arrays and other devices have no entry.
    """
    facts = {}
    if not memory.map.known:
        return facts
    for name, array in found.items():
        if array.span is None or not array.is_host or array.is_indirect:
            continue
        low, high = array.span
        facts[name] = {
            "first": memory.readable(array.address, array.address + array.itemsize),
            "read": memory.readable(low, high),
            "write": memory.writable(low, high),
        }
    return facts


def walk(array: Descriptor, memory: Memory) -> str | None:
    """The bytes of the sampled elements in hexadecimal; None where they must not or cannot be read."""
    if not array.is_host or array.is_indirect:
        return None
    enter(f"walk:{array.interface}")
    raw = memory.elements(array.address, array.hull, array.sample_offsets(), array.itemsize)
    return None if raw is None else raw.hex()


def poke_facts(found: dict[str, Descriptor], memory: Memory) -> dict[str, bool]:
    """{"AI>PB": seen}: does a byte written through one interface show through the other?

    Only where both claim to be writable, are mapped writable, and name different addresses: at the same
    address it is the same memory. The byte is put back. Pointers to objects are never changed.
    """
    claims = {
        name: array
        for name, array in found.items()
        if array.readonly is False
        and array.is_host
        and not array.is_copy
        and not array.is_empty
        and not (array.element and array.element.kind == "object")
    }
    facts = {}
    for one, other in permutations(claims, 2):
        source, target = claims[one], claims[other]
        if source.address == target.address:
            continue
        enter(f"poke:{one}>{other}")
        seen = _shows(source.address, target.address, memory)
        if seen is not None:
            facts[f"{one}>{other}"] = seen
    return facts


def _shows(source: int, target: int, memory: Memory) -> bool | None:
    before, seen_before = memory.read(source, 1), memory.read(target, 1)
    if before is None or seen_before is None:
        return None
    if not memory.write(source, bytes([before[0] ^ 1])):
        return None
    after = memory.read(target, 1)
    memory.write(source, before)
    return after == bytes([seen_before[0] ^ 1])
