"""as_storage and storage: memory of others wrapped or copied, with its parameters found or refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, emulated

SyncState = gs.SyncState


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


def values(storage: Any) -> list[Any]:
    return np.asarray(gs.storage(storage, device=None)).tolist()


def on_device(array: Any, memory: str = "device") -> gridbuf.Buffer:
    return gridbuf.as_buffer(np.ascontiguousarray(array)).copy(memory=memory)


class Offering:
    """An object with one interface of an array, and nothing else."""

    def __init__(self, name: str, source: Any) -> None:
        self._source = source
        setattr(type(self), name, property(lambda self: getattr(self._source, name)))
        if name == "__dlpack__":
            type(self).__dlpack_device__ = lambda self: self._source.__dlpack_device__()


def offering(name: str, source: Any) -> Any:
    return type(f"Offering{name}", (Offering,), {})(name, source)


# ---- Input by any interface (4.1). ----

HOST_INTERFACES = ["__array_interface__", "__array_struct__", "__dlpack__"]


@pytest.mark.parametrize("interface", HOST_INTERFACES)
def test_host_memory_is_wrapped_through_each_interface(interface: str) -> None:
    array = np.arange(6.0).reshape(2, 3)
    storage = gs.as_storage(offering(interface, array))
    assert type(storage) is gs.CPUStorage
    storage[1, 2] = 50
    assert array[1, 2] == 50, "it is the same memory"
    array[0, 0] = -1
    assert storage[0, 0] == -1
    assert values(gs.storage(offering(interface, array))) == array.tolist()


def test_buffers_and_data_interfaces_are_wrapped() -> None:
    memory = bytearray(8)
    gs.as_storage(memory)[3] = 7
    assert memory[3] == 7
    array = np.zeros((2, 3))
    foreign = type("F", (), {})()
    foreign.__gt_data_interface__ = {
        None: dict(array.__array_interface__, dims=("J", "K"), halo=((0, 1), (1, 1)))
    }
    storage = gs.as_storage(foreign)
    assert (storage.dims, storage.halo, storage.aligned_index) == (
        ("J", "K"),
        ((0, 1), (1, 1)),
        (0, 1),
    )


@pytest.mark.parametrize("interface", ["__cuda_array_interface__", "__dlpack__"])
def test_device_memory_is_wrapped_as_data_or_device_data(interface: str) -> None:
    array = np.arange(6.0).reshape(2, 3)
    buffer = on_device(array)
    for storage in (
        gs.as_storage(offering(interface, buffer), managed=None),
        gs.as_storage(device_data=offering(interface, buffer), managed=None),
    ):
        assert type(storage) is gs.GPUStorage
        storage[1, 2] = 50
        assert buffer.copy(memory="host").to_numpy()[1, 2] == 50
    managed = gs.as_storage(on_device(array, "managed"))
    assert type(managed) is gs.CUDAManagedGPUStorage
    assert values(managed) == array.tolist()


def test_what_offers_no_memory_is_a_type_error() -> None:
    for thing in ([1, 2], 3, "text", object()):
        with pytest.raises(TypeError, match="interface"):
            gs.as_storage(thing)
    assert values(gs.storage([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert gs.storage(3.5).shape == ()


def test_the_owner_is_kept_alive_and_let_go() -> None:
    class Array(np.ndarray):
        pass

    array = np.zeros(4).view(Array)
    gone = weakref.ref(array)
    view = gs.as_storage(array)[1:]
    exported = np.asarray(view)
    del array, view
    gc.collect()
    assert gone() is not None
    exported[0] = 3
    del exported
    gc.collect()
    assert gone() is None


def test_one_buffer_gets_the_other_where_gridbuf_shall_keep_two_in_step() -> None:
    array = np.arange(6.0).reshape(2, 3)
    storage = gs.as_storage(array, device="gpu")
    assert type(storage) is gs.SoftwareManagedGPUStorage
    assert storage.sync_state.state == SyncState.SYNC_HOST_DIRTY
    storage.host_to_device()
    array[0, 0] = 9  # Behind its back, and said so.
    storage.set_host_modified()
    assert values(gs.as_storage(storage, device="gpu", managed=None))[0][0] == 9
    buffer = on_device(array)
    storage = gs.as_storage(buffer)
    assert type(storage) is gs.SoftwareManagedGPUStorage
    assert storage.sync_state.state == SyncState.SYNC_DEVICE_DIRTY
    assert np.asarray(storage).tolist() == array.tolist()


# ---- Two buffers and a SyncState. ----


def test_two_buffers_need_a_sync_state() -> None:
    host = np.zeros((2, 3))
    for make in (gs.as_storage, gs.storage):
        with pytest.raises(ValueError, match="sync_state"):
            make(host, on_device(host))
        with pytest.raises(TypeError, match="SyncState"):
            make(host, on_device(host), sync_state=1)


@pytest.mark.parametrize("state", [0, 1, 2])
def test_the_sync_state_says_which_buffer_is_current(state: int) -> None:
    host, device = np.full((2, 3), 1.0), on_device(np.full((2, 3), 2.0))
    current = 2.0 if state == 2 else 1.0
    assert values(gs.storage(host, device, sync_state=SyncState(state))) == [[current] * 3] * 2
    storage = gs.as_storage(host, device, sync_state=SyncState(state))
    assert type(storage) is gs.SoftwareManagedGPUStorage
    assert storage.sync_state.state == state
    assert np.asarray(storage).tolist() == [[current] * 3] * 2
    storage.synchronize()
    assert device.copy(memory="host").to_numpy().tolist() == [[current] * 3] * 2


def test_re_wrapping_both_extracted_buffers_takes_the_original_state() -> None:
    storage = gs.zeros((2, 3), device="gpu", halo=(1, 0))
    host = storage.to_numpy()
    device = gridbuf.from_interface(storage.__cuda_array_interface__, owner=storage)
    again = gs.as_storage(host, device, sync_state=storage.sync_state)
    assert again.sync_state is storage.sync_state
    storage[1] = 4
    assert storage.sync_state.state == SyncState.SYNC_HOST_DIRTY
    assert values(gs.as_storage(again, device="gpu", managed=None)) == [[0] * 3, [4] * 3]
    with pytest.raises(ValueError, match="state"):
        gs.as_storage(np.zeros((2, 3)), on_device(np.zeros((2, 3))), sync_state=storage.sync_state)
    with pytest.raises(ValueError, match="sync_state"):
        gs.as_storage(np.zeros(3), sync_state=SyncState())


def test_a_sync_state_is_made_of_one_flag() -> None:
    assert SyncState().state == SyncState.SYNC_CLEAN == 0
    assert SyncState(SyncState.SYNC_DEVICE_DIRTY).state is SyncState.SYNC_DEVICE_DIRTY
    assert SyncState(state=1).state == SyncState.SYNC_HOST_DIRTY
    assert repr(SyncState(2)) == "SyncState(SYNC_DEVICE_DIRTY)"
    for wrong in (3, 4, -1, 2**80):
        with pytest.raises(ValueError, match="state"):
            SyncState(wrong)
    for wrong in ("clean", 1.0, True):
        with pytest.raises(TypeError):
            SyncState(wrong)
    with pytest.raises(TypeError):
        SyncState.SYNC_CLEAN = 5
    with pytest.raises(AttributeError):
        SyncState().state = 1


def test_one_state_is_one_object_shared_by_all_views() -> None:
    storage = gs.zeros((4, 5), device="gpu")
    state = storage.sync_state
    for view in (storage[1:], storage.T, storage.domain_view, gs.as_storage(storage)):
        assert view.sync_state is state
    assert storage.copy().sync_state is not state
    storage[0] = 1
    assert state.state == SyncState.SYNC_HOST_DIRTY
    storage[2:].set_device_modified()
    assert state.state == SyncState.SYNC_HOST_DIRTY | SyncState.SYNC_DEVICE_DIRTY


# ---- Validation: parameter, wanted, found (3.2). ----


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"layout": (1, 0)}, r"layout is wanted as \(1, 0\).*\(0, 1\)"),
        ({"backend": "F"}, r"layout is wanted as \(1, 0\).*\(0, 1\)"),
        ({"alignment_size": 4096}, "alignment_size is wanted as 4096"),
        ({"alignment_size": 48}, "alignment_size is wanted as 48"),
        ({"device": "gpu", "managed": None}, 'device is wanted as "gpu".*None'),
        ({"device": "gpu", "managed": "cuda"}, 'managed is wanted as "cuda"'),
        ({"aligned_index": (0, 3)}, "aligned_index"),
        ({"dims": "IJK"}, "dim"),
        ({"halo": (2, 0)}, "halo"),
    ],
)
def test_parameters_that_the_memory_does_not_have_are_refused(
    keywords: dict[str, Any], message: str
) -> None:
    array = gridbuf.zeros((2, 3), "f8")  # Starts at a multiple of 64 and no more, by its rows.
    for make in (gs.as_storage, lambda *a, **k: gs.storage(*a, copy=False, **k)):
        with pytest.raises(ValueError, match=message):
            make(array, **keywords)


def test_parameters_that_the_memory_has_are_accepted() -> None:
    array = np.asfortranarray(np.zeros((2, 3)))
    storage = gs.as_storage(array, layout=(1, 0), alignment_size=8, halo=(1, 1), dims="KI")
    assert (storage.layout, storage.alignment_size, storage.halo) == ((1, 0), 8, ((1, 1), (1, 1)))
    assert storage.aligned_index == (1, 1)
    assert gs.as_storage(np.zeros((1, 3)), layout=(1, 0)).shape == (1, 3), (
        "an extent of 1 has no order"
    )
    assert (
        gs.as_storage(gs.zeros((4, 4), alignment_size=64), alignment_size=64).alignment_size == 64
    )


def test_memory_on_the_wrong_side_is_named() -> None:
    host, device = np.zeros(3), on_device(np.zeros(3))
    with pytest.raises(ValueError, match="device_data"):
        gs.as_storage(device_data=host)
    with pytest.raises(ValueError, match="data"):
        gs.as_storage(device, device, sync_state=SyncState())
    with pytest.raises(ValueError, match="device is wanted as None"):
        gs.as_storage(device, device=None)
    with pytest.raises(ValueError, match="managed is wanted as None"):
        gs.as_storage(host, device, sync_state=SyncState(), device="gpu", managed=None)


def test_two_buffers_must_be_of_one_array() -> None:
    host = np.zeros((2, 3))
    for other in (
        np.zeros((2, 4)),
        np.zeros((2, 3), "f4"),
        np.zeros((3, 2)).T,
        np.zeros(3),
        np.zeros((1, 2, 3)),
    ):
        device = gridbuf.as_buffer(other).copy(memory="device")
        with pytest.raises(ValueError, match="shape|dtype|strides"):
            gs.as_storage(host, device, sync_state=SyncState())


# ---- storage(copy=...). ----


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_any_kind_is_copied_to_any_kind(source: str, target: str) -> None:
    data = gs.zeros((3, 4), "i4", halo=(1, 0), dims="KI", layout=(1, 0), **KINDS[source])
    data[...] = np.arange(12).reshape(3, 4)
    keywords = {"device": None, **KINDS[target]}
    copied = gs.storage(data, **keywords)
    data[0] = -1
    assert values(copied) == np.arange(12).reshape(3, 4).tolist()
    assert (copied.dims, copied.halo, copied.layout) == (data.dims, data.halo, data.layout)
    assert type(copied) is type(gs.empty(1, **keywords))


def test_copies_convert_and_take_any_names() -> None:
    data = gs.full((3, 4), 3.7, dims="IJ")
    assert gs.storage(data, dtype="i4").dtype == np.int32
    renamed = gs.storage(data, dims="JI")
    assert renamed.dims == ("J", "I")
    assert values(renamed) == [[3.7] * 4] * 3


def test_copy_false_wraps_or_allocates() -> None:
    array = np.zeros((2, 3))
    gs.storage(array, copy=False)[0, 0] = 5
    assert array[0, 0] == 5
    made = gs.storage(shape=(2, 3), dtype="i4", copy=False, device="gpu", managed=None, halo=(1, 1))
    assert type(made) is gs.GPUStorage
    assert (made.shape, made.dtype, made.halo) == ((2, 3), "i4", ((1, 1), (1, 1)))
    with pytest.raises(ValueError, match="dtype is wanted as int32"):
        gs.storage(array, dtype="i4", copy=False)
    with pytest.raises(TypeError, match="cannot be overridden"):
        gs.storage(array, shape=(2, 3), copy=False)
    with pytest.raises(TypeError, match="underdetermined"):
        gs.storage(shape=(2, 3))


@pytest.mark.parametrize(
    ("dtype", "same"),
    [("q", "l"), ("M8[s]", "datetime64[s]"), ("S3", "S3"), (">f8", ">f8"), ("V5", "V5")],
)
def test_types_of_one_meaning_are_one_type(dtype: str, same: str) -> None:
    array = np.zeros((2, 3), dtype)
    made = gs.storage(array, dtype=np.dtype(same), copy=False)
    assert np.shares_memory(made.to_numpy(), array)
    assert made.astype(np.dtype(same), copy=False) is made
    copied = made.astype(np.dtype(same))
    assert copied.dtype.char == np.dtype(same).char
    assert not np.shares_memory(copied.to_numpy(), array)


def test_as_storage_of_a_storage_is_a_view_with_parameters_of_its_own() -> None:
    for kind in KINDS:
        storage = gs.zeros((4, 5), halo=(1, 1), **KINDS[kind])
        view = gs.as_storage(storage, halo=(2, 0))
        assert (storage.halo, view.halo) == (((1, 1), (1, 1)), ((2, 2), (0, 0)))
        renamed = gs.as_storage(storage, dims="KJ")
        assert renamed.dims == ("K", "J")
        renamed[1] = 3
        view[2] = 4
        expected = [[0] * 5, [3] * 5, [4] * 5, [0] * 5]
        assert values(storage) == values(view) == values(renamed) == expected


# ---- Foreign data interfaces: acquire first, touch the written sides, release (section 5). ----


class Recording:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.calls: list[str] = []

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        def note(name: str) -> Any:
            return lambda: self.calls.append(name)

        return {
            None: dict(
                self.array.__array_interface__,
                **{name: note(name) for name in ("acquire", "touch", "release")},
            )
        }


def test_a_wrapped_producer_is_acquired_touched_when_written_and_released() -> None:
    producer = Recording(np.zeros((2, 3)))
    storage = gs.as_storage(producer)
    assert producer.calls == ["acquire"]
    float(storage[0, 0])
    assert producer.calls == ["acquire"]
    storage[0, 0] = 1
    assert producer.calls == ["acquire", "touch"]
    view = storage[1]
    del storage
    view.fill(2)
    assert producer.calls == ["acquire", "touch", "touch"]
    del view
    gc.collect()
    assert producer.calls == ["acquire", "touch", "touch", "release"]
    assert producer.array.tolist() == [[1, 0, 0], [2, 2, 2]]


def test_operands_and_keys_are_acquired_and_released_and_not_touched() -> None:
    storage = gs.zeros((2, 3))
    value = Recording(np.ones((2, 3)))
    storage[...] = value
    assert value.calls == ["acquire", "release"]
    key = Recording(np.array([1, 0]))
    assert storage[key].shape == (2, 3)
    assert key.calls == ["acquire", "release"]
    storage[key] = value
    assert key.calls == ["acquire", "release"] * 2
    copied = Recording(np.ones(3))
    gs.storage(copied)
    assert "touch" not in copied.calls
    assert copied.calls.count("acquire") == copied.calls.count("release")


def test_read_only_memory_is_wrapped_and_not_written() -> None:
    array = np.zeros((2, 3))
    array.flags.writeable = False
    storage = gs.as_storage(array)
    assert not storage.flags.writeable
    assert memoryview(storage).readonly
    for write in (
        lambda: storage.__setitem__(0, 1),
        lambda: storage.__setitem__([0], 1),
        lambda: storage.fill(1),
    ):
        with pytest.raises(ValueError, match="read-only"):
            write()
    copied = storage.copy()
    copied[0] = 1
    assert values(storage) == [[0] * 3] * 2
