"""Defects of DLPack's C exchange table (DX rules). The arrays here have DLPack and the table."""

from __future__ import annotations
from gridbuf_conformance.interfaces.dlpack_structs.structs import Tensor, VersionedManaged
from gridbuf_conformance.interfaces.dlpack_exchange.table import ExchangeTable

import ctypes

from . import capsules
from .capsules import Export
from .device import (
    DEVICE,
    DeviceMemory,
    ExportsCudaInterface,
    ExportsDeviceDLPack,
    ExportsDeviceExchange,
)
from .exchange_table import ExportsExchange
from .memory import Block
from .mutant import faulty, faulty_on
from .reference import ExportsDLPack, Memory
from .table import rows

row = rows(__name__)

_OTHER_NAME = b"c_dlpack_exchange_api"
_fresh: list[ExchangeTable] = []
_never_freed: list[object] = []
_first_stream: dict[str, int] = {}


class Base(ExportsDLPack, ExportsExchange, Memory):
    """DLPack and its exchange table."""


def _wrong_table(*breaks: str, advises: tuple[str, ...] = ()):
    return faulty(*breaks, advises=advises, needs_table=True)


# --- the table ----------------------------------------------------------------------------------


@_wrong_table("DX-01")
class TableIsAnAddress(Base):
    """The attribute is the table's address as an int."""

    @classmethod
    def exchange_attribute(cls, table: ExchangeTable) -> object:
        return ctypes.addressof(table)


@_wrong_table("DX-01")
class TableHasAnotherName(Base):
    """The capsule has another name."""

    @classmethod
    def exchange_attribute(cls, table: ExchangeTable) -> object:
        return capsules.new_capsule(ctypes.addressof(table), _OTHER_NAME)


@_wrong_table("DX-01")
class TableOfTheObject(ExportsDLPack, Memory):
    """Each object has the attribute, the type has not."""

    def __getattr__(self, name: str) -> object:
        if name == "__dlpack_c_exchange_api__":
            return Base.__dict__[name]
        raise AttributeError(name)


class _FreshTables(type):
    """A type that makes a new table at each look-up."""

    @property
    def __dlpack_c_exchange_api__(cls) -> object:
        table = cls.exchange_table()
        _fresh.append(table)
        return cls.exchange_attribute(table)

    @__dlpack_c_exchange_api__.setter
    def __dlpack_c_exchange_api__(cls, value: object) -> None:
        """The table that was made with the class is forgotten."""


@_wrong_table("DX-02")
class TableIsMadeAnew(Base, metaclass=_FreshTables):
    """Each look-up makes another table."""


@_wrong_table("DX-03")
class TableOfVersionTwo(Base):
    """The table has major version 2."""

    @classmethod
    def exchange_table(cls) -> ExchangeTable:
        table = super().exchange_table()
        table.major = 2
        return table


@_wrong_table("DX-03")
class ChainOfTablesIsALoop(Base):
    """The table is its own predecessor."""

    @classmethod
    def exchange_table(cls) -> ExchangeTable:
        table = super().exchange_table()
        table.prev_api = ctypes.addressof(table)
        return table


@_wrong_table("DX-04")
class NoCurrentStream(Base):
    """The function for the current stream is NULL, as the memory is the host's."""

    @classmethod
    def exchange_table(cls) -> ExchangeTable:
        table = super().exchange_table()
        table.current_work_stream = None
        return table


# --- exports ------------------------------------------------------------------------------------


# fmt: off
row(_wrong_table("DX-05"), Base, "FailureWithoutException",
    "A refusal returns -1 and sets nothing.", error_of_refusals=None)
row(_wrong_table(advises=("DX-12",)), Base, "RefusalIsARuntimeError",
    "A refusal is a RuntimeError.", error_of_refusals=RuntimeError)
# fmt: on


@_wrong_table("DX-06")
class TableCountsBytes(Base):
    """The table's exports have strides in bytes; those of `__dlpack__` are right."""

    @classmethod
    def exported(cls, array: Memory) -> Export:
        export = super().exported(array)
        if array.ndim and not array.is_untouched:
            export.set_metadata(array.shape, array.strides)
        return export


@_wrong_table("DX-06")
class TableForgetsReadOnly(Base):
    """The table's exports never say read-only."""

    @classmethod
    def exported(cls, array: Memory) -> Export:
        export = super().exported(array)
        export.managed.flags = 0
        return export


@_wrong_table("DX-06")
class DeleterKeepsTheObject(Base):
    """The deleter of the table's exports lets nothing go."""

    @classmethod
    def exported(cls, array: Memory) -> Export:
        export = super().exported(array)
        _never_freed.append(export)
        return export

    @classmethod
    def _bare_from_object(cls, address: int, out: object) -> None:
        before = len(_never_freed)
        super()._bare_from_object(address, out)
        del _never_freed[before:]


