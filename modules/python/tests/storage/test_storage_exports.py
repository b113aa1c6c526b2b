"""What storages hand out: attributes, interfaces by side, and what each counts for."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, Foreign, OnHost, emulated, through

SHAPE = (3, 4, 5)
CLEAN, HOST, DEVICE = (
    gs.SyncState.SYNC_CLEAN,
    gs.SyncState.SYNC_HOST_DIRTY,
    gs.SyncState.SYNC_DEVICE_DIRTY,
)


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


def make(kind: str, **keywords: Any) -> Any:
    keywords = {"layout": (2, 0, 1), "alignment_size": 48, "halo": (1, (0, 2), 0), **keywords}
    made = gs.zeros(SHAPE, "f4", **keywords, **KINDS[kind])
    made[...] = np.arange(60).reshape(SHAPE)
    return made


@pytest.fixture(params=list(KINDS))
def storage(request: pytest.FixtureRequest) -> Any:
    return make(request.param)


def sides(storage: Any) -> set[str]:
    return {
        gs.CPUStorage: {"host"},
        gs.GPUStorage: {"device"},
        gs.SoftwareManagedGPUStorage: {"host", "device"},
        gs.CUDAManagedGPUStorage: {"host", "device"},
    }[type(storage)]


# ---- Attributes (4.2). ----


def test_attributes_say_what_was_asked_for(storage: Any) -> None:
    assert (storage.shape, storage.ndim, storage.size) == (SHAPE, 3, 60)
    assert (storage.itemsize, storage.nbytes, storage.dtype) == (4, 240, np.dtype("f4"))
    assert storage.strides == gridbuf.plan(SHAPE, "f4", layout=(2, 0, 1), alignment_size=48).strides
    assert (storage.dims, storage.layout) == (("I", "J", "K"), (2, 0, 1))
    assert (storage.halo, storage.aligned_index) == (((1, 1), (0, 2), (0, 0)), (1, 0, 0))
    assert storage.alignment_size == 48
    assert storage.device == ("gpu" if "device" in sides(storage) else None)
    assert storage.T.shape == (5, 4, 3)
    assert (storage.__gt_dims__, storage.__gt_origin__) == (("I", "J", "K"), (1, 0, 0))
    assert storage.domain_view.shape == (1, 2, 5)
    assert storage.domain_view.halo == ((0, 0),) * 3
    storage.domain_view[0, 0, 0] = 77
    assert storage[1, 0, 0] == 77


def test_axes_and_mask_name_the_spatial_dimensions() -> None:
    for dims, axes, mask in [
        ("IJK", "IJK", (True, True, True)),
        ("KI", "IK", (True, False, True)),
        (("0", "J"), "J", (False, True, False)),
        ("", "", (False, False, False)),
    ]:
        storage = gs.zeros((1,) * len(dims), dims=dims)
        assert (storage.axes, storage.mask) == (axes, mask)
        with pytest.raises(AttributeError):
            storage.axes = "I"


def test_the_origin_is_the_lower_halo_in_annotation_order() -> None:
    storage = gs.zeros((8, 8, 8, 2), dims=("K", "0", "I", "J")[::-1], halo=(1, 2, 0, 1))
    assert storage.dims == ("J", "I", "0", "K")
    assert storage.__gt_origin__ == storage.default_origin == (2, 1, 1, 0)
    assert gridbuf.get_origin(storage) == storage.default_origin


def test_flags_are_numpys(storage: Any) -> None:
    like = np.lib.stride_tricks.as_strided(np.zeros(1000, "f4"), SHAPE, storage.strides)
    for name in ("c_contiguous", "f_contiguous", "writeable", "aligned"):
        assert getattr(storage.flags, name) == getattr(like.flags, name)
    assert gs.zeros((2, 3)).flags.c_contiguous
    assert storage.flags["OWNDATA"] is False


def test_only_the_halo_can_be_set(storage: Any) -> None:
    for name in ("shape", "dims", "data", "sync_state", "layout", "dtype"):
        with pytest.raises(AttributeError):
            setattr(storage, name, None)
    with pytest.raises(AttributeError):
        del storage.halo


# ---- Interfaces, by side. ----

BY_SIDE = {
    "__array_interface__": "host",
    "__array_struct__": "host",
    "__cuda_array_interface__": "device",
}


@pytest.mark.parametrize("name", BY_SIDE)
def test_an_interface_is_there_where_its_side_is(storage: Any, name: str) -> None:
    assert hasattr(storage, name) == (BY_SIDE[name] in sides(storage))


def test_the_data_interface_has_the_functions_of_the_kind(storage: Any) -> None:
    entries = storage.__gt_data_interface__
    assert set(entries) == {{"host": None, "device": "gpu"}[side] for side in sides(storage)}
    for key, entry in entries.items():
        assert (entry["shape"], entry["strides"], entry["typestr"]) == (
            SHAPE,
            storage.strides,
            "<f4",
        )
        assert (entry["dims"], entry["halo"]) == (storage.dims, storage.halo)
        assert ("stream" in entry) == (key == "gpu")
        assert "release" not in entry
        synced = type(storage) is gs.SoftwareManagedGPUStorage
        both = len(sides(storage)) == 2
        assert ("acquire" in entry, "touch" in entry) == (both, synced)
    if type(storage) is gs.SoftwareManagedGPUStorage:
        assert entries[None]["acquire"] == storage.device_to_host
        assert entries[None]["touch"] == storage.set_host_modified
        assert entries["gpu"]["acquire"] == storage.host_to_device
        assert entries["gpu"]["touch"] == storage.set_device_modified


def test_reading_the_data_interface_copies_nothing_and_is_no_export() -> None:
    storage = make("synced")
    assert storage.sync_state.state == HOST
    entries = storage.__gt_data_interface__
    assert storage.sync_state.state == HOST
    entries["gpu"]["acquire"]()
    assert storage.sync_state.state == CLEAN
    entries["gpu"]["touch"]()
    assert storage.sync_state.state == DEVICE
    entries[None]["acquire"]()
    assert storage.sync_state.state == CLEAN
    np.asarray(storage[:0])  # An access to the host: nothing is presumed of the device.
    assert storage._current_sides() == ("host", "device")


def test_host_exports_are_views_of_one_memory(storage: Any) -> None:
    if "host" not in sides(storage):
        with pytest.raises(gridbuf.GTNoSuchBufferError, match="to_cupy"):
            storage.to_numpy()
        with pytest.raises(TypeError, match="to_cupy"):
            np.asarray(storage)
        with pytest.raises(BufferError):
            memoryview(storage)
        assert storage.data is None
        return
    seen = [storage.to_numpy(), np.asarray(storage), np.asarray(memoryview(storage)),
            np.asarray(storage.data), storage.__array__()]  # fmt: skip
    for array in seen:
        assert array.tolist() == np.arange(60).reshape(SHAPE).tolist()
        assert array.strides == storage.strides
        assert np.shares_memory(array, seen[0])
    seen[0][0, 0, 0] = 5
    assert storage[0, 0, 0] == 5
    assert storage.__array__("f8").dtype == np.float64
    assert not np.shares_memory(np.array(storage, copy=True), seen[0])
    with pytest.raises(ValueError, match="copy"):
        storage.__array__("f8", copy=False)


def test_to_cupy_needs_a_device_buffer_and_cupy(storage: Any) -> None:
    expected = gridbuf.DeviceUnavailableError
    if "device" not in sides(storage):
        expected = gridbuf.GTNoSuchBufferError
    with pytest.raises(expected):
        storage.to_cupy()
    if "device" in sides(storage):
        with pytest.raises(gridbuf.DeviceUnavailableError):
            storage.to_ndarray()
    else:
        assert isinstance(storage.to_ndarray(), np.ndarray)


def test_to_cupy_on_a_device() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed: to_cupy was not run")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("CuPy finds no CUDA device: to_cupy was not run")
    with gridbuf.testing.emulated_device(False):
        storage = make("synced")
        array = storage.to_cupy()
        assert cupy.asnumpy(array).tolist() == np.arange(60).reshape(SHAPE).tolist()
        array[0] = 3
        assert storage[0, 1, 1] == 3
        del array
        assert storage.to_ndarray().strides == storage.strides


def test_device_data_is_a_pointer(storage: Any) -> None:
    pointer = storage.device_data
    if "device" not in sides(storage):
        assert pointer is None
        return
    assert isinstance(pointer, gs.DevicePointer)
    assert int(pointer) == pointer.ptr == storage.__cuda_array_interface__["data"][0]
    assert (pointer.device_id, pointer.size) == (0, storage.nbytes)
    assert hex(pointer) == hex(pointer.ptr)
    assert ctypes.c_void_p(int(pointer)).value == pointer.ptr
    assert isinstance(pointer.mem, gridbuf.Buffer)
    assert repr(pointer).startswith("DevicePointer(0x")
    with pytest.raises(TypeError):
        gs.DevicePointer()


@pytest.mark.parametrize(
    ("kind", "device"), [("cpu", (1, 0)), ("gpu", (2, 0)), ("synced", (2, 0)), ("managed", (13, 0))]
)
def test_dlpack_exports_the_devices_elements_if_there_are_any(
    kind: str, device: tuple[int, int]
) -> None:
    storage = make(kind)
    assert storage.__dlpack_device__() == device
    host = gridbuf.as_buffer(OnHost(storage)) if kind == "synced" else None
    if host is not None:
        host.to_numpy()[0, 0, 0] = 8
        assert storage.to_numpy()[0, 0, 0] == 8, "without a copy, as there is a host buffer"
    for keywords in ({}, {"max_version": (1, 0)}, {"copy": True}, {"dl_device": (1, 0)}):
        if kind == "gpu" and keywords.get("dl_device"):
            keywords = {**keywords, "copy": None}
        assert type(storage.__dlpack__(**keywords)).__name__ == "PyCapsule"
    if kind == "gpu":
        with pytest.raises(BufferError):
            storage.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(TypeError, match="__dlpack__"):
        storage.__dlpack__(nothing=1)
    with pytest.raises(TypeError):
        storage.__dlpack__(dl_device=3)


def test_numpy_takes_dlpack_of_what_the_host_reads() -> None:
    for kind in ("cpu", "managed"):
        storage = make(kind)
        array = np.from_dlpack(storage)
        array[0, 0, 1] = 4
        assert storage[0, 0, 1] == 4
    synced = make("synced")
    assert np.from_dlpack(synced, device="cpu").tolist() == np.asarray(synced).tolist()


def test_the_exchange_table_is_on_exactly_each_type() -> None:
    name = "__dlpack_c_exchange_api__"
    classes = [gs.CPUStorage, gs.GPUStorage, gs.SoftwareManagedGPUStorage, gs.CUDAManagedGPUStorage]
    assert len({id(vars(kind)[name]) for kind in classes}) == 1
    assert name not in vars(gs.Storage)


def test_dtypes_without_a_word_leave_no_export_behind() -> None:
    storage = gs.zeros((2, 3), "M8[s]", device="gpu")
    assert storage.sync_state.state == CLEAN
    with pytest.raises(BufferError):
        storage.__dlpack__()
    with pytest.raises((BufferError, ValueError)):
        memoryview(storage)
    assert not hasattr(storage, "__array_struct__")
    np.asarray(storage[:0])
    assert storage._current_sides() == ("host", "device")


# ---- What exports count for. ----


def test_a_live_writable_export_is_presumed_to_write() -> None:
    storage = make("synced")
    storage.synchronize()
    array = storage.to_numpy()
    for value in (1, 2):
        array[...] = value
        assert (device_values(storage) == value).all()
    del array
    assert storage.sync_state.state == HOST, "it may have been written up to its end"
    storage.synchronize()
    assert (device_values(storage) == 2).all()
    assert storage.sync_state.state == CLEAN, "no export is held any more"


DTYPES = [
    "f8", "f2", "i8", "u1", "?", "c16", "M8[ns]", "M8[D]", "m8[s]", "S3", "U2",
    [("time", "M8[s]"), ("value", "f8")],
    [("value", "f4"), ("inner", [("flag", "?"), ("step", "m8[ms]")])],
    np.dtype([("value", "f8"), ("short", "i2")], align=True),
    np.dtype([("short", "i2"), ("value", "f8"), ("time", "M8[s]")], align=True),
]  # fmt: skip


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the elements are equal bit by bit, but for the padding of records."""
    if a.dtype.names:
        return all(same(a[name], b[name]) for name in a.dtype.names)
    return a.tobytes() == b.tobytes()


