"""The descriptors of all interfaces of one object."""

from __future__ import annotations

from collections.abc import Callable

from ..abi.descriptors import Descriptor, Rejected
from ..info import ArrayInfo
from . import modules


def descriptors_of(info: ArrayInfo) -> dict[str, Descriptor]:
    """The arrays that an object's interfaces ("AI", "DL", …) describe; not the rejected ones."""
    found: dict[str, Descriptor] = {}
    for name, read in readers(info).items():
        try:
            found[name] = read()
        except Rejected:
            continue
    return found


def readers(info: ArrayInfo) -> dict[str, Callable[[], Descriptor]]:
    """For each interface of the object, the function that reads its descriptor or rejects it."""
    found: dict[str, Callable[[], Descriptor]] = {}
    for module in modules("descriptor"):
        if hasattr(module, "readers"):
            found.update(module.readers(info))
    return found
