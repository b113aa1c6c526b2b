"""Whether memory that an object describes is free.

A getter that describes a temporary object returns an address that nothing keeps. The content of
freed memory proves nothing. If an allocator returns the same bytes while the description and the
object are held, they were free.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from ctypes import c_size_t, c_void_p
from typing import Any

from ..abi.descriptors import Descriptor
from ..abi.libraries import python_api
from ..info.steps import Stage, enter
from ..info.values import attempt
from ..interfaces.dlpack_structs.structs import CPU

_GETTERS = {"AI": (Stage.AI, "__array_interface__"), "AS": (Stage.AS, "__array_struct__")}
_LIMIT_BYTES = 2**20
"""Larger blocks are unmapped when they are freed."""
_MORE_BYTES = (0, 1, 16, 33, 64)
"""What allocations have in addition to the elements: headers of objects, alignment."""
_BLOCKS = 16

_api = python_api()
_ALLOCATORS = (("PyMem_Malloc", "PyMem_Free"), ("PyMem_RawMalloc", "PyMem_RawFree"))
for _allocate, _free in _ALLOCATORS:
    getattr(_api, _allocate).restype = c_void_p
    getattr(_api, _allocate).argtypes = [c_size_t]
    getattr(_api, _free).argtypes = [c_void_p]


def free_memory(obj: Any, found: dict[str, Descriptor]) -> list[str]:
    """The interfaces that describe free memory, although what they exported is held.

    The array interface and the array struct are asked again immediately before the allocations:
    code that runs in between may take the freed memory for itself.
    """
    names = []
    for name, array in found.items():
        is_small = array.hull is not None and array.hull[1] - array.hull[0] <= _LIMIT_BYTES
        if not is_small or array.is_indirect or array.device[0] != CPU:
            continue
        held = None
        if name in _GETTERS:
            stage, attribute = _GETTERS[name]
            enter(stage, "getter")
            held, _ = attempt(lambda: getattr(obj, attribute))  # noqa: B023 (called at once)
        if _is_free(array, held):
            names.append(name)
        del held
    return names


def _is_free(array: Descriptor, held: Any) -> bool:
    """Whether one of many allocations of about the array's size has the first element.

    Other elements could be outside the array's memory, which is a question of other rules. A dict
    that is `held` can have another address than the description (AI-33).
    """
    low, high = array.hull or (0, 0)
    taken: list[tuple[Callable[[int], None], int, int]] = []
    for allocate, free in _ALLOCATORS:
        for size in [high - low + more for more in _MORE_BYTES] * _BLOCKS:
            taken.append((getattr(_api, free), getattr(_api, allocate)(size) or 0, size))
    arrays = list(_numpy_arrays(high - low))
    blocks = [(start, size) for _, start, size in taken]
    blocks += [(one.__array_interface__["data"][0], high - low) for one in arrays]
    data = held.get("data") if isinstance(held, dict) else None
    address = data[0] if isinstance(data, tuple) and data else array.address
    is_free = any(start <= address < start + size for start, size in blocks)
    for give_back, start, _ in taken:
        give_back(start)
    return is_free


def _numpy_arrays(size: int) -> Iterator[Any]:
    """NumPy keeps small freed blocks for its arrays. Only if NumPy is in the process already."""
    numpy = sys.modules.get("numpy")
    for _ in range(_BLOCKS if hasattr(numpy, "empty") else 0):
        yield numpy.empty(size, "u1")  # type: ignore[union-attr]
