"""A reader through any interface sees what the other side wrote last.

Each test writes on one side in some way that counts as an access, and reads on the other through one door, as often as
there are pairs of the two. The writes on the device are left pending on its stream, and the emulated device runs its
streams as late as the rules allow: a door that forgets to wait, or to copy, shows old bytes.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest
from foreign import (
    KINDS,
    Foreign,
    OnHost,
    device_capsule,
    emulated,
    entry,
    of_interface,
    through,
)

SHAPE = (3, 4, 5)
OLD, NEW = 1, 7


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


@pytest.fixture(params=["synced", "managed"])
def storage(request: pytest.FixtureRequest) -> Any:
    """A storage with both sides, which agree; one byte an element, so that fills can be left pending."""
    made = gridbuf.storage.full(
        SHAPE,
        OLD,
        "u1",
        layout=(2, 0, 1),
        alignment_size=24,
        halo=(1, 1, 1),
        **KINDS[request.param],
    )
    made.synchronize()
    return made


def saved(storage: Any) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, storage)
    file.seek(0)
    return np.load(file)


def copied(storage: Any) -> np.ndarray:
    target = np.zeros(SHAPE, storage.dtype)
    np.copyto(target, storage)
    return target


def assigned_from(storage: Any) -> np.ndarray:
    """A plain storage of the host takes the values over."""
    target = gridbuf.storage.zeros(SHAPE, "u1")
    target[...] = storage
    return np.asarray(target)


HOST_DOORS: dict[str, Callable[[Any], Any]] = {
    "memoryview": lambda s: memoryview(s).tolist(),
    "bytes of a memoryview": lambda s: np.frombuffer(memoryview(s).tobytes(), "u1"),
    "data": lambda s: s.data.tolist(),
    "asarray": np.asarray,
    "array": lambda s: np.array(s, copy=True),
    "__array__": lambda s: s.__array__(),
    "__array_interface__": lambda s: np.asarray(
        SimpleNamespace(__array_interface__=s.__array_interface__, owner=s)
    ),
    "dlpack": lambda s: np.from_dlpack(OnHost(s)),
    "dlpack, copied": lambda s: np.from_dlpack(OnHost(s), copy=True),
    "to_numpy": lambda s: s.to_numpy(),
    "as_numpy": gridbuf.as_numpy,
    "data interface": lambda s: through(s, None, Foreign.read, writes=False),
    "elements": lambda s: [s[index] for index in np.ndindex(*SHAPE)],
    "item": lambda s: [s[i : i + 1, 0, 0].item() for i in range(SHAPE[0])],
    "a view": lambda s: np.asarray(s[::-1, :, 1:])[::-1],
    "a transposed view": lambda s: np.asarray(s.T).T,
    "domain_view": lambda s: np.asarray(s.domain_view),
    "iteration": lambda s: [np.asarray(row).tolist() for row in s],
    "copy": lambda s: np.asarray(s.copy()),
    "deepcopy": lambda s: np.asarray(copy.deepcopy(s)),
    "as_storage": lambda s: np.asarray(gridbuf.storage.as_storage(s)),
    "storage": lambda s: np.asarray(gridbuf.storage.storage(s)),
    "from_array": lambda s: gridbuf.from_array(s),
    "pickle": lambda s: np.asarray(pickle.loads(pickle.dumps(s))),
    "save": saved,
    "astype": lambda s: np.asarray(s.astype("f8")),
    "copyto": copied,
    "ufunc": lambda s: np.asarray(s + np.uint8(0)),
    "reduction": lambda s: np.asarray(np.maximum.reduce(s)),
    "all": lambda s: NEW if np.all(s == NEW) else OLD,
    "any": lambda s: OLD if np.any(s != NEW) else NEW,
    "source of an assignment": assigned_from,
}


def by_entry(storage: Any) -> None:
    through(storage, "gpu", lambda elements: elements.fill_late(NEW), writes=True)


def by_capsule(storage: Any) -> Any:
    exported = device_capsule(storage)
    exported.fill_late(NEW)
    return exported


def by_dropped_capsule(storage: Any) -> None:
    by_capsule(storage)


def by_cuda_interface(storage: Any) -> None:
    described = storage.__cuda_array_interface__
    of_interface(described, storage, on_device=True).fill_late(NEW)


def by_mark(storage: Any) -> None:
    """The address was known before; the caller that writes there marks the write."""
    storage.host_to_device()
    of_interface(entry(storage, "gpu"), storage, on_device=True).fill_late(NEW)
    storage.set_device_modified()


def by_parts(storage: Any) -> None:
    for part in (storage[:1], storage[1:, ::2], storage[1:, 1::2]):
        by_entry(part)


def by_another_stream(storage: Any) -> None:
    stream = gridbuf.testing.create_stream()
    with gridbuf.stream(stream):
        by_entry(storage)


DEVICE_WRITERS = (
    by_entry,
    by_capsule,
    by_dropped_capsule,
    by_cuda_interface,
    by_mark,
    by_parts,
    by_another_stream,
)


@pytest.mark.parametrize("door", HOST_DOORS)
@pytest.mark.parametrize("write", DEVICE_WRITERS)
def test_the_host_sees_what_the_device_wrote(
    storage: Any, door: str, write: Callable[[Any], Any]
) -> None:
    kept = write(storage)
    seen = np.asarray(HOST_DOORS[door](storage))
    assert (seen == NEW).all(), f"{door} shows {np.unique(seen)}"
    del kept


@pytest.mark.parametrize("door", sorted(HOST_DOORS.keys() - {"__array_interface__"}))
def test_the_host_sees_each_write_by_an_address_handed_out_once(storage: Any, door: str) -> None:
    """Looking on the host in between must not hide what the holder of the address writes next.

    Only an address of the host's, which also counts until the end, would: then both sides are exported.
    """
    held = of_interface(storage.__cuda_array_interface__, storage, on_device=True)
    for value in (OLD, NEW, OLD, NEW):
        held.fill_late(value)
        seen = np.asarray(HOST_DOORS[door](storage))
        assert (seen == value).all(), f"{door} shows {np.unique(seen)}, not {value}"
        del seen  # the object kept is an export of the host's memory


# ---- The reverse. ----


def by_gpu_entry(storage: Any) -> np.ndarray:
    return through(storage, "gpu", Foreign.read, writes=False)


def by_pointer(storage: Any) -> np.ndarray:
    """`device_data` is an address; shape and strides are the storage's."""
    address = int(storage.device_data)
    return Foreign(address, storage.shape, storage.strides, storage.dtype, 1, storage).read()


