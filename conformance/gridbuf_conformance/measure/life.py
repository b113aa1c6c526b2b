"""Info on lifetime: which objects keep memory alive, which free it, which memory moves or leaks.

It uses the map of the process (is the exported memory still mapped?), counted calls of deleters,
reference counts, and the allocator's own count of live bytes over many repetitions.

Freed memory can stay mapped and keep its content. So after each drop, memory of the same size is
allocated and written: by both allocators of the process, and by the producer, which makes the same
array with another content. Held memory keeps its content.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from ..interfaces.array_struct.struct import read_array_struct
from ..abi.descriptors import Descriptor, Rejected
from ..interfaces.array_interface.descriptor import of_array_interface
from ..interfaces.array_struct.descriptor import of_array_struct
from ..interfaces.buffer_protocol.descriptor import of_buffer
from ..interfaces.dlpack_structs.descriptor import of_dlpack
from ..interfaces.dlpack_structs.structs import Counter, Exported
from ..abi.libraries import c_function
from ..abi.memory import Memory
from ..info import (
    BufferLifeInfo,
    CapsuleLifeInfo,
    DropInfo,
    GrowthInfo,
    LifeInfo,
    LossInfo,
    TwoViewsInfo,
)
from ..info.steps import Stage, enter
from ..info.values import attempt, error_info, has
from ..plan import Plan
from ..plan.producer import is_declined
from ..interfaces.buffer_protocol.measure import hold_buffer
from ..interfaces.dlpack_protocol.measure import NEWEST, export
from .held import Held, hooks
from .interface import interface_info
from .resizing import resize_info
from .reuse import LIMIT_BYTES, overwrite

_LEAK_ITERATIONS = 24
_IMMORTAL: list[Counter] = []
"""Counting deleters that a leaked capsule still points to: they must never be freed."""


def life_info(
    obj: Any,
    held: Held,
    memory: Memory,
    again: Callable[[], Any] | None,
    other: Callable[[], Any] | None,
    plan: Plan | None,
) -> LifeInfo:
    """All lifetime info on an object; without `again` only what cannot harm it. `other` makes the
    same array as `again` with another content."""
    info = LifeInfo()
    if "AI" in held.found:
        info.dict_drop = _drop_dict(obj, memory)
    for hook in hooks("add_life"):
        hook(info, held, obj)
    if "PB" in held.found:
        info.buffer = _buffer_release(obj, memory)
    exporter = _exporter(obj, held, memory)
    if exporter is not None:
        info.capsule = _capsule_info(obj, exporter, memory, risky=plan is not None)
    if again is not None and held.found:
        info.drops = _drop_orders(again, other, memory)
        if plan is not None and plan.ndim <= 1 and not plan.views:
            info.resizes = resize_info(again, memory)
    return info


def _drop_dict(obj: Any, memory: Memory) -> DropInfo | None:
    """Is the memory that a dict named still there when the dict is gone and the object is not?"""
    info, dictionary = interface_info(obj, memory)
    try:
        array = of_array_interface(info, None)
    except Rejected:
        return None
    is_owned = array.is_raw  # a buffer object in the dict owns its memory, and a consumer holds it
    if is_owned or array.span is None or not memory.readable(*array.span):
        return None
    before = _content(array, memory)
    enter(Stage.LIFE, "drop=dict")
    del dictionary
    overwrite(array.nbytes)
    memory.map.refresh()
    loss = _loss("dict", "AI", array, before, memory)
    return DropInfo(["dict"], [] if loss is None else [loss])


def _loss(
    dropped: str, survivor: str, array: Descriptor, before: str, memory: Memory
) -> LossInfo | None:
    """Whether memory that is held is unmapped, or has other content than before."""
    if array.span is None or not array.space_in(memory).readable(*array.span):
        return LossInfo(dropped, survivor)
    after = _content(array, memory)
    return None if after == before else LossInfo(dropped, survivor, before, after)


def _content(array: Descriptor, memory: Memory) -> str:
    """The bytes of the sampled elements in hexadecimal; empty where they must not be read."""
    if array.is_indirect:
        return ""
    space = array.space_in(memory)
    raw = space.elements(array.address, array.hull, array.sample_offsets(), array.itemsize)
    return (raw or b"").hex()


# -- buffer protocol -----------------------------------------------------------------------------


def _buffer_release(obj: Any, memory: Memory) -> BufferLifeInfo:
    """Reference counts over eight request-release pairs; two views' metadata in both orders."""
    counts = [sys.getrefcount(obj)]
    for _ in range(8):
        view = hold_buffer(obj)
        if view is not None:
            view.release()
        del view
    counts.append(sys.getrefcount(obj))
    return BufferLifeInfo(counts, [_two_views(obj, memory, first) for first in (0, 1)])


