"""Consumers that use DLPack's C exchange table, one of them rightly."""

from __future__ import annotations
from gridbuf_conformance.interfaces.dlpack_structs.structs import VersionedManaged
from gridbuf_conformance.interfaces.dlpack_exchange.table import ExchangeTable

import ctypes
from typing import Any

from .consumer import wrong
from .importer import Importer
from .table import rows

row = rows(__name__)

_NAME = b"dlpack_exchange_api"
_ATTRIBUTE = "__dlpack_c_exchange_api__"
_FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
_api = ctypes.PyDLL(None)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class TableImporter(Importer):
    """The strict consumer, with the tensor of the table if the exporter's own type has one."""

    interfaces = ("exchange",)

    def __call__(self, exporter: Any) -> Any:
        capsule = self.table_of(type(exporter))
        if capsule is None:
            return super().__call__(exporter)
        table = ExchangeTable.from_address(_api.PyCapsule_GetPointer(capsule, _NAME))
        address = ctypes.c_void_p()
        if not self.knows(table) or _FROM_OBJECT(table.managed_tensor_from_py_object_no_sync)(
            exporter, ctypes.byref(address)
        ):
            return super().__call__(exporter)
        assert address.value is not None
        return self.taken(address.value, VersionedManaged.from_address(address.value))

    def knows(self, table: Any) -> bool:
        return bool(table.major == 1)

    def table_of(self, kind: type) -> Any:
        """The capsule of the very type; one that is inherited is another type's."""
        return vars(kind).get(_ATTRIBUTE)

    def taken(self, address: int, managed: VersionedManaged) -> Any:
        owner = self.owner(address, managed)
        return self.result(self.describe(managed.tensor, self.is_readonly(managed)), owner)


strict = TableImporter()


# fmt: off
row(wrong("DX-03"), TableImporter, "UsesALaterTable", "The version of a table is not looked at.",
    knows=lambda self, table: True)
# fmt: on


@wrong(weakens=("DL-08",))
class TrustsTheTablesStrides(TableImporter):
    """The strides of a table's tensor are read whether there are any."""

    def taken(self, address: int, managed: VersionedManaged) -> Any:
        if managed.tensor.ndim:
            ctypes.string_at(ctypes.cast(managed.tensor.strides, ctypes.c_void_p).value or 8, 8)
        return super().taken(address, managed)


@wrong("DX-11")
class UsesABasesTable(TableImporter):
    """The first table in the order of the base types is used, not that of the type."""

    def table_of(self, kind: type) -> Any:
        tables = (vars(base).get(_ATTRIBUTE) for base in kind.__mro__)
        return next((table for table in tables if table is not None), None)


# fmt: off
row(wrong(advises=("DX-11",)), TableImporter, "InheritsTheTable",
    "The table of a base type is used on objects of a derived one.",
    table_of=lambda self, kind: getattr(kind, _ATTRIBUTE, None))
row(wrong("DX-08"), TableImporter, "KeepsTheTablesTensors",
    "What the table hands out is never deleted.",
    delete=lambda self, address, deleter, context: None)
# fmt: on


@wrong("DL-19")
class DeletesTheTablesTensorsTwice(TableImporter):
    """The deleter of a tensor that the table handed out is called twice."""

    def delete(self, address: int, deleter: int | None, context: int | None) -> None:
        super().delete(address, deleter, context)
        super().delete(address, deleter, context)
