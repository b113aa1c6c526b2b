"""DLPack's C exchange table (DLPack 1.3) from outside: its struct, and its functions by ctypes.

A type has the table as a capsule named `dlpack_exchange_api` in the attribute
`__dlpack_c_exchange_api__`. Its functions are C functions that expect the GIL (all except the
allocator touch Python objects) and report failure by -1 and a Python exception; `ctypes.PYFUNCTYPE`
keeps the lock and raises the exception that was set. What a function did is told by its `Answer`;
nothing is judged here.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from ctypes import POINTER, PYFUNCTYPE, byref, c_char_p, c_int, c_int32, c_uint32, c_void_p
from dataclasses import dataclass, field, replace
from typing import Any

from ...info import ExchangeInfo
from ...abi.capsule import capsule_name, capsule_pointer, is_capsule
from ..dlpack_structs.structs import Tensor
from ...abi.libraries import python_api
from ...abi.memory import POINTER_BYTES, Memory

ATTRIBUTE = "__dlpack_c_exchange_api__"
ENTRIES = (
    "managed_tensor_allocator",
    "managed_tensor_from_py_object_no_sync",
    "managed_tensor_to_py_object_no_sync",
    "dltensor_from_py_object_no_sync",
    "current_work_stream",
)
_CHAIN_LIMIT = 16

_SET_ERROR = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
_ALLOCATE = PYFUNCTYPE(c_int, POINTER(Tensor), POINTER(c_void_p), c_void_p, _SET_ERROR)
_FROM_OBJECT = PYFUNCTYPE(c_int, ctypes.py_object, POINTER(c_void_p))
_TO_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
_BARE_FROM_OBJECT = PYFUNCTYPE(c_int, ctypes.py_object, POINTER(Tensor))
_CURRENT_STREAM = PYFUNCTYPE(c_int, c_int, c_int32, POINTER(c_void_p))

_decref = python_api().Py_DecRef
_decref.argtypes = [ctypes.py_object]


class ExchangeTable(ctypes.Structure):
    """`DLPackExchangeAPI` (56 bytes), its header included; the functions as addresses."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev_api", c_void_p),
        *((name, c_void_p) for name in ENTRIES),
    ]

    def export(self, obj: Any) -> Answer:
        """An owned `DLManagedTensorVersioned`: the answer's `value` is its address."""
        out = c_void_p()
        function = _FROM_OBJECT(self.managed_tensor_from_py_object_no_sync)
        return _answer(lambda: function(obj, byref(out)), lambda: out.value)

    def export_bare(self, obj: Any) -> Answer:
        """A borrowed `DLTensor`, valid until control returns: the answer's `value`."""
        out = Tensor()
        function = _BARE_FROM_OBJECT(self.dltensor_from_py_object_no_sync)
        return _answer(lambda: function(obj, byref(out)), lambda: out)

    def take(self, managed: int) -> Answer:
        """An object of the table's type over the managed tensor, which then belongs to it."""
        out = c_void_p()
        function = _TO_OBJECT(self.managed_tensor_to_py_object_no_sync)
        return _answer(lambda: function(managed, byref(out)), lambda: _owned(out))

    def current_stream(self, device: Sequence[int]) -> Answer:
        """The handle of the stream that the library works on; None (NULL) for the default."""
        out = c_void_p()
        function = _CURRENT_STREAM(self.current_work_stream)
        return _answer(lambda: function(*device, byref(out)), lambda: out.value)

    def allocate(self, prototype: Tensor) -> Answer:
        """A new managed tensor: `value` is its address, `reported` are the errors that were set."""
        out = c_void_p()
        reported: list[str] = []

        def set_error(context: int, kind: bytes | None, message: bytes | None) -> None:
            reported.append((kind or b"").decode("latin-1"))

        function = _ALLOCATE(self.managed_tensor_allocator)
        callback = _SET_ERROR(set_error)
        answer = _answer(
            lambda: function(byref(prototype), byref(out), None, callback), lambda: out.value
        )
        answer.reported = reported
        return answer


@dataclass
class Answer:
    """What one call came to: the C result, the Python exception it left, and what it handed out."""

    result: int | None
    error: BaseException | None
    value: Any = None
    reported: list[str] = field(default_factory=list)


def _answer(call: Callable[[], int], value: Callable[[], Any]) -> Answer:
    try:
        result = call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Answer(None, error.with_traceback(None))  # its frames would keep the object
    return Answer(result, None, value() if result == 0 else None)


def _owned(out: c_void_p) -> Any:
    """The object behind a new reference, which ctypes counts again."""
    if not out.value:
        return None
    found = ctypes.cast(out, ctypes.py_object).value
    _decref(found)
    return found


def read_table(value: Any, memory: Memory) -> tuple[ExchangeTable | None, ExchangeInfo]:
    """(the table of an attribute's value, info on its capsule); None without a readable table."""
    info = ExchangeInfo(capsule=is_capsule(value), type=type(value).__name__)
    if not info.capsule:
        return None, info
    info.name = capsule_name(value, memory.text)
    address = capsule_pointer(value)
    raw = (
        memory.read(address, ctypes.sizeof(ExchangeTable)) if address % POINTER_BYTES == 0 else None
    )
    if raw is None:
        return None, replace(info, unmapped=True)
    return ExchangeTable.from_buffer_copy(raw), info


def read_header(info: ExchangeInfo, table: ExchangeTable, memory: Memory) -> ExchangeInfo:
    """The info with version, chain of older tables, and each function: NULL, code, or other memory.

    `chain` is the number of older tables, or a word for what keeps it from ending.
    """
    entries = {}
    for name in ENTRIES:
        address = getattr(table, name)
        executable = bool(address) and memory.map.covers(address, address + 1, "x")
        entries[name] = "executable" if executable else "not executable" if address else "NULL"
    version = [table.major, table.minor]
    return replace(info, version=version, chain=_chain(table.prev_api, memory), entries=entries)


def _chain(address: int | None, memory: Memory) -> int | str:
    length = 0
    while address:
        raw = memory.read(address, 16) if address % POINTER_BYTES == 0 else None
        if raw is None:
            return "unmapped"
        length += 1
        if length > _CHAIN_LIMIT:
            return "endless"
        address = int.from_bytes(raw[8:16], sys.byteorder)
    return length
