"""What leaves a Buffer, read with ctypes and NumPy: buffer protocol, array interface, DLPack, GT4Py's attributes."""

from __future__ import annotations

import ctypes
import enum
import gc
import math
import pickle
import sys
from typing import Any

import gridbuf
import gridbuf.storage as gs
import ml_dtypes
import numpy as np
import pytest
from abi import REQUESTS, array_struct, capsule_context, capsule_name, opened, requested
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import DTYPES, RECORD, address, as_bytes, fill_bytes, requests

VIEWS = {
    "whole": lambda b: b,
    "transposed": lambda b: b.T,
    "reversed": lambda b: b[::-1],
    "stepped": lambda b: b[..., ::2],
    "cut": lambda b: b[1:, 1:-1],
    "new axis": lambda b: b[:, None],
    "read-only": lambda b: b.toreadonly(),
    "empty": lambda b: b[:0],
    "one row": lambda b: b[1],
    "one element": lambda b: b[1, 1, 1, ...],
    "repeated": lambda b: b[:, :1].broadcast_to(b.shape),
}


def example(dtype: Any = "f8", view: str = "whole") -> gridbuf.Buffer:
    buffer = gridbuf.allocate((3, 4, 5), dtype, layout=(2, 0, 1), alignment_size=64)
    fill_bytes(buffer.to_numpy())
    return VIEWS[view](buffer)


# ---- The buffer protocol. ----


def contiguous(buffer: gridbuf.Buffer, order: str) -> bool:
    return bool(buffer.to_numpy().flags[f"{order}_CONTIGUOUS"])


def grants(buffer: gridbuf.Buffer, request: str) -> bool:
    """Whether the rules of the protocol let this request succeed."""
    c, f = contiguous(buffer, "C"), contiguous(buffer, "F")
    needs = {
        "SIMPLE": c,
        "WRITABLE": c,
        "ND": c,
        "CONTIG": c,
        "C_CONTIGUOUS": c,
        "F_CONTIGUOUS": f,
        "ANY_CONTIGUOUS": c or f,
    }
    writes = bool(REQUESTS[request] & 1)
    return needs.get(request, True) and not (writes and buffer.readonly)


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("view", VIEWS)
def test_every_buffer_request_is_met_exactly_or_refused(view: str, request_name: str) -> None:
    buffer, flags = example(view=view), REQUESTS[request_name]
    if not grants(buffer, request_name):
        with pytest.raises(BufferError), requested(buffer, flags):
            pytest.fail("granted")
        return
    with requested(buffer, flags) as found:
        assert found.obj == id(buffer)
        assert found.buf == address(buffer)
        assert found.len == buffer.nbytes
        assert found.itemsize == 8
        assert bool(found.readonly) == buffer.readonly
        assert found.format == (b"d" if flags & 0x4 else None)
        assert found.entries("suboffsets") is None
        if flags & 0x8:
            assert found.ndim == buffer.ndim
            assert found.entries("shape") == (buffer.shape or None)
        else:
            assert found.entries("shape") is None
        assert found.entries("strides") == (buffer.strides or None if flags & 0x10 else None)


@pytest.mark.parametrize("flags", [0x100, 0x200, 0x10, 0x4, -1, 0x7FFFFFFF, -(2**31)])
def test_flags_that_are_no_request_are_refused(flags: int) -> None:
    # CPython 3.13 and later refuse PyBUF_READ (0x100) and PyBUF_WRITE (0x200) before they ask the exporter.
    by_cpython = sys.version_info >= (3, 13) and flags in (0x100, 0x200)
    with pytest.raises(SystemError if by_cpython else BufferError), requested(example(), flags):
        pytest.fail("granted")
    if sys.version_info >= (3, 12):  # the exporter itself
        with pytest.raises(BufferError):
            example().__buffer__(flags)


