"""Info on DLPack's C exchange table: what the struct holds, and what each of its functions does."""

from __future__ import annotations

import ctypes
import gc
import sys
from dataclasses import replace
from typing import Any

from ...abi.capsule import capsule_pointer
from ..dlpack_protocol.exporter import CountedTensor
from ..dlpack_structs.structs import (
    Counter,
    Tensor,
    VersionedManaged,
    callable_deleter,
    count_deletions,
    read_managed,
    read_tensor,
)
from .table import ATTRIBUTE, Answer, ExchangeTable, read_header, read_table
from ...abi.memory import Memory
from ...exports.memory import Block
from ...info import CapsuleInfo, ExchangeInfo, TableLookInfo
from ...info.steps import Stage, enter
from ...info.values import attempt, error_info, type_name
from ...plan import Plan

_REPEATS = 8
_JUNK_ADDRESS, _JUNK_OFFSET = 8, 2**40 + 1
_NEW_SHAPE = (2, 3)
_FLOAT32, _NO_TYPE = (2, 32), (200, 7)
_IMMORTAL: list[Counter | CountedTensor] = []
"""What a leaked tensor still points to, or is: it must never be freed."""


def exchange_info(
    obj: Any, memory: Memory, *, device: list[int], deep: bool
) -> ExchangeInfo | None:
    """Info on the table that `type(obj)` has; None where neither the type nor the object has one.

    `device` is where the object says it is: the allocator and the current stream are asked for
    that. `deep` also imports and allocates, which a live object's library is not asked to do.
    """
    enter(Stage.DX, "table")
    kind = type(obj)
    value, error = attempt(lambda: getattr(kind, ATTRIBUTE, None))
    if error is not None:
        return ExchangeInfo(error=error)
    if value is None:
        present, _ = attempt(lambda: getattr(obj, ATTRIBUTE, None) is not None)
        return ExchangeInfo(on_type=False) if present else None
    table, info = read_table(value, memory)
    if table is None:
        return info
    info = read_header(info, table, memory)
    if _is_callable(info):
        _call(info, obj, table, memory, device if deep else None)
        enter(Stage.DX, "stream")
        info.stream = _outcome(table.current_stream(device))
    info.again = _again(kind, value, table, memory)
    return info


def exchange_table(obj: Any, memory: Memory) -> ExchangeTable | None:
    """The table of the object's type, if its functions can be called."""
    value, _ = attempt(lambda: getattr(type(obj), ATTRIBUTE, None))
    table, info = read_table(value, memory)
    if table is None or not _is_callable(read_header(info, table, memory)):
        return None
    return table


def _is_callable(info: ExchangeInfo) -> bool:
    """Whether the functions are at the places of this version of the struct, and are functions."""
    entries = dict(info.entries)
    optional = entries.pop("dltensor_from_py_object_no_sync")
    return (
        info.name == "dlpack_exchange_api"
        and info.version[0] == 1
        and set(entries.values()) == {"executable"}
        and optional != "not executable"
    )


def _again(kind: type, value: Any, table: ExchangeTable, memory: Memory) -> TableLookInfo:
    """Is it the same table on a second look, with the same content?"""
    second_value, error = attempt(lambda: getattr(kind, ATTRIBUTE))
    second = read_table(second_value, memory)[0] if error is None else None
    if second is None:
        return TableLookInfo()
    same_address = capsule_pointer(value) == capsule_pointer(second_value)
    return TableLookInfo(same_address, bytes(second) == bytes(table))


# -- what the functions do -----------------------------------------------------------------------


def _call(
    info: ExchangeInfo,
    obj: Any,
    table: ExchangeTable,
    memory: Memory,
    allocate_on: list[int] | None,
) -> None:
    """Calls each function, and notes in `info` what it did."""
    info.export = _exported(obj, table, memory)
    if info.entries["dltensor_from_py_object_no_sync"] == "executable":
        info.bare = _bare(obj, table, memory)
    if allocate_on is not None:
        if info.export.is_tensor:
            info.imported = _imported(obj, table, memory)
        info.later_major = _later_major(table)
        info.allocated = _allocated(table, allocate_on, memory)
        info.allocation_refused = _refused_allocation(table, allocate_on, memory)


def _outcome(answer: Answer) -> CapsuleInfo:
    """The result, the error, and the value where it is a handle and no address."""
    info = _result(answer)
    info.value = answer.value if isinstance(answer.value, int) else None
    return info


def _result(answer: Answer) -> CapsuleInfo:
    error = None if answer.error is None else error_info(answer.error)
    return CapsuleInfo(capsule=True, result=answer.result, error=error)


def _read(address: int | None, memory: Memory) -> VersionedManaged | None:
    raw = memory.read(address, ctypes.sizeof(VersionedManaged)) if address else None
    return None if raw is None else VersionedManaged.from_buffer_copy(raw)