def _two_views(obj: Any, memory: Memory, first: int) -> TwoViewsInfo:
    held = [hold_buffer(obj), hold_buffer(obj)]
    views = [view for view in held if view is not None]
    if len(views) < len(held):
        return TwoViewsInfo(refused=True)
    before = [view.info(memory) for view in views]
    views[first].release()
    enter(Stage.PB, "metadata")
    after = views[1 - first].info(memory)
    same_address = before[0].buf == before[1].buf
    views[1 - first].release()
    return TwoViewsInfo(unchanged=after == before[1 - first], same_address=same_address)


# -- DLPack --------------------------------------------------------------------------------------


def _exporter(obj: Any, held: Held, memory: Memory) -> Callable[[], Exported] | None:
    """A function that exports the object again, if that is safe: the tensor was readable so far."""
    main = held.info.main
    if "DL" not in held.found or main is None or main.deleter == "not executable":
        return None
    keywords = {} if main.version is None else NEWEST

    def again() -> Exported:
        exported = export(obj, memory, "again", keywords)
        if not isinstance(exported, Exported):
            raise _Refused
        if exported.read() is None:
            raise _NoNewCapsule(exported.what, exported)
        return exported

    return again


class _Refused(Exception):
    """`__dlpack__` raised, after calls that worked."""


class _NoNewCapsule(Exception):
    """`__dlpack__` did not return a new capsule, after calls that did: what it returned, in words
    and, if it must not be destroyed while this is raised, as an object."""


def _capsule_info(
    obj: Any, export_once: Callable[[], Exported], memory: Memory, *, risky: bool
) -> CapsuleLifeInfo:
    held: list[Exported] = []  # here, so that no destructor runs while an exception is on its way
    try:
        held.append(export_once())
        held.append(export_once())
        if held[0].capsule is held[1].capsule:
            raise _NoNewCapsule("the capsule of the call before")
        held.clear()
        return _followed(obj, export_once, memory, risky=risky)
    except _NoNewCapsule as error:
        return CapsuleLifeInfo(again=error.args[0], error=error_info(error))
    except _Refused as error:
        return CapsuleLifeInfo(error=error_info(error))


def _followed(
    obj: Any, export_once: Callable[[], Exported], memory: Memory, *, risky: bool
) -> CapsuleLifeInfo:
    info = _counted(export_once)
    settle = memory.devices.settle
    info.unconsumed_growth = _growth(lambda: _drop(export_once()), settle)
    if info.deleter and not info.destructor_called_deleter:
        info.consumed_growth = _growth(lambda: _consume(export_once()), settle)
        if risky:
            # Without a holder of the GIL, a deleter that needs it crashes; with one, it does not.
            exported, other = export_once(), export_once()
            exported.mark_used()
            other.mark_used()
            enter(Stage.DL, "foreign-thread")
            info.foreign_thread = exported.delete_on_foreign_thread()
            info.references_without_gil = other.references_without_gil(obj)
    info.references = _references_around(obj, export_once)
    return info


def _counted(export_once: Callable[[], Exported]) -> CapsuleLifeInfo:
    """How often the deleter ran: for a capsule dropped unconsumed, and for one renamed first."""
    exported = export_once()
    counter = exported.count_deletions()
    info = CapsuleLifeInfo(deleter=counter is not None)
    enter(Stage.DL, "unconsumed")
    exported.capsule = None
    if counter is None:
        return info
    _IMMORTAL.append(counter)
    info.unconsumed_calls = counter.calls
    exported = export_once()
    name, name_address = exported.name, exported.name_address
    counter = exported.count_deletions()
    if counter is None:
        raise _NoNewCapsule("a capsule whose deleter cannot be replaced")
    _IMMORTAL.append(counter)
    exported.mark_used()
    enter(Stage.DL, "consumed")
    exported.capsule = None
    info.destructor_called_deleter = counter.calls > 0
    if not counter.calls:
        enter(Stage.DL, "deleter")
        exported.delete()
    after = exported.memory.text(name_address)
    info.name = name
    info.name_after = None if after is None else after.decode("latin-1")
    if counter.calls == 1 and info.unconsumed_calls == 1:
        del _IMMORTAL[-2:]
    return info