def test_a_failed_request_leaves_no_owner_and_no_reference() -> None:
    from abi import PyBuffer

    buffer = example(view="transposed")[::-1]
    view = PyBuffer(obj=1)
    before = sys.getrefcount(buffer)
    get = ctypes.pythonapi.PyObject_GetBuffer
    with pytest.raises(BufferError):
        get(ctypes.py_object(buffer), ctypes.byref(view), 0)
    assert view.obj is None
    assert sys.getrefcount(buffer) == before


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("view", ["whole", "reversed", "cut"])
def test_consumers_see_the_same_elements_through_every_interface(
    dtype: np.dtype[Any], view: str
) -> None:
    buffer = example(dtype, view)
    expected = buffer.to_numpy()
    assert expected.dtype == dtype
    assert expected.strides == buffer.strides
    ways = [np.asarray(buffer), np.array(buffer, copy=None)]
    if (
        dtype.kind in "fiu?bc"
        and dtype.isnative
        and dtype.char not in "gG"
        and dtype.isbuiltin == 1
    ):
        ways.append(np.from_dlpack(buffer))
    for seen in ways:
        assert seen.dtype == dtype
        assert np.shares_memory(seen, expected)
        assert (seen.shape, seen.strides) == (buffer.shape, buffer.strides)
        assert as_bytes(seen).tobytes() == as_bytes(expected).tobytes()


def test_the_format_of_every_plain_dtype_is_numpys() -> None:
    for dtype in DTYPES:
        buffer = gridbuf.allocate((2,), dtype)
        if dtype == "V7":  # NumPy reads its own format, "7x", as a record without fields.
            with pytest.raises(BufferError, match=r"dtype void\(7\)"):
                memoryview(buffer)
            continue
        try:
            expected = memoryview(np.empty((2,), dtype)).format
        except (ValueError, BufferError):
            with pytest.raises(BufferError):
                memoryview(buffer)
        else:
            found = memoryview(buffer).format
            # Marks of native order are left out where they change nothing; NumPy forgets the padding at a record's end.
            assert plain(found) in (plain(expected), plain(expected)[:-1] + "xxxxxxxx}")


@pytest.mark.parametrize("itemsize", [*range(1, 18), 24, 100])
def test_raw_bytes_keep_their_values_by_every_way_out_and_back(itemsize: int) -> None:
    values = np.arange(6 * itemsize, dtype=np.uint8).view(f"V{itemsize}").reshape(2, 3)
    for made in (gridbuf.from_array(values).base, gs.storage(values), gs.as_storage(values.T)):
        expected = values if made.shape == (2, 3) else values.T
        copied = np.empty_like(expected)
        gridbuf.copyto(copied, made)
        for found in [
            np.asarray(made),
            np.array(made),
            made.to_numpy(),
            gridbuf.as_numpy(made),
            gridbuf.as_buffer(made).to_numpy(),
            gridbuf.as_numpy(memoryview(np.asarray(made))),
            gridbuf.from_array(made),
            gs.storage(np.asarray(made)).to_numpy(),
            pickle.loads(pickle.dumps(made)).to_numpy(),
            pickle.loads(pickle.dumps(made, protocol=5)).to_numpy(),
            copied,
        ]:
            assert found.dtype == values.dtype
            assert found.tolist() == expected.tolist()


def plain(text: str) -> str:
    return text.translate(dict.fromkeys(map(ord, "<=@^")))


def test_a_buffer_stays_valid_until_it_is_released() -> None:
    held = memoryview(gridbuf.full((4, 5), 2.5).base)
    rows = [memoryview(gridbuf.full((3,), float(n)).base) for n in range(50)]
    assert held.tolist() == [[2.5] * 5] * 4
    assert [row.tolist() for row in rows] == [[float(n)] * 3 for n in range(50)]
    held.release()
    with pytest.raises(ValueError, match="released"):
        held.tolist()


# ---- The array interface. ----


@pytest.mark.parametrize("view", VIEWS)
def test_the_array_interface_has_the_fields_of_version_3(view: str) -> None:
    buffer = example(view=view)
    fields = buffer.__array_interface__
    assert type(fields) is dict
    assert fields["version"] == 3
    assert fields["shape"] == buffer.shape
    assert all(type(extent) is int for extent in fields["shape"])
    assert fields["typestr"] == "<f8"
    assert fields["descr"] == [("", "<f8")]
    assert fields["data"] == (buffer.to_numpy().ctypes.data, buffer.readonly)
    assert [type(part) for part in fields["data"]] == [int, bool]
    if contiguous(buffer, "C"):
        assert fields["strides"] is None
    else:
        assert fields["strides"] == buffer.strides
    assert buffer.__array_interface__ == fields


