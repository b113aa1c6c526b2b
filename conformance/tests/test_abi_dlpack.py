"""Reading capsules, renaming them, and counting their deleters, on the zoo's reference arrays."""

from __future__ import annotations

import ctypes
import sys

import pytest

from gridbuf_conformance.interfaces.dlpack_structs import structs as dlpack
from gridbuf_conformance.interfaces.array_struct.struct import read_array_struct
from gridbuf_conformance.abi.capsule import capsule_name, capsule_pointer, is_capsule
from gridbuf_conformance.interfaces.dlpack_structs.structs import Exported
from gridbuf_conformance.abi.memory import Memory
from gridbuf_conformance.info import UNMAPPED, CapsuleInfo, StructInfo
from gridbuf_conformance.plan import Plan
from gridbuf_conformance_mutants.reference import Reference

MEMORY = Memory()
NEW = {"max_version": (1, 3)}


@pytest.fixture
def array():
    return Reference().produce(Plan(shape=(2, 3), dtype="int32"))


def test_structs_have_the_sizes_of_the_header() -> None:
    sizes = [ctypes.sizeof(s) for s in (dlpack.Tensor, dlpack.Managed, dlpack.VersionedManaged)]
    assert sizes == [48, 64, 80]
    assert dlpack.Tensor.byte_offset.offset == 40
    assert dlpack.VersionedManaged.tensor.offset == 32


@pytest.mark.parametrize("keywords", [{}, NEW])
def test_fields_of_both_capsules(array, keywords: dict) -> None:
    info = Exported(array.__dlpack__(**keywords), MEMORY).info()
    assert info.name == ("dltensor_versioned" if keywords else "dltensor")
    assert (info.version is None) == (not keywords)
    assert (info.ndim, info.shape, info.strides) == (2, [2, 3], [3, 1])
    assert (info.dtype, info.device, info.deleter) == ([0, 32, 1], [1, 0], "executable")
    assert info.data + info.byte_offset == array.__array_interface__["data"][0]


@pytest.mark.parametrize("value", [None, 7, "dltensor", object()])
def test_what_is_no_capsule(value: object) -> None:
    info = Exported(value, MEMORY).info()
    assert info == CapsuleInfo(type=type(value).__name__)
    assert not is_capsule(value)


def test_foreign_capsules_are_named_and_not_read() -> None:
    import datetime

    info = Exported(datetime.datetime_CAPI, MEMORY).info()
    assert info == CapsuleInfo(capsule=True, name="datetime.datetime_CAPI")


@pytest.mark.parametrize("keywords", [{}, NEW])
def test_unconsumed_capsule_deletes_once(array, keywords: dict) -> None:
    exported = Exported(array.__dlpack__(**keywords), MEMORY)
    counter = exported.count_deletions()
    assert counter.calls == 0
    exported.capsule = None
    assert counter.calls == 1


@pytest.mark.parametrize("keywords", [{}, NEW])
def test_consumed_capsule_leaves_the_deleter_to_the_consumer(array, keywords: dict) -> None:
    exported = Exported(array.__dlpack__(**keywords), MEMORY)
    counter = exported.count_deletions()
    exported.mark_used()
    assert capsule_name(exported.capsule, MEMORY.text).startswith("used_dltensor")
    assert capsule_pointer(exported.capsule) == exported.pointer
    exported.capsule = None
    assert counter.calls == 0
    assert exported.delete()
    assert counter.calls == 1


@pytest.mark.parametrize("holds_gil", [False, True])
def test_deleter_on_a_foreign_thread_frees(array, holds_gil: bool) -> None:
    before = sys.getrefcount(array)
    exported = Exported(array.__dlpack__(**NEW), MEMORY)
    exported.mark_used()
    counter = exported.count_deletions()
    if holds_gil:
        held, then = exported.references_without_gil(array) or (0, 1)
        assert held == then
    else:
        assert exported.delete_on_foreign_thread()
    assert counter.calls == 1
    assert sys.getrefcount(array) == before


def test_deleter_that_is_no_code_is_never_called(array) -> None:
    exported = Exported(array.__dlpack__(**NEW), MEMORY)
    field = exported.pointer + dlpack.VersionedManaged.deleter.offset
    true_deleter = MEMORY.read(field, 8)
    MEMORY.write(field, ctypes.addressof(ctypes.c_int(0)).to_bytes(8, sys.byteorder))
    assert exported.info().deleter == "not executable"
    assert exported.callable_deleter() is None
    assert exported.count_deletions() is None
    assert not exported.delete()
    MEMORY.write(field, bytes(8))
    assert exported.info().deleter == "NULL"
    MEMORY.write(field, true_deleter)


def test_struct_with_bad_pointers_is_not_followed(array) -> None:
    exported = Exported(array.__dlpack__(**NEW), MEMORY)
    shape = exported.pointer + dlpack.VersionedManaged.tensor.offset + dlpack.Tensor.shape.offset
    true_shape = MEMORY.read(shape, 8)
    MEMORY.write(shape, (4096).to_bytes(8, sys.byteorder))
    assert exported.info().shape == UNMAPPED
    MEMORY.write(shape, true_shape)


def test_array_struct(array) -> None:
    info = read_array_struct(array.__array_struct__, MEMORY)
    assert (info.two, info.nd, info.typekind, info.itemsize) == (2, 2, "i", 4)
    assert (info.shape, info.strides) == ([2, 3], [12, 4])
    assert read_array_struct(7, MEMORY) == StructInfo()
    assert read_array_struct(array.__dlpack__(), MEMORY).name == "dltensor"
