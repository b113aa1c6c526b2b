"""Info on resizing: does memory move or vanish while it is exported?

Types that can grow or close do so through a handful of well-known methods. Each is first tried on a fresh
object without exports, so that operations that the type cannot do anyway are left out; then on one that exports
its memory. Methods that take an extent first grow the object beyond the size from which the allocator maps
each block for itself: such a block is unmapped when it is freed, which the map of the process proves. glibc
raises that size up to 32 MiB without a request; `_map_large_blocks` pins it to its usual start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..abi.dlpack import Exported
from ..abi.libraries import c_function
from ..abi.memory import Memory
from ..descriptors import Descriptor, Rejected, of_array_interface, of_buffer, of_dlpack
from ..info import ResizeInfo
from ..producer import Unsupported
from ..steps import enter
from ..values import attempt
from .buffer import hold_buffer, simple_request
from .capsules import NEWEST, export
from .interface import interface_info

__all__ = ["resize_info"]

_M_MMAP_THRESHOLD = -3
_MAPPING_THRESHOLD_BYTES = 2**17
_GROWN_ELEMENTS = 2**18
"""Above the threshold, whatever the element type."""

_METHODS: dict[str, Callable[[Any], Any]] = {
    "append": lambda obj: obj.append(0),
    "extend": lambda obj: obj.extend(obj[:1]),
    "pop": lambda obj: obj.pop(),
    "clear": lambda obj: obj.clear(),
    "close": lambda obj: obj.close(),
    "resize": lambda obj: obj.resize(2 * _GROWN_ELEMENTS),
    "resize_": lambda obj: obj.resize_((2 * _GROWN_ELEMENTS,)),
}
_PREPARATIONS: dict[str, Callable[[Any], Any]] = {
    "resize": lambda obj: obj.resize(_GROWN_ELEMENTS),
    "resize_": lambda obj: obj.resize_((_GROWN_ELEMENTS,)),
}


def resize_info(again: Callable[[], Any], memory: Memory) -> dict[str, dict[str, ResizeInfo]]:
    """What came of each method, by method and interface.

    Only methods that work on an object without exports, and interfaces that it has.
    """
    info: dict[str, dict[str, ResizeInfo]] = {}
    _map_large_blocks()
    for method, resize in _METHODS.items():
        fresh = _fresh(again)
        if fresh is None or not callable(getattr(fresh, method, None)):
            continue
        enter(f"life:resize={method}")
        _, error = attempt(partial(resize, fresh))
        if error is not None:
            continue
        info[method] = {}
        for interface, hold in _HOLDS.items():
            observed = _resized_while_held(again, memory, method, hold)
            if observed is not None:
                info[method][interface] = observed
    return info


_Hold = Callable[[Any, Memory], tuple[Any, "Descriptor | None"]]
"""What holds an object's exported memory: (what holds it, the array that was exported)."""


def _map_large_blocks() -> None:
    """Blocks from 128 KiB on get their own mapping from now on (glibc; elsewhere nothing happens)."""
    mallopt = c_function("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPING_THRESHOLD_BYTES)


def _fresh(again: Callable[[], Any]) -> Any:
    enter("again:produce")
    fresh, error = attempt(again)
    return None if error is not None or isinstance(fresh, Unsupported) else fresh


def _resized_while_held(
    again: Callable[[], Any], memory: Memory, method: str, hold: _Hold
) -> ResizeInfo | None:
    fresh = _fresh(again)
    if fresh is None:
        return None
    prepare = _PREPARATIONS.get(method)
    if prepare is not None and attempt(lambda: prepare(fresh))[1] is not None:
        return None
    holder, array = hold(fresh, memory)
    if array is None or array.span is None:
        return None
    enter(f"life:resize={method}")
    _, refusal = attempt(lambda: _METHODS[method](fresh))
    memory.map.refresh()
    info = ResizeInfo(
        refused=None if refusal is None else refusal.type,
        mapped=memory.readable(*array.span),
        same_address=_address(fresh, memory, hold) == array.address,
    )
    enter("life:release")
    _let_go(holder)
    del holder
    if refusal is not None:
        _, error = attempt(lambda: _METHODS[method](fresh))
        info.allowed_after = error is None
    return info


def _address(obj: Any, memory: Memory, hold: _Hold) -> int | None:
    holder, array = hold(obj, memory)
    _let_go(holder)
    return None if array is None else array.address


def _let_go(holder: Any) -> None:
    if hasattr(holder, "release"):
        holder.release()


def _hold_buffer(obj: Any, memory: Memory) -> tuple[Any, Descriptor | None]:
    view = hold_buffer(obj)
    return view, None if view is None else _read(lambda: of_buffer(view.info(memory)))


def _hold_capsule(obj: Any, memory: Memory) -> tuple[Any, Descriptor | None]:
    if not hasattr(obj, "__dlpack__"):
        return None, None
    for keywords in (NEWEST, {}):
        exported = export(obj, memory, "again", keywords)
        if isinstance(exported, Exported):
            info = exported.info()
            return exported, _read(partial(of_dlpack, info))
    return None, None


def _hold_dict(obj: Any, memory: Memory) -> tuple[Any, Descriptor | None]:
    """The dict and the object, as a consumer of the array interface holds them."""
    if not hasattr(obj, "__array_interface__"):
        return None, None
    info, dictionary = interface_info(obj, memory)
    requests = {"SIMPLE": simple_request(obj, memory)}
    return (dictionary, obj), _read(lambda: of_array_interface(info, requests))


_HOLDS = {"PB": _hold_buffer, "DL": _hold_capsule, "AI": _hold_dict}


def _read(read: Callable[[], Descriptor]) -> Descriptor | None:
    try:
        return read()
    except Rejected:
        return None