def test_the_array_interface_of_records_and_dates_is_numpys() -> None:
    for dtype in (RECORD, np.dtype("M8[ns]"), np.dtype(">i4"), np.dtype("U3"), np.dtype("V7")):
        ours = gridbuf.allocate((2,), dtype).__array_interface__
        theirs = np.empty((2,), dtype).__array_interface__
        assert (ours["typestr"], ours["descr"]) == (theirs["typestr"], theirs["descr"])


def test_types_that_the_array_interface_cannot_name_do_not_pretend() -> None:
    buffer = gridbuf.allocate((2, 3), ml_dtypes.bfloat16)
    assert not hasattr(buffer, "__array_interface__")
    with pytest.raises(AttributeError, match="bfloat16"):
        _ = buffer.__array_interface__
    with pytest.raises(BufferError):
        memoryview(buffer)
    seen = np.asarray(buffer)  # by way of __array__
    assert seen.dtype == ml_dtypes.bfloat16
    assert np.shares_memory(seen, buffer.to_numpy())


def test_no_device_interface_is_offered() -> None:
    for name in ("__cuda_array_interface__", "__hip_array_interface__"):
        assert not hasattr(example(), name)


# ---- __array_struct__. ----

C_CONTIGUOUS, F_CONTIGUOUS, ALIGNED, NATIVE, WRITABLE, HAS_DESCR = 1, 2, 0x100, 0x200, 0x400, 0x800


@pytest.mark.parametrize("view", VIEWS)
def test_the_array_struct_says_what_numpys_says(view: str) -> None:
    buffer = example(view=view)
    capsule = buffer.__array_struct__
    assert capsule_name(capsule) is None  # AS-01
    assert capsule_context(capsule) == id(buffer)  # AS-07
    found = array_struct(capsule)
    array = buffer.to_numpy()
    assert (found.two, found.nd, found.typekind, found.itemsize) == (2, buffer.ndim, b"f", 8)
    assert (found.entries("shape"), found.entries("strides")) == (buffer.shape, buffer.strides)
    assert found.data == address(buffer)
    flags = array.flags
    true = flags.c_contiguous * C_CONTIGUOUS | flags.f_contiguous * F_CONTIGUOUS
    true |= ALIGNED | NATIVE | flags.writeable * WRITABLE
    assert found.flags & ~true == 0  # AS-05: each flag that is set is true.
    assert bool(found.flags & WRITABLE) == (not buffer.readonly)


def test_numpy_reads_the_array_struct() -> None:
    class Only:
        def __init__(self, buffer: gridbuf.Buffer) -> None:
            self.__array_struct__ = buffer.__array_struct__

    for dtype in ("f8", ">i4", "c16", RECORD):
        buffer = example(dtype)
        seen = np.asarray(Only(buffer))
        expected = buffer.to_numpy()
        assert seen.dtype == expected.dtype and seen.strides == expected.strides
        assert seen.tobytes() == expected.tobytes()
        start = address(buffer)
        del buffer, expected
        gc.collect()
        assert seen.ctypes.data == start and seen.tobytes()  # The capsule keeps the memory.


def test_the_array_struct_is_absent_where_it_has_no_word() -> None:
    for dtype in ("M8[ns]", ml_dtypes.bfloat16):
        assert not hasattr(gridbuf.allocate((2,), dtype), "__array_struct__")
    record = array_struct(capsule := example(RECORD).__array_struct__)
    assert record.flags & HAS_DESCR and record.descr
    del capsule


def test_the_array_struct_holds_its_object_until_it_goes() -> None:
    buffer = example()
    before = sys.getrefcount(buffer)
    capsule = buffer.__array_struct__
    assert sys.getrefcount(buffer) == before + 1
    del capsule
    assert sys.getrefcount(buffer) == before


# ---- __array__. ----


def test_array_is_a_view_unless_something_must_be_converted() -> None:
    buffer = gridbuf.ones((3, 4), layout=(1, 0)).base
    assert np.shares_memory(buffer.__array__(), buffer.to_numpy())
    assert np.shares_memory(buffer.__array__("f8", copy=False), buffer.to_numpy())
    assert not np.shares_memory(buffer.__array__(copy=True), buffer.to_numpy())
    assert buffer.__array__(np.float32).dtype == np.float32
    assert buffer.__array__("f4", True).dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        buffer.__array__("f4", copy=False)
    with pytest.raises(TypeError, match="copy"):
        buffer.__array__(copy=1)
    with pytest.raises(TypeError):
        buffer.__array__("no type")
    assert np.asarray(buffer, "i8").dtype == np.int64
    with pytest.raises(ValueError):
        np.array(buffer, "i8", copy=False)
    assert buffer.to_numpy().base is buffer


