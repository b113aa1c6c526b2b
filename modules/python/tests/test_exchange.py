"""DLPack's C exchange table, called through ctypes as a consumer in C calls it (DX-01 ... DX-12)."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import gridbuf
import numpy as np
import pytest
from abi import (
    DLTensor,
    ExchangeTable,
    ManagedVersioned,
    SetError,
    capsule_name,
    exchange_table,
    opened,
)
from reference import RECORD, address

TABLE: ExchangeTable = exchange_table(gridbuf.Buffer)
HOST = 1


def example(view: Callable[[gridbuf.Buffer], gridbuf.Buffer] = lambda b: b) -> gridbuf.Buffer:
    buffer = gridbuf.allocate((3, 4, 5), layout=(2, 0, 1), alignment_size=64)
    buffer.to_numpy()[...] = np.arange(60).reshape(3, 4, 5)
    return view(buffer)


VIEWS: dict[str, Callable[[gridbuf.Buffer], gridbuf.Buffer]] = {
    "whole": lambda b: b,
    "transposed": lambda b: b.T,
    "reversed": lambda b: b[::-1, ::-2],
    "read-only": lambda b: b.toreadonly(),
    "empty": lambda b: b[:0],
    "one row": lambda b: b[1],
    "one element": lambda b: b[1, 1, 1, ...],
    "repeated": lambda b: b[:, :1].broadcast_to(b.shape),
}


def fields(tensor: DLTensor) -> dict[str, Any]:
    return {
        "data": tensor.data,
        "device": (tensor.device_type, tensor.device_id),
        "type": (tensor.code, tensor.bits, tensor.lanes),
        "shape": tensor.entries("shape"),
        "strides": tensor.entries("strides"),
        "offset": tensor.byte_offset,
    }


def exported(buffer: gridbuf.Buffer) -> ManagedVersioned:
    out = ctypes.c_void_p()
    assert TABLE.from_object(buffer, ctypes.byref(out)) == 0
    return ManagedVersioned.from_address(out.value or 0)


def imported(managed: ManagedVersioned) -> gridbuf.Buffer:
    out = ctypes.py_object()
    assert TABLE.to_object(ctypes.addressof(managed), ctypes.byref(out)) == 0
    result = out.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))  # `out` itself does not count.
    return result


def delete(managed: ManagedVersioned) -> None:
    managed.deleter(ctypes.addressof(managed))


def test_the_table_is_on_the_type_and_there_is_one() -> None:
    capsule = gridbuf.Buffer.__dlpack_c_exchange_api__
    assert capsule_name(capsule) == b"dlpack_exchange_api"
    first = ctypes.addressof(TABLE)
    gc.collect()
    assert ctypes.addressof(exchange_table(gridbuf.Buffer)) == first
    assert (TABLE.major, TABLE.minor, TABLE.previous) == (1, 3, None)
    for name in ("allocate", "from_object", "to_object", "borrow", "stream"):
        assert getattr(TABLE, name), name
    with pytest.raises(TypeError, match="immutable"):
        gridbuf.Buffer.__dlpack_c_exchange_api__ = None  # type: ignore[misc, assignment]


@pytest.mark.parametrize("view", VIEWS)
def test_an_export_is_that_of_dlpack(view: str) -> None:
    buffer = example(VIEWS[view])
    capsule = buffer.__dlpack__(max_version=(1, 3))
    expected = opened(capsule)
    assert isinstance(expected, ManagedVersioned)
    managed = exported(buffer)
    assert fields(managed.tensor) == fields(expected.tensor)
    assert (managed.major, managed.minor, managed.flags) == (1, 3, expected.flags)
    delete(managed)


@pytest.mark.parametrize("view", VIEWS)
def test_a_borrowed_tensor_says_the_same_and_holds_nothing(view: str) -> None:
    buffer = example(VIEWS[view])
    expected = opened(capsule := buffer.__dlpack__(max_version=(1, 3)))
    before = sys.getrefcount(buffer)
    tensor = DLTensor()
    assert TABLE.borrow(buffer, ctypes.byref(tensor)) == 0
    assert sys.getrefcount(buffer) == before
    assert fields(tensor) == fields(expected.tensor)
    del capsule


def test_an_export_outlives_its_buffer() -> None:
    buffer = example()
    managed = exported(buffer)
    start = address(buffer)
    del buffer
    gc.collect()
    element = ctypes.c_double.from_address(start + 8)
    assert element.value == 20.0  # (1, 0, 0): the first dimension is contiguous
    delete(managed)


@pytest.mark.parametrize("view", VIEWS)
def test_a_round_trip_gives_the_same_memory(view: str) -> None:
    buffer = example(VIEWS[view])
    result = imported(exported(buffer))
    assert type(result) is gridbuf.Buffer
    assert (result.shape, result.dtype, result.readonly) == (
        buffer.shape,
        buffer.dtype,
        buffer.readonly,
    )
    if buffer.size:
        assert address(result) == address(buffer)
        np.testing.assert_array_equal(np.asarray(result), np.asarray(buffer))
    assert result.dims == tuple("IJK"[: result.ndim])
    assert result.plan is None and result.base is None


class Foreign:
    """A tensor of ctypes' making that counts calls of its deleter."""

    def __init__(self, major: int = 1, code: int = 2, bits: int = 64) -> None:
        self.deleted = 0
        self.elements = (ctypes.c_double * 6)(*range(6))
        self.shape = (ctypes.c_int64 * 2)(2, 3)
        self.strides = (ctypes.c_int64 * 2)(1, 2)
        self.managed = ManagedVersioned(major=major, minor=0)
        self.managed.deleter = type(self.managed.deleter)(self._delete)
        self.managed.tensor = DLTensor(
            data=ctypes.addressof(self.elements),
            device_type=HOST,
            ndim=2,
            code=code,
            bits=bits,
            lanes=1,
            shape=self.shape,
            strides=self.strides,
        )

    def _delete(self, _: int | None) -> None:
        self.deleted += 1


