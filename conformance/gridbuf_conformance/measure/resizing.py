"""Info on resizing: does memory move or vanish while it is exported?

Types that can grow, shrink or close do so by methods. Their names tell (`_NAME`), in any case, and
a call tells the rest: of the arguments in `_ARGUMENTS`, the first ones that change the memory of a
fresh object without exports are used, in a fork. Then the method is called on an object that
exports its memory. Before that the object is grown, if a method can do that, beyond the size from
which the allocator maps each block for itself: such a block is unmapped when it is freed, which the
map of the process proves. glibc raises that size up to 32 MiB without a request;
`_map_large_blocks` pins it to its usual start.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..abi.descriptors import Descriptor, Rejected
from ..interfaces.array_interface.descriptor import of_array_interface
from ..interfaces.buffer_protocol.descriptor import of_buffer
from ..interfaces.dlpack_structs.descriptor import of_dlpack
from ..interfaces.dlpack_structs.structs import Exported
from ..abi.libraries import c_function
from ..abi.memory import Memory
from ..info import ResizeInfo
from ..info.steps import Stage, enter
from ..info.values import attempt, has
from ..plan.producer import is_declined
from ..interfaces.buffer_protocol.measure import hold_buffer, simple_request
from ..interfaces.dlpack_protocol.measure import NEWEST, export
from .forks import CAN_FORK, run_fork
from .interface import interface_info

_M_MMAP_THRESHOLD = -3
_MAPPING_THRESHOLD_BYTES = 2**17
_GROWN_ELEMENTS = 2**17
"""At the threshold with elements of one byte, above it with others."""

_NAME = re.compile(
    r"(?!_)\w*(append|push|extend|insert|pop|erase|remove|clear|resize|reserve|shrink|squeeze"
    r"|truncate|grow|close|release|reset|initialize|delete|setsize|set_size"
    r"|setnumberof(tuples|values))\w*",
    re.IGNORECASE,
)
_ARGUMENTS: tuple[Callable[[Any, int], tuple[Any, ...]], ...] = (
    lambda obj, extent: (extent,),
    lambda obj, extent: ((extent,),),
    lambda obj, extent: (bytes(extent),),
    lambda obj, extent: (),
    lambda obj, extent: (0,),
    lambda obj, extent: (0, 0),
    lambda obj, extent: (obj[:1],),
)
"""What methods are called with: those that take an extent come first."""


@dataclass(frozen=True)
class _Method:
    """A method that changes the memory of an object: its name, and its choice of `_ARGUMENTS`."""

    name: str
    arguments: int

    def __call__(self, obj: Any, extent: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(obj, self.name)(*_ARGUMENTS[self.arguments](obj, extent))


_METHODS: dict[type, tuple[_Method, ...]] = {}
"""The methods of each type, found once: with the first object that has an element."""


def resize_info(again: Callable[[], Any], memory: Memory) -> dict[str, dict[str, ResizeInfo]]:
    """What came of each method, by method and interface.

    Only methods that change an object without exports, and interfaces that it has.
    """
    fresh = _fresh(again)
    if fresh is None:
        return {}
    held = {name: hold for name, hold in _HOLDS.items() if _is_held(hold, fresh, memory)}
    if not held:
        return {}
    _map_large_blocks()
    kind = type(fresh)
    if kind not in _METHODS:
        span = _span(fresh, memory)
        if span is None or span[0] == span[1]:
            return {}
        _METHODS[kind] = tuple(_search(sorted(filter(_NAME.fullmatch, dir(fresh))), again, memory))
    del fresh
    grow = next((one for one in _METHODS[kind] if _grows(one, again, memory)), None)
    info: dict[str, dict[str, ResizeInfo]] = {}
    for method in _METHODS[kind]:
        if not _works(method, again):
            continue
        seen = {
            interface: _resized_while_held(again, memory, method, grow, hold)
            for interface, hold in held.items()
        }
        info[method.name] = {key: one for key, one in seen.items() if one is not None}
    return info


def _search(names: list[str], again: Callable[[], Any], memory: Memory) -> Iterator[_Method]:
    """The methods of these names that change a fresh object.

    They are called with any arguments, so in a fork: one that dies then says nothing of exports.
    """
    left = names
    while left:
        pairs, death = run_fork(partial(_answers, left, again, memory)) if CAN_FORK else ([], None)
        if death is None:  # it waits for threads, which a fork does not have
            pairs = [*_answers(left, again, memory)]
        yield from (_Method(name, place) for name, place in pairs if place is not None)
        left = left[len(pairs) + 1 :]  # the process died of the one in between


def _answers(
    names: list[str], again: Callable[[], Any], memory: Memory
) -> Iterator[tuple[str, int | None]]:
    """Each name, and the place of the arguments with which the method changes an object."""
    for name in names:
        method = _found(name, again, memory)
        yield name, None if method is None else method.arguments


def _found(name: str, again: Callable[[], Any], memory: Memory) -> _Method | None:
    """The method, if it changes a fresh object."""
    for place in range(len(_ARGUMENTS)):
        method, fresh = _Method(name, place), _fresh(again)
        if fresh is None or not callable(getattr(fresh, name, None)):
            return None
        before = _span(fresh, memory)
        enter(Stage.LIFE, f"resize={name}")
        _, error = attempt(partial(method, fresh, _GROWN_ELEMENTS))
        if error is None and _span(fresh, memory) != before:
            return method
    return None


def _works(method: _Method, again: Callable[[], Any]) -> bool:
    """Whether it works on an object of this plan, which may be read-only."""
    fresh = _fresh(again)
    enter(Stage.LIFE, f"resize={method.name}")
    return fresh is not None and attempt(partial(method, fresh, _GROWN_ELEMENTS))[1] is None


def _grows(method: _Method, again: Callable[[], Any], memory: Memory) -> bool:
    fresh = _fresh(again)
    enter(Stage.LIFE, f"resize={method.name}")
    if fresh is None or attempt(partial(method, fresh, _GROWN_ELEMENTS))[1] is not None:
        return False
    low, high = _span(fresh, memory) or (0, 0)
    return high - low >= _MAPPING_THRESHOLD_BYTES


def _span(obj: Any, memory: Memory) -> tuple[int, int] | None:
    """The memory of an object, from the first interface that tells."""
    for hold in _HOLDS.values():
        holder, array = hold(obj, memory)
        _let_go(holder)
        if array is not None and array.span is not None:
            return array.span
    return None


_Hold = Callable[[Any, Memory], tuple[Any, "Descriptor | None"]]
"""What holds an object's exported memory: (what holds it, the array that was exported)."""


