"""Elements as values of Python and NumPy; fills, conversions, copies, pickles."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, emulated

SHAPE = (3, 4, 5)
MEANING = ("dims", "shape", "halo", "aligned_index", "layout", "alignment_size", "dtype", "device")


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


@pytest.fixture(params=list(KINDS))
def storage(request: pytest.FixtureRequest) -> Any:
    made = gs.zeros(
        SHAPE, "f4", layout=(2, 0, 1), alignment_size=48, aligned_index=(1, 1, 1),
        halo=(1, (0, 2), 0), dims=("K", "I", "0"), **KINDS[request.param],
    )  # fmt: skip
    made[...] = pattern()
    return made


def pattern() -> np.ndarray:
    return np.arange(60, dtype="f4").reshape(SHAPE)


def values(storage: Any) -> np.ndarray:
    return gs.storage(storage, device=None).to_numpy()


def parameters(storage: Any) -> tuple[Any, ...]:
    names = "dims shape halo aligned_index layout alignment_size dtype device managed"
    return tuple(getattr(storage, name) for name in names.split())


def same_but_apart(copied: Any, original: Any) -> None:
    assert type(copied) is type(original)
    assert parameters(copied) == parameters(original)
    assert (values(copied) == values(original)).all()
    if original.sync_state is not None:
        assert copied.sync_state is not original.sync_state
    original[0, 0, 0] = -7
    assert values(copied)[0, 0, 0] == 0


# ---- One element. ----


def test_item_is_numpys(storage: Any) -> None:
    assert storage.item(1, -2, 3) == pattern().item(1, -2, 3)
    assert type(storage.item(0, 0, 0)) is float
    assert storage[1:2, 1:2, 1:2].item() == pattern()[1, 1, 1]
    assert storage.item(7) == 7.0
    assert storage.item((0, 1, 2)) == 7.0
    with pytest.raises(IndexError):
        storage.item(3, 0, 0)
    with pytest.raises(ValueError, match="scalar|size 1"):
        storage.item()


def test_one_element_becomes_a_number(storage: Any) -> None:
    one = storage[2:, 3:, 4:]
    assert (float(one), int(one), complex(one), bool(one)) == (59.0, 59, 59 + 0j, True)
    assert bool(storage[:1, :1, :1]) is False
    for convert in (float, int, complex):
        with pytest.raises(TypeError, match="one element"):
            convert(storage)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(storage)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(storage[:0])


def test_only_integers_without_dimensions_are_an_index() -> None:
    for kind in KINDS:
        zero_d = gs.full((), 2, "i2", **KINDS[kind])
        assert [10, 11, 12][zero_d] == 12
        for wrong in (gs.full((1,), 2, "i2", **KINDS[kind]), gs.full((), 2.0, **KINDS[kind])):
            with pytest.raises(TypeError):
                [10, 11, 12][wrong]


def test_tolist_is_to_numpys(storage: Any) -> None:
    if type(storage) is gs.GPUStorage:
        with pytest.raises(gridbuf.GTNoSuchBufferError, match="to_cupy"):
            storage.tolist()
    else:
        assert storage.tolist() == pattern().tolist()
        assert storage[1].tolist() == pattern()[1].tolist()


# ---- All elements. ----


def test_fill_writes_one_value(storage: Any) -> None:
    storage[1:, ::2].fill(9)
    expected = pattern()
    expected[1:, ::2] = 9
    assert (values(storage) == expected).all()
    assert storage.fill(np.float64(1.5)) is None
    assert (values(storage) == 1.5).all()
    with pytest.raises(TypeError, match="one value"):
        storage.fill([1, 2])
    with pytest.raises((TypeError, ValueError)):
        storage.fill("text")


def test_astype_keeps_everything_but_the_type(storage: Any) -> None:
    converted = storage.astype("i2")
    assert type(converted) is type(storage)
    assert converted.dtype == np.int16
    for name in set(MEANING) - {"dtype"}:
        assert getattr(converted, name) == getattr(storage, name)
    assert (values(converted) == pattern()).all()
    same_but_apart(storage.astype("f4"), storage)
    assert storage.astype(np.float32, copy=False) is storage
    with pytest.raises(TypeError, match="safe"):
        storage.astype("i2", casting="safe")
    for wrong in ("no dtype", ("f4", (2,))):
        with pytest.raises(TypeError):
            storage.astype(wrong)
    with pytest.raises(TypeError, match="dtype"):
        storage.astype()


def test_astype_of_python_objects_is_an_array(storage: Any) -> None:
    if isinstance(storage, gs.GPUStorage):
        with pytest.raises(TypeError, match="without Python objects"):
            storage.astype(object)
        return
    for wanted in (object, "O", np.dtype(object)):
        found = storage.astype(wanted)
        assert type(found) is np.ndarray and found.dtype == object and found.flags.writeable
        assert (found == pattern()).all()
    assert np.astype(storage, object).dtype == object
    with pytest.raises(TypeError, match="no"):
        storage.astype(object, casting="no")


# ---- Copies. ----


@pytest.mark.parametrize("copier", [lambda s: s.copy(), copy.copy, copy.deepcopy], ids=str)
def test_copies_keep_every_parameter(storage: Any, copier: Any) -> None:
    same_but_apart(copier(storage), storage)


def test_views_are_copied_as_they_are_seen(storage: Any) -> None:
    view = storage[::-1, 1:, None, 2].T
    copied = view.copy()
    assert parameters(copied)[:3] == parameters(view)[:3]
    assert (values(copied) == pattern()[::-1, 1:, None, 2].T).all()
    assert (copied.layout, copied.alignment_size) == (view.layout, view.alignment_size)


def test_a_copy_is_dirty_nowhere_that_matters() -> None:
    for dirty in ("set_host_modified", "set_device_modified"):
        storage = gs.full((2, 3), 4, device="gpu")
        storage.synchronize()
        getattr(storage, dirty)()
        copied = storage.copy()
        assert np.asarray(copied).tolist() == [[4] * 3] * 2
        assert values(gs.as_storage(copied, device="gpu", managed=None)).tolist() == [[4] * 3] * 2


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_values_and_parameters_survive_a_pickle(storage: Any, protocol: int) -> None:
    same_but_apart(pickle.loads(pickle.dumps(storage, protocol)), storage)


def test_pickles_hold_what_a_view_shows_and_no_padding(storage: Any) -> None:
    view = storage[1:, ::-2].T
    again = pickle.loads(pickle.dumps(view))
    assert parameters(again) == parameters(view)
    assert (values(again) == pattern()[1:, ::-2].T).all()
    wide = gs.zeros((2, 1 << 10), "u1", layout=(1, 0), alignment_size=1 << 12)
    assert len(pickle.dumps(wide)) < 4096 + 1024


def test_elements_in_row_major_order_are_pickled_without_a_copy() -> None:
    storage = gs.full((64, 64), 3.0, device="gpu")
    buffers: list[Any] = []
    pickled = pickle.dumps(storage, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert buffers[0].raw().nbytes == storage.nbytes
    assert len(pickled) < 1024
    again = pickle.loads(pickled, buffers=buffers)
    assert (np.asarray(again) == 3).all()


def test_a_tampered_pickle_is_an_error() -> None:
    restore, arguments = gs.zeros((2, 3)).__reduce_ex__(4)
    assert restore(*arguments).shape == (2, 3)
    elements, shape, dtype, parameters = arguments
    for name, wrong in {
        "dims": ("I", "I"), "halo": ((9, 9), (0, 0)), "aligned_index": (5, 5), "layout": (0, 0),
        "alignment_size": -1, "device": "moon", "managed": "unknown", "shape": (2, 3), 5: 6,
    }.items():  # fmt: skip
        with pytest.raises((ValueError, TypeError, gridbuf.DeviceUnavailableError)) as caught:
            restore(elements, shape, dtype, {**parameters, name: wrong})
        if name == "managed":  # Which has no meaning on the host.
            assert "managed" in str(caught.value)
    for wrong in [
        (elements, (2, 4), dtype, parameters), (elements, (-1, 3), dtype, parameters),
        (elements, shape, "O", parameters), (5, shape, dtype, parameters),
        (elements, shape, dtype, ("I",)), (elements, 4, dtype, parameters),
    ]:  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            restore(*wrong)


def test_a_storage_of_a_device_comes_back_on_a_device_or_not_at_all() -> None:
    pickled = pickle.dumps(gs.full((2, 3), 5, "i4", **KINDS["gpu"]))
    assert type(pickle.loads(pickled)) is gs.GPUStorage
    code = f"import pickle; print(pickle.loads({pickled!r}).dims)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    # Another process: it finds its device, or says that it has none.
    assert "('I', 'J')" in done.stdout or "DeviceUnavailableError" in done.stderr


def test_numpy_saves_and_loads_what_the_host_can_read(storage: Any) -> None:
    file = io.BytesIO()
    if type(storage) is gs.GPUStorage:
        with pytest.raises(TypeError, match="to_cupy"):
            np.save(file, storage)
        return
    np.save(file, storage)
    file.seek(0)
    assert (np.load(file) == pattern()).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dtype", ["?", "u1", "i8", "f2", "c16", "M8[s]", "U3", "S5", "V6", "i4,f8", ">f4"]
)
def test_every_dtype_of_fixed_size_is_held(kind: str, dtype: str) -> None:
    expected = np.zeros((2, 3), dtype)
    expected.reshape(-1).view("u1")[...] = np.arange(expected.nbytes) % 2 if dtype == "?" else (
        np.arange(expected.nbytes) % 5 + 1 if dtype != "U3" else np.tile([65, 0, 0, 0], 18)
    )  # fmt: skip
    storage = gs.storage(expected, **KINDS[kind])
    assert storage.dtype == expected.dtype
    assert values(storage).tobytes() == expected.tobytes()
    assert values(pickle.loads(pickle.dumps(storage[::-1]))).tobytes() == expected[::-1].tobytes()
    assert storage[1, 2] == expected[1, 2]
    with pytest.raises(TypeError):
        gs.zeros(3, "O")