def _drop(exported: Exported) -> None:
    enter(Stage.DL, "unconsumed")
    exported.capsule = None


def _consume(exported: Exported) -> None:
    enter(Stage.DL, "deleter")
    exported.mark_used()
    exported.capsule, capsule = None, exported.capsule
    exported.delete()
    del capsule


def _references_around(obj: Any, export_once: Callable[[], Exported]) -> list[int]:
    """Reference counts before and after eight exports that were dropped unconsumed."""
    before = sys.getrefcount(obj)
    for _ in range(8):
        _drop(export_once())
    return [before, sys.getrefcount(obj)]


class _MallInfo(ctypes.Structure):
    """glibc's `mallinfo2`; only the counts of live bytes are read."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


_mallinfo = c_function("mallinfo2")
if _mallinfo is not None:
    _mallinfo.restype = _MallInfo


def _live_bytes() -> int:
    if _mallinfo is None:
        return 0
    info = _mallinfo()
    return int(info.uordblks + info.hblkhd)


def _growth(action: Callable[[], None], settle: Callable[[], None]) -> GrowthInfo:
    """Live bytes (C allocator) and blocks (Python's) gained in each of three rounds of repetitions.

    `settle` lets a device finish what it was given before anything is counted.

    A first, uncounted round fills caches. What grows in every round by at least one block an
    iteration is never given back. Only where something seems to grow is it done again with a
    collection after each round, which frees reference cycles and empties the interpreter's free
    lists: collecting is by far the dearest part. With other Python threads about, which allocate as
    they please, nothing is counted.
    """
    if threading.active_count() > 1:
        return GrowthInfo(_LEAK_ITERATIONS)
    collecting = gc.isenabled()
    gc.disable()
    try:
        rounds = _gained(action, settle, collect=False)
        if all(
            bytes_ >= _LEAK_ITERATIONS or blocks >= _LEAK_ITERATIONS for bytes_, blocks in rounds
        ):
            rounds = _gained(action, settle, collect=True)
    finally:
        if collecting:
            gc.enable()
    return GrowthInfo(_LEAK_ITERATIONS, rounds)


def _gained(
    action: Callable[[], None], settle: Callable[[], None], *, collect: bool
) -> list[list[int]]:
    levels = []
    for _ in range(4):
        for _ in range(_LEAK_ITERATIONS):
            action()
        settle()
        if collect:
            gc.collect()
        levels.append((_live_bytes(), sys.getallocatedblocks()))
    return [[q - p for p, q in zip(*pair)] for pair in pairwise(levels)]


# -- drop orders ---------------------------------------------------------------------------------


def _drop_orders(
    again: Callable[[], Any], other: Callable[[], Any] | None, memory: Memory
) -> list[DropInfo]:
    """For fresh objects, each holder dropped first once: which of the others' memory is left.

    A holder is the object itself, an open buffer ("PB"), a DLPack capsule ("DL") or an array struct
    ("AS"). The array interface's dict is none: it names no owner, and its consumers keep the
    object.
    """
    results: list[DropInfo] = []
    first = 0
    while True:
        enter(Stage.AGAIN, "produce")
        fresh, error = attempt(again)
        if error is not None or is_declined(fresh):
            return results
        holders = _Holders(fresh, memory)
        del fresh
        order = holders.order(first)
        results.append(holders.drop_all(order, other, apart=first == 0))
        first += 1
        if first >= len(order):
            return results


def _described(exported: Exported) -> Descriptor:
    return of_dlpack(exported.info())


class _Holders:
    """An object and everything that it exported, each of which can be dropped on its own."""

    def __init__(self, obj: Any, memory: Memory) -> None:
        self._memory = memory
        self._held: dict[str, Any] = {"object": obj}
        self._arrays: dict[str, Descriptor] = {}
        self._reads: dict[str, tuple[Descriptor, Callable[[], Descriptor]]] = {}
        self._hold_buffer(obj)
        self._hold_capsule(obj)
        self._hold_struct(obj)

    def order(self, first: int) -> list[str]:
        """The holders' names, rotated so that another one is first each time."""
        names = list(self._held)
        return names[first:] + names[:first]

    def drop_all(
        self, order: list[str], other: Callable[[], Any] | None, *, apart: bool
    ) -> DropInfo:
        """Drops one after another; before that, with `apart`, makes another array and its exports.

        `lost` lists each survivor whose memory was no longer mapped, or had other content, and
        after what; `changed` names the survivors whose own description (shape, strides, address)
        had become another one.
        """
        self._memory.devices.settle()
        before = {name: _content(array, self._memory) for name, array in self._arrays.items()}
        others: list[Any] = []  # kept, so that each takes another block of free memory
        lost: list[LossInfo] = []
        changed: list[str] = []
        if apart and other is not None:
            others += self._reused(other)
            exported = [_Holders(made, self._memory) for made in others]
            lost += self._losses("", order, before)
            for holders in exported:
                holders.drop_rest()
        for position, name in enumerate(order):
            enter(Stage.LIFE, f"drop={name}")
            self._drop(name)
            survivors = [later for later in order[position + 1 :] if later != "object"]
            if survivors:
                others += self._reused(other)
                lost += self._losses(name, survivors, before)
            for survivor in survivors:
                enter(Stage.LIFE, f"survivor={survivor}")
                if survivor not in changed and self._has_changed(survivor):
                    changed.append(survivor)
        return DropInfo(order, lost, changed)

    def drop_rest(self) -> None:
        """Drops what is left without looking at it."""
        enter(Stage.LIFE, "drop=second")
        for name in list(self._held):
            self._drop(name)

    def _reused(self, other: Callable[[], Any] | None) -> list[Any]:
        """Writes other content into memory that was freed; returns the array that now has it."""
        sizes = {array.nbytes for array in self._arrays.values()}
        if not sizes or max(sizes) > LIMIT_BYTES:
            return []
        for size in sizes:  # before anything else takes the blocks that were freed last
            overwrite(size)
        made = None
        if other is not None:
            enter(Stage.AGAIN, "produce")
            made, _ = attempt(other)
            enter(Stage.LIFE, "reuse")
        return [] if made is None or is_declined(made) else [made]

    def _losses(self, dropped: str, survivors: list[str], before: dict[str, str]) -> list[LossInfo]:
        """What the survivors lost, each once."""
        self._memory.devices.settle()
        self._memory.map.refresh()
        found = []
        for name in [name for name in survivors if name in self._arrays]:
            enter(Stage.LIFE, f"survivor={name}")
            loss = _loss(dropped, name, self._arrays[name], before[name], self._memory)
            if loss is not None:
                found.append(loss)
                del self._arrays[name]
        return found

    def _has_changed(self, name: str) -> bool:
        if name not in self._reads:
            return False
        before, read = self._reads[name]
        try:
            return read() != before
        except Rejected:
            return True

    def _drop(self, name: str) -> None:
        holder = self._held.pop(name)
        self._reads.pop(name, None)
        if name == "PB":
            holder.release()

    def _remember(self, name: str, holder: Any, read: Callable[[], Descriptor]) -> None:
        self._held[name] = holder
        try:
            array = read()
        except Rejected:
            return
        self._reads[name] = array, read
        space = array.space_in(self._memory)
        if array.span is not None and space.readable(*array.span):
            self._arrays[name] = array

    def _hold_buffer(self, obj: Any) -> None:
        view = hold_buffer(obj)
        if view is not None:
            self._remember("PB", view, lambda: of_buffer(view.info(self._memory)))

    def _hold_capsule(self, obj: Any) -> None:
        if not has(obj, "__dlpack__"):
            return
        for keywords in (NEWEST, {}):
            exported = export(obj, self._memory, "again", keywords)
            if isinstance(exported, Exported):
                self._remember("DL", exported, partial(_described, exported))
                return

    def _hold_struct(self, obj: Any) -> None:
        enter(Stage.AS, "getter")
        capsule, error = attempt(lambda: getattr(obj, "__array_struct__", None))
        if error is None and capsule is not None:
            self._remember(
                "AS", capsule, lambda: of_array_struct(read_array_struct(capsule, self._memory))
            )