def read_by_memoryview(storage: Any) -> None:
    with contextlib.suppress(BufferError):  # types that have no buffer format
        memoryview(storage).release()


READERS: dict[str, Callable[[Any], Any]] = {
    "array": np.array,
    "asarray": lambda s: np.asarray(s).copy(),
    "asarray of a view": lambda s: np.asarray(s[1:, ::-1]).copy(),
    "save": lambda s: np.save(io.BytesIO(), s),
    "pickle": pickle.dumps,
    "tolist": lambda s: s.tolist(),
    "memoryview": read_by_memoryview,
    "copyto": lambda s: np.copyto(np.empty(s.shape, s.dtype), s),
    "assignment": lambda s: np.empty(s.shape, s.dtype).__setitem__(..., s),
    "repr": repr,
    "str": str,
    "to_numpy": lambda s: s.to_numpy().copy(),
    "copy": lambda s: s.copy(),
    "hasattr": lambda s: hasattr(s, "__array_struct__"),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("reader", READERS)
def test_a_read_of_any_type_is_over_when_it_is_over(reader: str, dtype: Any) -> None:
    """It is not a writable export afterwards: no value that the device writes later is lost."""
    dtype = np.dtype(dtype)
    numbers = np.random.default_rng(16).integers(0, 2, (4, 3, 5, dtype.itemsize), np.uint8)
    if dtype.kind == "U":
        numbers.view("u4")[...] &= 1
    first = numbers.view(dtype)[..., 0]
    second = first[::-1].copy()
    made = gs.storage(first, dims="IJK", **KINDS["synced"])
    READERS[reader](made)
    gc.collect()
    pointer = made.device_data
    device = Foreign(pointer.ptr, made.shape, made.device_strides, made.dtype, 1, pointer)
    assert same(device.read(), first)
    device.write(second)
    assert same(np.array(made), second)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_array_of_any_type_over_a_storage_is_an_export_while_it_lives(dtype: Any) -> None:
    zeros = np.zeros((4, 3, 5), dtype)
    ones = np.ones((4, 3, 5, zeros.dtype.itemsize), np.uint8).view(dtype)[..., 0]
    made = gs.storage(zeros, **KINDS["synced"])
    array = np.asarray(made)
    array[...] = ones
    on_device = through(made, "gpu", Foreign.read, writes=False)
    assert same(on_device.view(dtype), ones)


def test_memoryviews_count_while_they_live_and_read_only_views_never() -> None:
    storage = make("synced")
    storage.synchronize()
    view = memoryview(storage)
    view[0, 0, 0] = 5.0
    assert device_values(storage)[0, 0, 0] == 5
    view.release()
    storage.synchronize()
    assert storage.sync_state.state == CLEAN
    assert (device_values(storage)[1] == np.arange(20, 40).reshape(4, 5)).all()
    assert storage.sync_state.state == CLEAN


def device_values(storage: Any) -> np.ndarray:
    """By way of a copy on the device, which is not an export."""
    from foreign import Foreign, through

    return through(storage, "gpu", Foreign.read, writes=False)


# ---- Synchronisation at Python's level (4.5). ----


def test_the_methods_are_no_ops_on_every_other_kind() -> None:
    for kind in ("cpu", "gpu", "managed"):
        storage = make(kind)
        assert storage.sync_state is None
        for call in (
            storage.device_to_host,
            storage.host_to_device,
            storage.synchronize,
            storage.set_host_modified,
            storage.set_device_modified,
            storage.set_synchronized,
            lambda s=storage: s.device_to_host(force=True),
            lambda s=storage: s.host_to_device(force=True),
        ):
            assert call() is None
        expected = np.arange(60).reshape(SHAPE)
        assert (np.asarray(gs.storage(storage, device=None)) == expected).all()


def test_force_is_a_bool_by_name_alone() -> None:
    storage = make("synced")
    for call in (storage.device_to_host, storage.host_to_device):
        with pytest.raises(TypeError):
            call(True)
        with pytest.raises(TypeError, match="force"):
            call(force=1)
        with pytest.raises(TypeError, match="force"):
            call(forced=True)


def test_marks_that_contradict_each_other_are_a_sync_conflict() -> None:
    storage = make("synced")
    storage.synchronize()
    storage[:2].set_host_modified()
    storage[2:].set_device_modified()
    assert storage.sync_state.state == HOST | DEVICE
    with pytest.raises(gridbuf.SyncConflictError):
        storage[1:].set_device_modified()
    assert storage.sync_state.state == HOST | DEVICE
    storage.set_synchronized()
    assert storage.sync_state.state == CLEAN


def test_a_failed_copy_leaves_state_and_elements() -> None:
    storage = make("synced")
    for operation in ("copy", "synchronize", "launch"):
        before = storage.sync_state.state
        with gridbuf.testing.failing(operation, count=99, error=MemoryError):
            try:
                storage.host_to_device(force=True)
            except MemoryError:
                assert storage.sync_state.state == before
        assert np.asarray(storage).tolist() == np.arange(60).reshape(SHAPE).tolist()


def test_without_the_emulated_device_its_memory_is_not_exported() -> None:
    storage = make("synced")
    with gridbuf.testing.emulated_device(False):
        assert not hasattr(storage, "__cuda_array_interface__")
        assert list(storage.__gt_data_interface__) == [None]
        with pytest.raises(BufferError):
            storage.__dlpack__()
        assert np.asarray(storage)[0, 0, 1] == 1