def test_an_imported_tensor_is_given_back_once_when_all_holders_are_gone() -> None:
    foreign = Foreign()
    buffer = imported(foreign.managed)
    assert np.asarray(buffer).tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    view, capsule = buffer[1], buffer.__dlpack__()
    del buffer
    gc.collect()
    assert np.asarray(view).tolist() == [1.0, 3.0, 5.0]
    del view
    assert foreign.deleted == 0
    del capsule
    assert foreign.deleted == 1


@pytest.mark.parametrize("foreign", [Foreign(major=2), Foreign(code=200), Foreign(bits=65)])
def test_a_refused_tensor_is_given_back_once(foreign: Foreign) -> None:
    with pytest.raises(BufferError, match="DL-"):
        imported(foreign.managed)
    assert foreign.deleted == 1


def test_a_null_tensor_is_refused() -> None:
    with pytest.raises(BufferError, match="^DX-05: "):
        TABLE.to_object(None, ctypes.byref(ctypes.py_object()))


@pytest.mark.parametrize("other", [None, 3, np.zeros(3), memoryview(b"x")])
def test_the_table_serves_its_own_type_alone(other: Any) -> None:
    out = ctypes.c_void_p(7)
    with pytest.raises(TypeError, match=r"gridbuf\.Buffer"):
        TABLE.from_object(other, ctypes.byref(out))
    assert out.value == 7
    with pytest.raises(TypeError, match=r"gridbuf\.Buffer"):
        TABLE.borrow(other, ctypes.byref(DLTensor()))


@pytest.mark.parametrize("dtype", [RECORD, ">f8", "M8[ns]"])
def test_what_dlpack_cannot_describe_is_a_buffer_error(dtype: Any) -> None:
    buffer = gridbuf.allocate((2, 3), dtype)
    with pytest.raises(BufferError):
        TABLE.from_object(buffer, ctypes.byref(ctypes.c_void_p()))
    with pytest.raises(BufferError):
        TABLE.borrow(buffer, ctypes.byref(DLTensor()))


def allocated(prototype: DLTensor) -> tuple[ManagedVersioned | None, list[tuple[str, str]]]:
    """What the allocator made of a prototype, and the calls of the error callback."""
    errors: list[tuple[str, str]] = []
    report = SetError(lambda _, kind, text: errors.append((kind.decode(), text.decode())))
    out = ctypes.c_void_p()
    result = TABLE.allocate(ctypes.byref(prototype), ctypes.byref(out), None, report)
    assert (result == 0) == (not errors)
    return (ManagedVersioned.from_address(out.value) if out.value else None), errors


def prototype(shape: tuple[int, ...], **more: Any) -> DLTensor:
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    junk = {"data": 0xDEAD, "strides": ctypes.cast(ctypes.c_void_p(1), type(DLTensor().strides))}
    values = {"device_type": HOST, "ndim": len(shape), "code": 2, "bits": 64, "lanes": 1, **more}
    return DLTensor(shape=extents, byte_offset=3, **junk, **values)


@pytest.mark.parametrize("shape", [(), (5,), (3, 4, 5), (2, 0, 3)])
def test_the_allocator_reads_type_shape_and_device_alone(shape: tuple[int, ...]) -> None:
    managed, errors = allocated(prototype(shape))
    assert managed is not None, errors
    buffer = imported(managed)
    assert buffer.shape == shape
    assert buffer.dtype == np.float64
    array = np.asarray(buffer)
    assert array.flags.c_contiguous and array.flags.writeable
    if buffer.size:
        assert address(buffer) % 256 == 0
        array[...] = 1.0


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (prototype((2**40, 2**40)), "ValueError"),
        (prototype((-1,)), "ValueError"),
        (prototype((2,), ndim=65), "ValueError"),
        (prototype((2,), ndim=-1), "ValueError"),
        (prototype((2,), code=200), "BufferError"),
        (prototype((2,), lanes=2), "BufferError"),
        (prototype((2,), device_type=4), "BufferError"),
        (prototype((2,), device_id=5), "BufferError"),
        (prototype((2**60,), code=1, bits=8), "MemoryError"),
    ],
)
def test_the_allocator_reports_through_its_callback(wrong: DLTensor, kind: str) -> None:
    managed, errors = allocated(wrong)
    assert managed is None
    assert [error[0] for error in errors] == [kind]
    assert errors[0][1]


def test_the_host_has_no_stream() -> None:
    out = ctypes.c_void_p(7)
    assert TABLE.stream(HOST, 0, ctypes.byref(out)) == 0
    assert out.value is None
    with pytest.raises(BufferError):
        TABLE.stream(4, 0, ctypes.byref(out))


def test_many_threads_use_the_table_at_once() -> None:
    buffer = example()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(300):
                result = imported(exported(buffer))
                assert result[1, 0, 0] == 20.0
                managed, _ = allocated(prototype((7,)))
                assert managed is not None
                delete(managed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
