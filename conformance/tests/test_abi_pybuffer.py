"""Requests of the buffer protocol, on CPython's own exporters, whose answers are documented."""

from __future__ import annotations

import array
import ctypes
import sys

import pytest

from gridbuf_conformance.abi.memory import Memory
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import (
    REQUESTS,
    PyBuffer,
    RefusedRequest,
    request,
)
from gridbuf_conformance.info import UNMAPPED, ViewInfo

MEMORY = Memory()


def test_struct_has_the_size_of_the_header() -> None:
    assert ctypes.sizeof(PyBuffer) == (80 if ctypes.sizeof(ctypes.c_void_p) == 8 else 44)


def test_requests_have_the_documented_values() -> None:
    assert REQUESTS["FULL"] == 0x11D
    assert REQUESTS["FULL_RO"] == 0x11C
    assert REQUESTS["RECORDS"] == 0x1D
    assert REQUESTS["STRIDED"] == 0x19
    assert REQUESTS["CONTIG"] == 0x9
    assert len(set(REQUESTS.values())) == len(REQUESTS) >= 14


def test_fields_of_an_array() -> None:
    source = array.array("d", [1.0, 2.0, 3.0])
    held = request(source, REQUESTS["FULL"])
    info = held.info(MEMORY)
    held.release()
    address, length = source.buffer_info()
    assert info == ViewInfo(
        buf=address,
        obj="self",
        len=8 * length,
        itemsize=8,
        readonly=0,
        ndim=1,
        format="d",
        shape=[3],
        strides=[8],
        suboffsets=None,
    )


def test_refusal_keeps_the_error_and_the_null() -> None:
    with pytest.raises(RefusedRequest) as caught:
        request(b"read-only", REQUESTS["WRITABLE"])
    assert isinstance(caught.value.error, BufferError)
    assert caught.value.obj_is_null


def test_object_without_buffer_raises_type_error() -> None:
    with pytest.raises(RefusedRequest) as caught:
        request(object(), REQUESTS["SIMPLE"])
    assert isinstance(caught.value.error, TypeError)


def test_view_of_a_view_names_another_owner() -> None:
    held = request(memoryview(b"abc")[1:], REQUESTS["FULL_RO"])
    assert held.info(MEMORY).obj in ("self", "other")
    held.release()


def test_release_gives_back_once() -> None:
    source = bytearray(8)
    before = sys.getrefcount(source)
    held = request(source, REQUESTS["SIMPLE"])
    with pytest.raises(BufferError):
        source.append(0)
    held.release()
    held.release()
    source.append(0)
    assert sys.getrefcount(source) == before


def test_arrays_behind_bad_pointers_are_not_followed() -> None:
    held = request(bytearray(8), REQUESTS["FULL_RO"])
    true_view = PyBuffer.from_buffer_copy(held.view)
    held.view.shape = ctypes.cast(16, ctypes.POINTER(ctypes.c_ssize_t))
    held.view.format = 24
    info = held.info(MEMORY)
    held.view = true_view
    held.release()
    assert info.shape == UNMAPPED
    assert info.format is None and info.format_unmapped


def test_absurd_ndim_is_not_followed() -> None:
    held = request(bytearray(8), REQUESTS["FULL_RO"])
    held.view.ndim = 2**30
    assert held.info(MEMORY).shape == UNMAPPED
    held.view.ndim = 1
    held.release()
