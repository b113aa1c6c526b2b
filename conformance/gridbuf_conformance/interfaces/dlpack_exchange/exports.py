"""Exports of DLPack's C exchange table (DLPack 1.3): a type with a table and `__dlpack__`.

The table is a capsule on the type; its functions are `ctypes` callbacks over the exports of
`dlpack_exporter`. What is seen: which function was called, on an object of which type, and what
became of each tensor.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import CFUNCTYPE, PYFUNCTYPE, c_char_p, c_int, c_int32, c_void_p
from dataclasses import replace
from typing import Any

from ..buffer_protocol.slots import failure
from ..dlpack_structs.structs import CPU, Tensor
from .table import ATTRIBUTE, ExchangeTable
from ...abi.libraries import python_api
from ...info import ExportInfo
from ...plan import Plan
from ...plan.dtypes import DTYPES
from ..dlpack_protocol.exports import NULL_STRIDES_1_2, PLAIN_CAPABILITIES
from ..dlpack_protocol.exporter import CountedTensor, Exporter, ObservedDLPack
from ...exports.export import PLAIN, Export, Interface, Variant
from ...exports.memory import Block

_NAME = b"dlpack_exchange_api"
_FROM_OBJECT = PYFUNCTYPE(c_int, c_void_p, ctypes.POINTER(c_void_p))
_TO_OBJECT = PYFUNCTYPE(c_int, c_void_p, ctypes.POINTER(c_void_p))
_BARE_FROM_OBJECT = PYFUNCTYPE(c_int, c_void_p, ctypes.POINTER(Tensor))
_CURRENT_STREAM = PYFUNCTYPE(c_int, c_int, c_int32, ctypes.POINTER(c_void_p))
_SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
_ALLOCATE = PYFUNCTYPE(
    c_int, ctypes.POINTER(Tensor), ctypes.POINTER(c_void_p), c_void_p, _SET_ERROR
)

_api = python_api()
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]

_subjects: dict[int, ObservedExchange] = {}
"""The observed exporter by its address: the functions of a table get only the address."""


def _object(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


@_FROM_OBJECT
def _from_object(address: int, out: Any) -> int:
    subject = _subjects.get(address)
    if subject is None:
        return failure(TypeError("the object is not an export of the suite"))
    out[0] = subject.owned(type(_object(address)))
    return 0


@_BARE_FROM_OBJECT
def _bare_from_object(address: int, out: Any) -> int:
    subject = _subjects.get(address)
    if subject is None:
        return failure(TypeError("the object is not an export of the suite"))
    tensor = subject.borrowed(type(_object(address)))
    ctypes.memmove(out, ctypes.addressof(tensor), ctypes.sizeof(Tensor))
    return 0


@_CURRENT_STREAM
def _current_stream(device_type: int, device_id: int, out: Any) -> int:
    out[0] = None
    return 0


@_TO_OBJECT
def _to_object(managed: int, out: Any) -> int:
    return failure(BufferError("the suite's exporter only exports"))


@_ALLOCATE
def _allocate(prototype: Any, out: Any, context: int, set_error: Any) -> int:
    tensor = prototype[0]
    asked = (tensor.code, tensor.bits)
    name = next((name for name, kind in DTYPES.items() if kind.dlpack == asked), None)
    if name is None or (tensor.device_type, tensor.lanes) != (CPU, 1):
        set_error(context, b"BufferError", b"the suite allocates host memory of known types")
        return -1
    plan = Plan(dtype=name, shape=tuple(tensor.shape[: tensor.ndim]))
    out[0] = CountedTensor(Block(plan), versioned=True).publish()
    return 0


_FUNCTIONS = (_allocate, _from_object, _to_object, _bare_from_object, _current_stream)
_POINTERS = [ctypes.cast(f, c_void_p).value for f in _FUNCTIONS]
_TABLE = ExchangeTable(1, 3, None, *_POINTERS)
_LATER_TABLE = ExchangeTable(2, 0, None, *_POINTERS)


class _WithTable(Exporter):
    """An exporter whose type has the table."""


setattr(_WithTable, ATTRIBUTE, _api.PyCapsule_New(ctypes.addressof(_TABLE), _NAME, None))


class _Derived(_WithTable):
    """A type that inherits the attribute: the table is not its own."""


class _Withdrawn(_WithTable):
    """A derived type that says it has no table."""


setattr(_Withdrawn, ATTRIBUTE, None)


class _Later(Exporter):
    """A type whose table is of another major version. Here its functions work; elsewhere they are
    others.
    """


setattr(_Later, ATTRIBUTE, _api.PyCapsule_New(ctypes.addressof(_LATER_TABLE), _NAME, None))
_TYPES = {"derived-type": _Derived, "withdrawn-table": _Withdrawn, "major-2-table": _Later}


class ObservedExchange(ObservedDLPack):
    """An exporter with a table: notes on objects of which type its functions were called."""

    def __init__(self, export: Export, block: Block) -> None:
        super().__init__(export, block)
        self.table_calls: list[str] = []
        self._owned: list[CountedTensor] = []
        self._address = id(self.exporter)
        _subjects[self._address] = self

    @property
    def exporter_type(self) -> Callable[[ObservedDLPack], Any]:
        return _TYPES.get(self.variant.name, _WithTable)

    def owned(self, kind: type) -> int:
        """The address of a managed tensor that belongs to the caller."""
        self.table_calls.append(kind.__name__.lstrip("_"))
        counted = self._counted()
        self.handed_out.append(counted)
        self._owned.append(counted)
        return counted.publish()

    def borrowed(self, kind: type) -> Tensor:
        """A tensor that is valid until control returns."""
        self.table_calls.append(kind.__name__.lstrip("_"))
        self._borrowed = self._counted()
        self._borrowed.publish()
        tensor: Tensor = self._borrowed.managed.tensor
        return tensor

    def _counted(self) -> CountedTensor:
        """A tensor of the table, bent by the variant."""
        counted = CountedTensor(self.block, versioned=True)
        self.variant.bend(counted)
        return counted

    def was_asked(self) -> bool:
        return bool(self.table_calls) or super().was_asked()

    def info(self) -> ExportInfo:
        owned = [counted.info() for counted in self._owned]
        return replace(super().info(), table_calls=self.table_calls, owned=owned)

    def forget(self) -> None:
        _subjects.pop(self._address, None)
        super().forget()


INTERFACES = (
    Interface(
        "exchange",
        "the C exchange table on the type, in addition to __dlpack__",
        ("DX", "DL", "DP"),
        PLAIN_CAPABILITIES,
        ObservedExchange,
        (
            Variant(PLAIN, ("DX-08", "DL-19", "DL-21"), "right-or-error", "as published"),
            Variant(
                "derived-type",
                ("DX-11", "DL-19", "DL-21"),
                "right-or-error",
                "the exporter's type inherits the table of another one",
            ),
            Variant(
                "withdrawn-table",
                ("DX-11", "DL-19", "DL-21"),
                "right-or-error",
                "the exporter's type has None in the place of its base's table",
            ),
            Variant(
                "major-2-table",
                ("DX-03", "DL-19", "DL-21"),
                "right-or-error",
                "the table says version 2.0",
            ),
            replace(NULL_STRIDES_1_2, rules=("DL-08", "DL-19", "DL-21")),
        ),
        taken_rule="DX-08",
        position=20,
        base="dlpack",
    ),
)