DEVICE_DOORS: dict[str, Callable[[Any], np.ndarray]] = {
    "data interface": by_gpu_entry,
    "dlpack": lambda s: device_capsule(s).read(),
    "__cuda_array_interface__": lambda s: of_interface(
        s.__cuda_array_interface__, s, on_device=True
    ).read(),
    "device_data": by_pointer,
    "a view": lambda s: by_gpu_entry(s[::-1, :, 1:]),
    "a transposed view": lambda s: by_gpu_entry(s.T),
    "domain_view": lambda s: by_gpu_entry(s.domain_view),
    "copy": lambda s: by_gpu_entry(s.copy()),
    "as_storage": lambda s: by_gpu_entry(gridbuf.storage.as_storage(s, device="gpu", managed=None)),
    "storage": lambda s: by_gpu_entry(gridbuf.storage.storage(s, device="gpu", managed=None)),
}


def by_assignment(storage: Any) -> None:
    storage[...] = NEW


def by_assigned_parts(storage: Any) -> None:
    storage[::2] = NEW
    storage[1::2, ::-1] = np.full((1, 4, 5), NEW, "u1")


def by_elements(storage: Any) -> None:
    for index in np.ndindex(*SHAPE):
        storage[index] = NEW


def by_fill(storage: Any) -> None:
    storage.fill(NEW)


def by_ufunc(storage: Any) -> None:
    storage += np.uint8(NEW - OLD)


def by_copyto(storage: Any) -> None:
    np.copyto(storage, np.full(SHAPE, NEW, "u1"))


def by_held_memoryview(storage: Any) -> Any:
    held = memoryview(storage)
    np.asarray(held)[...] = NEW
    return held


def by_held_array(storage: Any) -> Any:
    held = storage.to_numpy()
    held[...] = NEW
    return held


def by_dropped_array(storage: Any) -> None:
    by_held_array(storage)


def by_array_interface(storage: Any) -> None:
    described = storage.__array_interface__
    np.asarray(SimpleNamespace(__array_interface__=described, owner=storage))[...] = NEW


def by_host_entry(storage: Any) -> None:
    through(storage, None, lambda elements: elements.write(NEW), writes=True)


HOST_WRITERS = (
    by_assignment,
    by_assigned_parts,
    by_elements,
    by_fill,
    by_ufunc,
    by_copyto,
    by_held_memoryview,
    by_held_array,
    by_dropped_array,
    by_array_interface,
    by_host_entry,
)


@pytest.mark.parametrize("door", DEVICE_DOORS)
@pytest.mark.parametrize("write", HOST_WRITERS)
def test_the_device_sees_what_the_host_wrote(
    storage: Any, door: str, write: Callable[[Any], Any]
) -> None:
    kept = write(storage)
    seen = DEVICE_DOORS[door](storage)
    assert (seen == NEW).all(), f"{door} shows {np.unique(seen)}"
    del kept


# ---- Storages with one side. ----


@pytest.mark.parametrize("door", HOST_DOORS)
@pytest.mark.parametrize("write", HOST_WRITERS)
def test_doors_of_a_storage_on_the_host(door: str, write: Callable[[Any], Any]) -> None:
    storage = gridbuf.storage.full(SHAPE, OLD, "u1", layout=(2, 0, 1), halo=(1, 1, 1))
    kept = write(storage)
    assert (np.asarray(HOST_DOORS[door](storage)) == NEW).all()
    del kept


@pytest.mark.parametrize("write", DEVICE_WRITERS)
def test_doors_of_a_storage_on_the_device(write: Callable[[Any], Any]) -> None:
    storage = gridbuf.storage.full(SHAPE, OLD, "u1", halo=(1, 1, 1), **KINDS["gpu"])
    kept = write(storage)
    for door, look in DEVICE_DOORS.items():
        assert (look(storage) == NEW).all(), door
    for door in (memoryview, np.asarray, lambda s: s.to_numpy(), gridbuf.as_numpy):
        with pytest.raises((TypeError, BufferError)):
            door(storage)
    del kept


def test_cupy_arrays_are_a_door_too() -> None:
    """UNTESTED without a CUDA device: CuPy's arrays over a storage; on the emulated device the refusal is tested."""
    storage = gridbuf.storage.zeros(SHAPE, **KINDS["synced"])
    with pytest.raises(gridbuf.DeviceUnavailableError):
        storage.to_cupy()
