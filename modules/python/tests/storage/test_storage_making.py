"""The functions that allocate storages: classes, parameters and where they are looked up, values, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, emulated

CLASSES = {
    "cpu": gs.CPUStorage,
    "gpu": gs.GPUStorage,
    "synced": gs.SoftwareManagedGPUStorage,
    "managed": gs.CUDAManagedGPUStorage,
}


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


def values(storage: Any) -> np.ndarray:
    """The elements on the host, whatever the kind."""
    return np.asarray(gs.storage(storage, device=None))


# ---- Classes (4.1). ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [gs.empty, gs.zeros, gs.ones])
def test_the_class_follows_from_device_and_managed(kind: str, make: Any) -> None:
    made = make((2, 3), **KINDS[kind])
    assert type(made) is CLASSES[kind]
    assert isinstance(made, gs.Storage)
    assert made.device == (None if kind == "cpu" else "gpu")
    assert (made.sync_state is not None) == (kind == "synced")


def test_managed_defaults_to_gt4py_on_a_device_and_matters_nowhere_else() -> None:
    assert type(gs.zeros(3, device="gpu")) is gs.SoftwareManagedGPUStorage
    assert type(gs.zeros(3, backend="gt:gpu")) is gs.SoftwareManagedGPUStorage
    assert type(gs.zeros(3, managed="cuda")) is gs.CPUStorage
    assert type(gs.zeros(3, backend="gt:gpu", device=None)) is gs.CPUStorage
    assert type(gs.zeros(3, backend="gt:gpu", managed=None)) is gs.GPUStorage


@pytest.mark.parametrize("kind", CLASSES.values(), ids=list(CLASSES))
def test_classes_cannot_be_called_extended_or_changed(kind: type) -> None:
    with pytest.raises(TypeError, match=r"gridbuf\.storage\.empty"):
        kind((2, 3))
    with pytest.raises(TypeError):
        object.__new__(kind)
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (kind,), {})
    with pytest.raises(TypeError):
        kind.mine = 1
    made = gs.zeros(3)
    with pytest.raises((TypeError, AttributeError)):
        made.__class__ = gs.GPUStorage
    with pytest.raises(AttributeError):
        made.mine = 1


# ---- Values. ----


@pytest.mark.parametrize("kind", KINDS)
def test_each_function_gives_its_values(kind: str) -> None:
    keywords = dict(KINDS[kind], layout=(2, 0, 1), alignment_size=48)
    assert (values(gs.zeros((2, 3, 5), "i2", **keywords)) == 0).all()
    assert (values(gs.ones((2, 3, 5), "c8", **keywords)) == 1).all()
    assert (values(gs.full((2, 3, 5), 7.9, "i4", **keywords)) == 7).all()
    like = gs.full_like(gs.zeros((2, 3, 5), "f4", **keywords), 3)
    assert like.dtype == np.float32
    assert (values(like) == 3).all()
    assert gs.empty((2, 3, 5), **keywords).dtype == np.float64


def test_full_casts_and_broadcasts_as_numpy_does() -> None:
    for value, dtype in [(3.7, "i4"), (True, "f8"), ("ab", "U3"), (1 + 2j, "c16")]:
        assert (np.asarray(gs.full((2, 2), value, dtype)) == np.full((2, 2), value, dtype)).all()
    row = gs.full((2, 3), [1, 2, 3], "f4", device="gpu")
    assert values(row).tolist() == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(ValueError, match="broadcast"):
        gs.full((2, 3), [1, 2])


def test_after_zeros_both_buffers_are_equal() -> None:
    made = gs.zeros((2, 3), device="gpu")
    assert made.sync_state.state == gs.SyncState.SYNC_CLEAN
    assert made._current_sides() == ("host", "device")


# ---- Parameters: explicit, preset, data, fallback (3.2). ----


def test_layout_alignment_and_names_are_those_of_the_plan() -> None:
    for keywords in [
        {"layout": (2, 0, 1), "alignment_size": 64, "aligned_index": (1, 2, 3)},
        {"dims": "KJI"},
    ]:
        storage = gs.zeros((4, 5, 6), "f4", **keywords)
        plan = gridbuf.plan((4, 5, 6), "f4", **keywords)
        assert (storage.strides, storage.layout, storage.dims) == (
            plan.strides,
            plan.layout,
            plan.dims,
        )
        assert (storage.alignment_size, storage.aligned_index) == (
            plan.alignment_size,
            plan.aligned_index,
        )
        address = storage.__array_interface__["data"][0]
        offset = np.dot(storage.strides, storage.aligned_index)
        assert (address + int(offset)) % storage.alignment_size == 0


def test_a_preset_goes_by_name_and_is_overridden() -> None:
    storage = gs.zeros((4, 5, 6), backend="gt:cpu_ifirst", dims="KJI")
    assert storage.layout == (0, 1, 2)
    assert storage.alignment_size == 64
    storage = gs.zeros((4, 5, 6), backend="gt:cpu_ifirst", layout=(1, 2, 0), alignment_size=1)
    assert (storage.layout, storage.alignment_size) == ((1, 2, 0), 1)


def test_the_aligned_index_is_the_lower_halo_unless_something_else_says_so() -> None:
    assert gs.zeros((8, 8), halo=(2, (1, 3))).aligned_index == (2, 1)
    assert gs.zeros((8, 8), halo=(2, 1), aligned_index=(0, 5)).aligned_index == (0, 5)
    assert gs.zeros((3,), halo=((3, 0),)).aligned_index == (2,), "an aligned index is an index"
    data = gs.zeros((8, 8), aligned_index=(4, 4))
    assert gs.zeros_like(data, halo=(2, 2)).aligned_index == (4, 4), "data comes before fallbacks"


@pytest.mark.parametrize("kind", KINDS)
def test_like_functions_take_everything_from_a_storage(kind: str) -> None:
    data = gs.zeros(
        (4, 5, 6), "i2", halo=(1, (0, 2), 0), dims=("J", "I", "0"), layout=(1, 2, 0),
        alignment_size=96, aligned_index=(1, 1, 1), **KINDS[kind],
    )  # fmt: skip
    for like in (
        gs.empty_like(data),
        gs.zeros_like(data),
        gs.ones_like(data),
        gs.full_like(data, 2),
    ):
        assert type(like) is type(data)
        assert like._parameters == data._parameters
        assert like.strides == data.strides


def test_like_functions_look_parameters_up_in_order() -> None:
    data = gs.zeros((4, 5), "i2", halo=1 * [1] + [0], layout=(1, 0), alignment_size=96)
    like = gs.zeros_like(data, "f8", backend="gt:gpu", halo=None, device=None)
    assert (like.dtype, like.device, like.alignment_size, like.layout) == ("f8", None, 128, (1, 0))
    assert like.halo == data.halo, "None means that it was not given"
    gpu = gs.zeros_like(data, device="gpu")
    assert type(gpu) is gs.SoftwareManagedGPUStorage
    assert type(gs.zeros_like(gpu, managed=None)) is gs.GPUStorage
    assert type(gs.zeros_like(gpu, device=None)) is gs.CPUStorage
    assert type(gs.zeros_like(gs.zeros(3, **KINDS["managed"]))) is gs.CUDAManagedGPUStorage


def test_like_functions_imitate_arrays_that_are_not_storages() -> None:
    array = np.asfortranarray(np.zeros((4, 5), "i2"))
    like = gs.zeros_like(array, halo=(1, 1))
    assert (like.dtype, like.layout, like.alignment_size) == ("i2", (1, 0), 1)
    assert like.aligned_index == (1, 1)
    plain = gridbuf.zeros((4, 5), alignment_size=64, aligned_index=(0, 2), dims="KI")
    assert gs.zeros_like(plain).aligned_index == (0, 2)
    assert gs.zeros_like(plain).dims == ("K", "I")
    buffer = gridbuf.allocate((4, 5), memory="managed")
    assert type(gs.zeros_like(buffer)) is gs.CUDAManagedGPUStorage
    assert gs.ones_like([[1, 2], [3, 4]]).shape == (2, 2)
    foreign = type("F", (), {})()
    entry = dict(np.zeros((4, 5)).__array_interface__, dims=("J", "K"), halo=((1, 0), (0, 2)))
    foreign.__gt_data_interface__ = {None: entry}
    assert gs.zeros_like(foreign).halo == ((1, 0), (0, 2))
    assert gs.zeros_like(foreign).dims == ("J", "K")


def test_plain_functions_take_storages_too() -> None:
    data = gs.full((4, 5), 3, "i2", layout=(1, 0), dims="JK", device="gpu")
    assert gridbuf.from_array(data).tolist() == np.full((4, 5), 3).tolist()
    assert gridbuf.zeros_like(data, device=None).strides == data.strides
    assert gridbuf.get_dims(data) == ("J", "K")
    assert gridbuf.as_buffer(data).dims == ("J", "K")
    assert gridbuf.as_numpy(data).tolist() == np.full((4, 5), 3).tolist()


def test_reading_a_storage_by_any_function_is_no_export() -> None:
    data = gs.zeros((4, 5), device="gpu")
    for read in (
        gridbuf.from_array,
        gridbuf.zeros_like,
        gs.zeros_like,
        gs.storage,
        gridbuf.get_dims,
    ):
        read(data) if read is not gridbuf.zeros_like else read(data, device=None)
        assert data.sync_state.state == gs.SyncState.SYNC_CLEAN
    gs.zeros((4, 5))[...] = data
    gs.zeros(5)[gs.zeros(2, "i4", device="gpu")]
    assert data.sync_state.state == gs.SyncState.SYNC_CLEAN


def test_padding_is_zeroed_by_every_function_but_empty() -> None:
    for made in (
        gs.zeros((3, 5), "u1", alignment_size=64),
        gs.full((3, 5), 255, "u1", alignment_size=64),
    ):
        start = made.__array_interface__["data"][0]
        import ctypes

        row = (ctypes.c_uint8 * 64).from_address(start + made.strides[0])
        assert bytes(row)[5:] == bytes(59)


# ---- Halos (2.5). ----


def test_a_halo_has_an_integer_or_a_pair_for_each_dimension() -> None:
    assert gs.zeros((8, 8)).halo == ((0, 0), (0, 0))
    assert gs.zeros((8, 8), halo=[np.int64(2), (0, 3)]).halo == ((2, 2), (0, 3))
    assert gs.zeros((), halo=()).halo == ()
    assert gs.zeros((4,), halo=(2,)).domain_view.shape == (0,)


@pytest.mark.parametrize(
    ("halo", "error", "message"),
    [
        ((1, 1, 1), TypeError, "one entry per dimension, 2"),
        ((1,), ValueError, "one entry per dimension, 2"),
        (1, TypeError, "a sequence"),
        ("11", TypeError, "a sequence"),
        ((1.0, 1), TypeError, "integer"),
        ((True, 1), TypeError, "integer"),
        (((1, 1, 1), 0), ValueError, "pair"),
        ((-1, 0), ValueError, r"halo\[0\]"),
        ((0, 5), ValueError, r"halo\[1\]"),
        ((2**70, 0), ValueError, "64 bits"),
    ],
)
def test_what_is_no_halo(halo: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gs.zeros((8, 8), halo=halo)
    storage = gs.zeros((8, 8), halo=(1, 2))
    with pytest.raises(error, match=message):
        storage.halo = halo
    assert storage.halo == ((1, 1), (2, 2))


def test_setting_a_halo_is_this_objects_alone_and_never_realigns() -> None:
    storage = gs.zeros((8, 8), halo=(1, 1))
    view = storage[:]
    address = storage.__array_interface__["data"][0]
    storage.halo = (2, (3, 0))
    assert storage.halo == ((2, 2), (3, 0))
    assert storage.domain_view.shape == (4, 5)
    assert storage.aligned_index == (1, 1)
    assert storage.__array_interface__["data"][0] == address
    assert view.halo == ((1, 1), (1, 1))
    assert storage.default_origin == storage.__gt_origin__ == (2, 3)


# ---- Errors. ----


@pytest.mark.parametrize(
    ("keyword", "today"),
    [
        ("default_parameters", "backend"),
        ("layout_map", "layout"),
        ("ndims", "shape"),
        ("gpu", 'device="gpu"'),
        ("value", "fill_value"),
        ("alignment", "bytes"),
        ("default_origin", "aligned_index"),
        ("axes", "dims"),
        ("mask", "dims"),
        ("memory", "managed"),
        ("order", "layout"),
    ],
)
def test_old_spellings_name_todays(keyword: str, today: str) -> None:
    with pytest.raises(TypeError, match=today):
        gs.zeros((2, 3), **{keyword: 1})
    with pytest.raises(TypeError, match=today):
        gs.storage(np.zeros(3), **{keyword: 1})


def test_backend_and_defaults_are_one_parameter() -> None:
    for make in (lambda **k: gs.zeros((2, 3), **k), lambda **k: gs.storage(np.zeros((2, 3)), **k)):
        assert (
            make(backend="gt:cpu_ifirst").layout == make(defaults="gt:cpu_ifirst").layout == (1, 0)
        )
        with pytest.raises(TypeError, match="'defaults' twice, the other time"):
            make(backend="gtmc", defaults="gtmc")
    with pytest.raises(TypeError, match="backend is 3"):
        gs.zeros(3, defaults=3)
    assert gs.asstorage is gs.as_storage


def test_old_names_of_functions_and_methods_name_todays() -> None:
    with pytest.raises(TypeError, match="set_synchronized"):
        gs.zeros(3).set_device_synchronized()
    with pytest.raises(TypeError, match="its name is backend"):
        gridbuf.zeros(3, defaults="C")
    assert not hasattr(gs, "something_else")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"managed": "numa"}, ValueError, "managed"),
        ({"managed": False}, TypeError, "managed"),
        ({"device": "cpu"}, ValueError, "device"),
        ({"device": 0}, TypeError, "device"),
        ({"backend": "gt:cpu_ifrst"}, ValueError, "gt:cpu_ifirst"),
        ({"backend": 3}, TypeError, "backend"),
        ({"aligned_index": (2, 0)}, ValueError, "aligned_index"),
        ({"alignment_size": 0}, ValueError, "^alignment_size is 0, but"),
        ({"halo": (-1, 0)}, ValueError, "0 for none"),
        ({"layout": "F"}, TypeError, 'backend="F"'),
        ({"dims": "i-"}, ValueError, "identifier"),
        ({"populate": 1}, TypeError, "populate"),
        ({"dims": "II"}, ValueError, "different name"),
    ],
)
def test_wrong_values_name_parameter_and_bound(
    keywords: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        gs.zeros((2, 3), **keywords)


def test_no_shape_anywhere_is_underdetermined() -> None:
    for make in (
        gs.empty,
        gs.zeros,
        gs.ones,
        gs.full,
        gs.empty_like,
        gs.full_like,
        gs.storage,
        gs.as_storage,
    ):
        with pytest.raises(TypeError, match="underdetermined"):
            make()
    with pytest.raises(TypeError, match="underdetermined"):
        gs.full((2, 3))
    with pytest.raises(TypeError, match="underdetermined"):
        gs.storage(copy=False)
    with pytest.raises(TypeError, match="cannot be overridden"):
        gs.zeros_like(np.zeros(3), shape=(3,))


def test_a_full_device_is_a_memory_error_and_leaves_nothing() -> None:
    gridbuf.testing.synchronize()
    before = gridbuf.testing.statistics()["live_blocks"]
    with gridbuf.testing.limited(1 << 16):
        for kind in ("gpu", "synced", "managed"):
            with pytest.raises(MemoryError, match="1.0 MiB|1048576"):
                gs.zeros((1 << 17,), **KINDS[kind])
    assert gridbuf.testing.statistics()["live_blocks"] == before


def test_without_a_device_the_error_says_what_was_looked_for() -> None:
    facts = gridbuf._core._device_info()
    with gridbuf.testing.emulated_device(False):
        if facts.get("cuda", "").startswith("not"):
            with pytest.raises(gridbuf.DeviceUnavailableError, match="(?i)cuda") as caught:
                gs.zeros(3, device="gpu")
            assert "use memory of the host" in str(caught.value)
            assert "emulated device (GRIDBUF_DEVICE=emulated)" in str(caught.value)
            assert len(str(caught.value)) <= 200
        else:
            pytest.skip("this machine may have a CUDA device: its absence cannot be tested here")