# ---- DLPack. ----

DLPACK_TYPES = {
    "?": (6, 8),
    "i1": (0, 8),
    "u2": (1, 16),
    "i8": (0, 64),
    "f2": (2, 16),
    "f4": (2, 32),
    "f8": (2, 64),
    "c8": (5, 64),
    "c16": (5, 128),
}


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3), (2, 0), (99, 99)])
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "repeated"])
def test_dlpack_says_what_the_buffer_says(view: str, max_version: tuple[int, int] | None) -> None:
    buffer = example(view=view)
    versioned = max_version is not None and max_version[0] >= 1
    if buffer.readonly and not versioned:
        with pytest.raises(BufferError, match="read"):
            buffer.__dlpack__(max_version=max_version)
        return
    capsule = buffer.__dlpack__(max_version=max_version)
    assert capsule_name(capsule) == (b"dltensor_versioned" if versioned else b"dltensor")
    managed = opened(capsule)
    tensor = managed.tensor
    assert (tensor.device_type, tensor.device_id) == buffer.__dlpack_device__() == (1, 0)
    assert tensor.entries("shape") == buffer.shape
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 64, 1)
    if buffer.size:
        assert (tensor.data or 0) + tensor.byte_offset == address(buffer)
        expected = [stride // 8 for stride in buffer.strides]
        for axis, extent in enumerate(buffer.shape):
            assert extent == 1 or tensor.entries("strides")[axis] == expected[axis]
    if versioned:
        assert managed.major == 1
        assert (managed.major, managed.minor) <= max_version
        assert managed.flags == (1 if buffer.readonly else 0)


def test_dlpack_types() -> None:
    for dtype, (code, bits) in DLPACK_TYPES.items():
        tensor = opened(gridbuf.allocate((2,), dtype).__dlpack__()).tensor
        assert (tensor.code, tensor.bits) == (code, bits)
    for dtype, code, bits in ((ml_dtypes.bfloat16, 4, 16), (ml_dtypes.float8_e4m3fn, 10, 8)):
        tensor = opened(gridbuf.allocate((2,), dtype).__dlpack__(max_version=(1, 1))).tensor
        assert (tensor.code, tensor.bits) == (code, bits)


@pytest.mark.parametrize("dtype", [">f8", "M8[s]", "m8[s]", "S3", "U2", "V5", RECORD, "g"], ids=str)
def test_dlpack_refuses_what_it_has_no_word_for(dtype: Any) -> None:
    for max_version in (None, (1, 0)):
        with pytest.raises(BufferError):
            gridbuf.allocate((2,), dtype).__dlpack__(max_version=max_version)


def test_dlpack_copies_only_when_asked() -> None:
    buffer = example(view="cut")
    for copy in (None, False):
        managed = opened(buffer.__dlpack__(max_version=(1, 0), copy=copy))
        assert managed.tensor.data == address(buffer)
        assert managed.flags == 0
    capsule = buffer.__dlpack__(max_version=(1, 0), copy=True)
    managed = opened(capsule)
    assert managed.flags == 2
    assert managed.tensor.data != address(buffer)
    seen = np.from_dlpack(buffer, copy=True)
    assert (seen == buffer.to_numpy()).all()
    assert not np.shares_memory(seen, buffer.to_numpy())
    legacy = opened(buffer.__dlpack__(copy=True))
    assert legacy.tensor.data != address(buffer)
    # A copy of read-only memory is the consumer's alone.
    assert opened(buffer.toreadonly().__dlpack__(max_version=(1, 0), copy=True)).flags == 2


class DeviceKind(enum.Enum):
    HOST = 1
    CUDA = 2


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"stream": 0}, Exception),
        ({"stream": 1}, Exception),
        ({"stream": 2**70}, ValueError),
        ({"stream": "1"}, TypeError),
        ({"stream": True}, TypeError),
        ({"stream": 1.0}, TypeError),
        ({"max_version": 1}, TypeError),
        ({"max_version": [1, 0]}, TypeError),
        ({"max_version": (1,)}, TypeError),
        ({"max_version": (1, 0, 0)}, TypeError),
        ({"max_version": (1.0, 0)}, TypeError),
        ({"max_version": (2**70, 0)}, ValueError),
        ({"dl_device": (2, 0)}, (BufferError, ValueError)),
        ({"dl_device": (1, 3)}, (BufferError, ValueError)),
        ({"dl_device": (DeviceKind.CUDA, 0)}, (BufferError, ValueError)),
        ({"dl_device": (-(2**40), 0)}, (BufferError, ValueError)),
        ({"dl_device": 1}, TypeError),
        ({"dl_device": ("cpu", 0)}, TypeError),
        ({"dl_device": (1, 0, 0)}, TypeError),
        ({"copy": 1}, TypeError),
        ({"copy": "yes"}, TypeError),
        ({"no_such": 1}, TypeError),
    ],
    ids=str,
)
def test_dlpack_keywords_are_checked(keywords: dict[str, Any], error: Any) -> None:
    with pytest.raises(error) as caught:
        example().__dlpack__(**keywords)
    assert not isinstance(caught.value, AssertionError)