def _map_large_blocks() -> None:
    """Blocks from 128 KiB on get their own mapping from now on (glibc; no effect elsewhere)."""
    mallopt = c_function("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPING_THRESHOLD_BYTES)


def _fresh(again: Callable[[], Any]) -> Any:
    enter(Stage.AGAIN, "produce")
    fresh, error = attempt(again)
    return None if error is not None or is_declined(fresh) else fresh


def _resized_while_held(
    again: Callable[[], Any], memory: Memory, method: _Method, grow: _Method | None, hold: _Hold
) -> ResizeInfo | None:
    fresh = _fresh(again)
    if fresh is None:
        return None
    if grow is not None and attempt(partial(grow, fresh, _GROWN_ELEMENTS))[1] is not None:
        return None
    holder, array = hold(fresh, memory)
    if array is None or array.span is None:
        return None
    enter(Stage.LIFE, f"resize={method.name}")
    change = partial(method, fresh, 2 * _GROWN_ELEMENTS)
    _, refusal = attempt(change)
    memory.map.refresh()
    info = ResizeInfo(
        refused=None if refusal is None else refusal.type,
        mapped=memory.readable(*array.span),
        same_address=_address(fresh, memory, hold) in (None, array.address),
    )
    enter(Stage.LIFE, "release")
    _let_go(holder)
    del holder
    if refusal is not None:
        _, error = attempt(change)
        info.allowed_after = error is None
    return info


def _address(obj: Any, memory: Memory, hold: _Hold) -> int | None:
    holder, array = hold(obj, memory)
    _let_go(holder)
    return None if array is None else array.address


def _is_held(hold: _Hold, obj: Any, memory: Memory) -> bool:
    holder, array = hold(obj, memory)
    _let_go(holder)
    return array is not None


def _let_go(holder: Any) -> None:
    if hasattr(holder, "release"):
        holder.release()


def _hold_buffer(obj: Any, memory: Memory) -> tuple[Any, Descriptor | None]:
    view = hold_buffer(obj)
    return view, None if view is None else _read(lambda: of_buffer(view.info(memory)))


def _hold_capsule(obj: Any, memory: Memory) -> tuple[Any, Descriptor | None]:
    if not has(obj, "__dlpack__"):
        return None, None
    for keywords in (NEWEST, {}):
        exported = export(obj, memory, "again", keywords)
        if isinstance(exported, Exported):
            info = exported.info()
            return exported, _read(partial(of_dlpack, info))
    return None, None


def _hold_dict(obj: Any, memory: Memory) -> tuple[Any, Descriptor | None]:
    """The dict and the object, as a consumer of the array interface holds them."""
    if not has(obj, "__array_interface__"):
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
