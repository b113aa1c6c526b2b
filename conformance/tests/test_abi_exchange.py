"""DLPack's C exchange table: its layout, and its functions called from outside, on the zoo's tables
and PyTorch's.
"""

from __future__ import annotations

import ctypes
import sys

import pytest

from gridbuf_conformance.interfaces.dlpack_structs.structs import Tensor, VersionedManaged
from gridbuf_conformance.interfaces.dlpack_exchange.table import (
    ATTRIBUTE,
    ExchangeTable,
    read_header,
    read_table,
)
from gridbuf_conformance.abi.memory import Memory
from gridbuf_conformance.info import ExchangeInfo
from gridbuf_conformance.interfaces.dlpack_exchange.measure import exchange_info
from gridbuf_conformance.plan import Plan
from gridbuf_conformance_mutants import capsules, exchange_table
from gridbuf_conformance_mutants.reference import Reference

MEMORY = Memory()

needs_tables = pytest.mark.skipif(
    not exchange_table.AVAILABLE, reason="the zoo's tables have machine code for x86-64 and aarch64"
)


def made(**changes: object) -> object:
    return Reference().produce(Plan(shape=(2, 3)).replaced(**changes))


def table_of(obj: object) -> ExchangeTable:
    table, info = read_table(getattr(type(obj), ATTRIBUTE), MEMORY)
    assert info.name == "dlpack_exchange_api"
    return table


def test_struct_has_the_layout_of_the_header() -> None:
    assert ctypes.sizeof(ExchangeTable) == 56
    assert ExchangeTable.prev_api.offset == 8
    assert ExchangeTable.managed_tensor_allocator.offset == 16
    assert ExchangeTable.current_work_stream.offset == 48


@needs_tables
def test_exports_own_and_borrowed() -> None:
    array = made()
    table = table_of(array)
    owned = VersionedManaged.from_address(table.export(array).value)
    borrowed = table.export_bare(array).value
    assert (owned.major, owned.tensor.ndim) == (1, 2)
    assert owned.tensor.data == borrowed.data == array.address
    before = sys.getrefcount(array)
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(owned.deleter)(ctypes.addressof(owned))
    assert sys.getrefcount(array) == before - 1


@needs_tables
def test_what_a_function_raises_is_its_answer() -> None:
    array = made(dtype="struct")
    for answer in (table_of(array).export(array), table_of(array).export_bare(array)):
        assert answer.result is None
        assert isinstance(answer.error, BufferError)
        assert answer.error.__traceback__ is None


@needs_tables
def test_import_gives_the_only_reference() -> None:
    array = made()
    table = table_of(array)
    answer = table.take(table.export(array).value)
    assert type(answer.value) is type(array)
    assert answer.value.shape == (2, 3)
    references = sys.getrefcount(answer.value)
    assert references == 2, "the answer's, and the argument of the question"


@needs_tables
def test_allocator_reports_through_its_callback() -> None:
    shape = (ctypes.c_int64 * 1)(5)
    table = table_of(made())
    wrong = Tensor(ndim=1, code=200, bits=8, lanes=1, shape=shape, device_type=1)
    answer = table.allocate(wrong)
    assert (answer.result, answer.reported, answer.value) == (-1, ["BufferError"], None)
    right = Tensor(ndim=1, code=2, bits=64, lanes=1, shape=shape, device_type=1)
    answer = table.allocate(right)
    assert (answer.result, answer.reported) == (0, [])
    assert VersionedManaged.from_address(answer.value).tensor.shape


@pytest.mark.parametrize("length", [0, 1, 16])
def test_chains_are_counted(length: int) -> None:
    tables = [ExchangeTable(1, 3) for _ in range(length + 1)]
    for table, older in zip(tables, tables[1:]):
        table.prev_api = ctypes.addressof(older)
    assert read_header(ExchangeInfo(), tables[0], MEMORY).chain == length


def test_chains_that_lead_nowhere() -> None:
    table = ExchangeTable(1, 3)
    table.prev_api = ctypes.addressof(table)
    assert read_header(ExchangeInfo(), table, MEMORY).chain == "endless"
    table.prev_api = 8
    assert read_header(ExchangeInfo(), table, MEMORY).chain == "unmapped"


def test_entries_that_are_no_functions_are_not_called() -> None:
    table = ExchangeTable(1, 3, None, *(ctypes.addressof(ctypes.c_int(1)),) * 5)
    name = b"dlpack_exchange_api"

    class Array:
        __dlpack_c_exchange_api__ = capsules.new_capsule(ctypes.addressof(table), name)

    info = exchange_info(Array(), MEMORY, device=[1, 0], deep=True)
    assert set(info.entries.values()) == {"not executable"}
    assert info.export is None
    assert exchange_info(object(), MEMORY, device=[1, 0], deep=True) is None


def test_pytorchs_table() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not hasattr(torch.Tensor, ATTRIBUTE):
        pytest.skip(f"PyTorch {torch.__version__} has no exchange table")
    tensor = torch.arange(6, dtype=torch.float64).reshape(2, 3).T
    info = exchange_info(tensor, MEMORY, device=[1, 0], deep=True)
    assert info.version[0] == 1
    assert info.export.shape == info.bare.shape == [3, 2]
    assert info.export.strides == [1, 3]
    assert info.imported.own_type is True
    assert info.imported.calls == 1
    assert info.allocated.shape == [2, 3]
    assert len(info.allocation_refused.reported) == 1
