"""Memory that was freed and is used again.

A getter that describes a temporary object returns an address that nothing keeps. The content of
freed memory proves nothing. If an allocator returns the same bytes while the description and the
object are held, they were free. And what is written into memory that was freed shows in an export
that points there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_size_t, c_void_p, memset
from typing import Any

from ..abi.descriptors import Descriptor
from ..abi.libraries import python_api
from ..info.steps import Stage, enter
from ..info.values import attempt
from ..interfaces.dlpack_structs.structs import CPU

_GETTERS = {"AI": (Stage.AI, "__array_interface__"), "AS": (Stage.AS, "__array_struct__")}
LIMIT_BYTES = 2**20
"""Larger blocks are unmapped when they are freed."""
_MORE_BYTES = (1, *range(0, 208, 16))
"""What an owner has around its elements in the same allocation: headers, alignment."""
_BLOCKS = 8
_OVERWRITING = 0xA5

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
        is_small = array.hull is not None and array.hull[1] - array.hull[0] <= LIMIT_BYTES
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
    data = held.get("data") if isinstance(held, dict) else None
    address = data[0] if isinstance(data, tuple) and data else array.address
    with blocks_of(high - low) as blocks:
        return isinstance(address, int) and any(
            start <= address < start + size for start, size in blocks
        )


def overwrite(nbytes: int) -> None:
    """Writes into memory that an owner of so many bytes may have freed."""
    if 0 < nbytes <= LIMIT_BYTES:
        with blocks_of(nbytes) as blocks:
            for start, size in blocks:
                memset(start, _OVERWRITING, size)


@contextmanager
def blocks_of(nbytes: int) -> Iterator[list[tuple[int, int]]]:
    """Address and size of blocks of about that size, from allocators that return what was freed
    last: those of Python and C and, if NumPy is in the process already, NumPy's.
    """
    count = min(_BLOCKS, 1 + LIMIT_BYTES // max(nbytes, 1))
    taken: list[tuple[Callable[[int], None], int, int]] = []
    for allocate, free in _ALLOCATORS:
        for size in [nbytes + more for more in _MORE_BYTES] * count:
            if start := getattr(_api, allocate)(size):
                taken.append((getattr(_api, free), start, size))
    empty = getattr(sys.modules.get("numpy"), "empty", None)
    arrays = [empty(nbytes, "u1") for _ in range(count)] if empty is not None else []
    blocks = [(start, size) for _, start, size in taken]
    try:
        yield blocks + [(one.__array_interface__["data"][0], nbytes) for one in arrays]
    finally:
        for give_back, start, _ in taken:
            give_back(start)