@_wrong_table(advises=("DX-07",))
class BorrowedExportTakesAReference(Base):
    """The borrowed export keeps a reference that is never released."""

    @classmethod
    def _bare_from_object(cls, address: int, out: object) -> None:
        super()._bare_from_object(address, out)
        _never_freed.append(ctypes.cast(address, ctypes.py_object).value)


@_wrong_table("DX-07")
class BorrowedExportIsElsewhere(Base):
    """The borrowed export's address is one element too far."""

    @classmethod
    def _bare_from_object(cls, address: int, out: object) -> None:
        super()._bare_from_object(address, out)
        if out.contents.data:
            out.contents.data += 4 * (out.contents.bits // 8)


# --- imports ------------------------------------------------------------------------------------


@_wrong_table("DX-08")
class ImportNeverDeletes(Base):
    """An imported tensor's deleter is never called."""

    @classmethod
    def imported(cls, managed: VersionedManaged, address: int) -> object:
        result = super().imported(managed, address)
        _never_freed.append(result.block)
        return result


@_wrong_table("DX-08")
class ImportDeletesAtOnce(Base):
    """An imported tensor's deleter is called while the array lives."""

    @classmethod
    def imported(cls, managed: VersionedManaged, address: int) -> object:
        result = super().imported(managed, address)
        result.block = Block(1)
        return result


@_wrong_table("DX-08")
class ImportIsOfAnotherType(Base):
    """The import returns an array of a type that has no table."""

    @classmethod
    def imported(cls, managed: VersionedManaged, address: int) -> object:
        array = super().imported(managed, address)
        return Memory(array.block, array.element, array.shape, array.strides, array.address)


# fmt: off
row(_wrong_table("DX-13"), Base, "ImportTakesAnotherMajor",
    "The import does not look at the version of the tensor.",
    check_version=classmethod(lambda cls, managed, address: None))
row(_wrong_table(advises=("DX-13",)), Base, "ImportLeavesTheRefused",
    "The import refuses a tensor of another major version and does not delete it.",
    delete_refused=classmethod(lambda cls, managed, address: None))
# fmt: on


@_wrong_table("DX-13")
class ImportDeletesTheRefusedTwice(Base):
    """The import deletes a tensor of another major version twice."""

    @classmethod
    def delete_refused(cls, managed: VersionedManaged, address: int) -> None:
        super().delete_refused(managed, address)
        super().delete_refused(managed, address)


# --- streams and allocation ---------------------------------------------------------------------


class _OnDevice(ExportsDeviceDLPack, ExportsDeviceExchange, DeviceMemory):
    """DLPack and its exchange table in device memory."""


@faulty_on("gpu", "DX-09", needs_table=True)
class StreamIsRemembered(_OnDevice):
    """The current stream is the stream of the first call."""

    @classmethod
    def current_stream(cls, device_type: int, device_id: int) -> int | None:
        return _first_stream.setdefault("stream", DEVICE.current)


@faulty_on("gpu", advises=["XA-16"], needs_table=True)
class TableNamesTheDefaultStream(ExportsCudaInterface, _OnDevice):
    """The CUDA array interface names the per-thread default stream, the table another one."""

    def __init__(self, *arguments: object, **flags: object) -> None:
        super().__init__(*arguments, **flags)
        if self.stream == 1:
            self.stream = 2


@_wrong_table("DX-10")
class AllocatorTakesThePrototypesData(Base):
    """The allocator hands out the prototype's own pointer and offset."""

    @classmethod
    def allocated(cls, tensor: Tensor) -> Export:
        export = super().allocated(tensor)
        export.managed.tensor.byte_offset = tensor.byte_offset
        return export


@_wrong_table("DX-10")
class AllocatorSwapsTheShape(Base):
    """The allocator's array has the extents in reverse order."""

    @classmethod
    def new(cls, shape: tuple[int, ...], element: object) -> object:
        return super().new(tuple(reversed(shape)), element)


@_wrong_table("DX-10")
class AllocatorReportsNothing(Base):
    """The allocator fails without a call of the error callback."""

    @classmethod
    def _allocate(cls, prototype: object, out: object, context: int, set_error: int) -> int:
        try:
            out[0] = cls.allocated(prototype.contents).publish()
        except BufferError:
            return -1
        return 0


@_wrong_table("DX-10")
class AllocatorReportsSuccess(Base):
    """The error callback is called although nothing failed."""

    @classmethod
    def _allocate(cls, prototype: object, out: object, context: int, set_error: int) -> int:
        report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
        result = super()._allocate(prototype, out, context, set_error)
        if result == 0:
            report(set_error)(context, b"RuntimeError", b"all is well")
        return result