def _delete(address: int, memory: Memory) -> None:
    managed = _read(address, memory)
    deleter = None if managed is None else callable_deleter(managed, memory)
    if deleter is not None:
        enter(Stage.DX, "deleter")
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)


def _exported(obj: Any, table: ExchangeTable, memory: Memory) -> CapsuleInfo:
    """The owning export: its fields, what its deleter gives back, or how it was refused."""
    enter(Stage.DX, "export")
    answer = table.export(obj)
    managed = _read(answer.value, memory) if answer.result == 0 else None
    info = _result(answer)
    if managed is None:
        return info
    info = read_managed(info, managed, memory)
    _delete(answer.value, memory)
    before = sys.getrefcount(obj)
    for _ in range(_REPEATS):
        enter(Stage.DX, "export")
        _delete(table.export(obj).value, memory)
    return replace(info, references=[before, sys.getrefcount(obj)])


def _bare(obj: Any, table: ExchangeTable, memory: Memory) -> CapsuleInfo:
    """The borrowed export, and the references it leaves."""
    enter(Stage.DX, "bare")
    before = sys.getrefcount(obj)
    answers = [table.export_bare(obj) for _ in range(_REPEATS)]
    after = sys.getrefcount(obj)
    answer = answers[-1]
    info = replace(_result(answer), references=[before, after])
    return read_tensor(info, answer.value, memory) if answer.result == 0 else info


def _has_table(kind: type, table: ExchangeTable, memory: Memory) -> bool:
    """Whether this is a type of the table's own: several types may have one table."""
    present, _ = attempt(lambda: getattr(kind, ATTRIBUTE, None))
    found, _ = read_table(present, memory)
    return found is not None and bytes(found) == bytes(table)


def _imported(obj: Any, table: ExchangeTable, memory: Memory) -> CapsuleInfo:
    """A tensor of the object's memory taken in again: the result, and the deleter's calls."""
    enter(Stage.DX, "export")
    address = table.export(obj).value
    counter = count_deletions(address, _read(address, memory), memory)
    if counter is None:
        return CapsuleInfo(uncounted=True)
    _IMMORTAL.append(counter)
    enter(Stage.DX, "import")
    answer = table.take(address)
    info = _result(answer)
    if answer.result != 0 or answer.value is None:
        return replace(info, null=answer.result == 0)
    info.type = type_name(answer.value)
    kind = type(answer.value)
    info.own_type = kind is type(obj) or _has_table(kind, table, memory)
    info.calls_while_held = counter.calls
    enter(Stage.DX, "import")
    answer.value = None
    if not counter.calls:
        gc.collect()
    info.calls = counter.calls
    if counter.calls == 1:
        _IMMORTAL.remove(counter)
    return info


def _later_major(table: ExchangeTable) -> CapsuleInfo:
    """The import of a tensor that says version 2.0: the result, and the deleter's calls."""
    tensor = CountedTensor(Block(Plan(shape=(3,), fill=0)), versioned=True)
    assert isinstance(tensor.managed, VersionedManaged)
    tensor.managed.major = 2
    enter(Stage.DX, "import=major-2")
    answer = table.take(tensor.publish())
    info = _result(answer)
    answer.value = None
    gc.collect()
    info.calls = tensor.deleter_calls
    if not info.calls:
        _IMMORTAL.append(tensor)
    return info


def _prototype(device: list[int], dtype: tuple[int, int]) -> Tensor:
    """A prototype with junk in every field that an allocator must not look at."""
    return Tensor(
        data=_JUNK_ADDRESS,
        device_type=device[0],
        device_id=device[1],
        ndim=len(_NEW_SHAPE),
        code=dtype[0],
        bits=dtype[1],
        lanes=1,
        shape=(ctypes.c_int64 * len(_NEW_SHAPE))(*_NEW_SHAPE),
        strides=ctypes.cast(_JUNK_ADDRESS, ctypes.POINTER(ctypes.c_int64)),
        byte_offset=_JUNK_OFFSET,
    )


def _allocated(table: ExchangeTable, device: list[int], memory: Memory) -> CapsuleInfo:
    """A new tensor of two by three float32: its fields, and the reported errors."""
    prototype = _prototype(device, _FLOAT32)
    enter(Stage.DX, "allocate")
    answer = table.allocate(prototype)
    info = replace(_result(answer), reported=answer.reported, asked=list(_NEW_SHAPE))
    managed = _read(answer.value, memory) if answer.result == 0 else None
    if managed is None:
        return info
    info = read_managed(replace(info, device_asked=device), managed, memory)
    _delete(answer.value, memory)
    return info


def _refused_allocation(table: ExchangeTable, device: list[int], memory: Memory) -> CapsuleInfo:
    """The same for an element type that does not exist."""
    prototype = _prototype(device, _NO_TYPE)
    enter(Stage.DX, "allocate")
    answer = table.allocate(prototype)
    if answer.result == 0 and answer.value:
        _delete(answer.value, memory)
    return replace(_result(answer), reported=answer.reported)