def test_dlpack_takes_keywords_only_and_its_own_device() -> None:
    with pytest.raises(TypeError):
        example().__dlpack__(None)
    for device in ((1, 0), (DeviceKind.HOST, 0), None):
        assert capsule_name(example().__dlpack__(dl_device=device)) == b"dltensor"
    assert capsule_name(example().__dlpack__(stream=None)) == b"dltensor"


@given(requests(max_ndim=4), st.data())
@settings(max_examples=150)
def test_all_interfaces_agree_after_any_views(request: dict[str, Any], data: st.DataObject) -> None:
    request["dtype"] = np.dtype(data.draw(st.sampled_from(["f8", "i2", "c8"])))
    buffer = gridbuf.allocate(**request)
    for _ in range(data.draw(st.integers(0, 3))):
        key = tuple(
            slice(None, None, data.draw(st.sampled_from([1, 2, -1, -3]))) for _ in buffer.shape
        )
        buffer = buffer[(..., *key)].transpose(data.draw(st.permutations(range(buffer.ndim))))
    array = np.asarray(buffer)
    fields = buffer.__array_interface__
    tensor = opened(buffer.__dlpack__(max_version=(1, 0))).tensor
    with requested(buffer, REQUESTS["FULL_RO"]) as view:
        assert view.buf == fields["data"][0]
        assert view.len == buffer.nbytes == math.prod(buffer.shape) * buffer.itemsize
    assert fields["shape"] == buffer.shape == array.shape == tensor.entries("shape")
    if buffer.size:
        assert array.ctypes.data == fields["data"][0] == tensor.data + tensor.byte_offset
        for axis, extent in enumerate(buffer.shape):
            if extent > 1:
                assert array.strides[axis] == buffer.strides[axis]
                assert tensor.strides[axis] * buffer.itemsize == buffer.strides[axis]
    assert buffer.dims == buffer.__gt_dims__
    assert len(buffer.__gt_origin__) == buffer.ndim


# ---- GT4Py. ----


def test_the_origin_is_in_annotation_order() -> None:
    buffer = gridbuf.allocate(
        (9, 8, 7, 6, 5), dims=("10", "K", "2", "J", "I"), aligned_index=(1, 2, 3, 4, 0)
    )
    assert buffer.__gt_dims__ == ("10", "K", "2", "J", "I")
    assert buffer.__gt_origin__ == buffer.default_origin == (0, 4, 2, 3, 1)
    assert gridbuf.allocate((3, 4)).__gt_origin__ == (0, 0)
    assert all(type(entry) is int for entry in buffer.__gt_origin__)


def test_names_and_origin_follow_views() -> None:
    buffer = gridbuf.allocate((9, 8, 7), dims="KJI", aligned_index=(3, 2, 1))
    assert buffer[1:, :, 0].__gt_dims__ == ("K", "J")
    assert buffer[1:, :, 0].__gt_origin__ == (2, 2)
    assert buffer.T.__gt_origin__ == buffer.__gt_origin__ == (1, 2, 3)
    assert buffer[None].__gt_dims__ == ("0", "K", "J", "I")
