"""Storages whose sides have different layouts: a Fortran array on the host, padded rows for a GPU on the device.

Random accesses are in test_storage_model.py.
"""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import Foreign, OnHost, device_capsule, emulated, entry, of_interface, through
from gridbuf import testing
from gridbuf.storage import SyncState

FORTRAN = (2, 1, 0)
C = (0, 1, 2)
SHAPE = (5, 6, 7)
TWO: dict[str, Any] = {"layout": FORTRAN, "device_layout": C, "device_alignment_size": 128}
HALO = ((1, 1), (2, 2), (0, 0))


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


def numbers(shape: tuple[int, ...] = SHAPE, order: Any = "F") -> np.ndarray:
    return np.array(np.arange(float(np.prod(shape))).reshape(shape), order=order)


def on_device(storage: Any) -> np.ndarray:
    """What a stencil on the device reads, by address."""
    return through(storage, "gpu", Foreign.read, writes=False)


def write_on_device(storage: Any, values: Any) -> None:
    through(storage, "gpu", lambda elements: elements.write(values), writes=True)


def sides(storage: Any) -> tuple[Any, ...]:
    return (
        storage.layout,
        storage.alignment_size,
        storage.device_layout,
        storage.device_alignment_size,
    )


def moved(work: Callable[[], Any]) -> tuple[int, int]:
    testing.synchronize()
    before = testing.statistics()
    work()
    testing.synchronize()
    after = testing.statistics()
    keys = ("host_to_device_bytes", "device_to_host_bytes")
    return tuple(after[key] - before[key] for key in keys)  # type: ignore[return-value]


# ---- Making. ----


@pytest.mark.parametrize(
    "shape", [(1, 3, 4), (3, 1, 4), (3, 4, 1), (1, 1, 1), (0, 3, 1), (3, 0, 4)]
)
def test_strides_without_meaning_do_not_make_two_layouts(shape: tuple[int, ...]) -> None:
    made = gs.zeros(shape, layout=FORTRAN, device="gpu", managed="gt4py")
    assert made.strides == made.device_strides == gridbuf.plan(shape, layout=FORTRAN).strides
    wrapped = gs.as_storage(np.zeros(shape, order="F"), device="gpu", layout=FORTRAN)
    wrapped[...] = 3.0
    assert (on_device(wrapped) == 3.0).all()
    for field in (made, wrapped, made[::-1], wrapped[:, ::-1]):
        assert "device_" not in repr(field)
        assert not field._has_two_layouts
    assert "padding" in repr(made) and "padding" in repr(wrapped)


@pytest.mark.parametrize("name", ["empty", "zeros", "ones"])
def test_new_storages_have_a_layout_for_each_side(name: str) -> None:
    field = getattr(gs, name)(SHAPE, halo=HALO, **TWO)
    assert type(field) is gs.SoftwareManagedGPUStorage
    assert (field.strides, field.device_strides) == ((8, 40, 240), (768, 128, 8))
    assert sides(field) == (FORTRAN, 1, C, 128)
    assert field.aligned_index == (1, 2, 0)
    device = entry(field, "gpu")
    assert device["strides"] == field.device_strides
    first = sum(i * s for i, s in zip(field.aligned_index, field.device_strides))
    assert (device["data"][0] + first) % 128 == 0
    if name != "empty":
        assert (on_device(field) == (name == "ones")).all()
        assert (field.to_numpy() == (name == "ones")).all()


def test_full_and_like_functions_keep_both() -> None:
    field = gs.full(SHAPE, 3.5, **TWO)
    assert (on_device(field) == 3.5).all()
    for made in (
        gs.empty_like(field),
        gs.zeros_like(field, dtype="float32"),
        gs.ones_like(field),
        gs.full_like(field, 2),
        gs.storage(field),
        field.astype("int32"),
    ):
        assert sides(made) == sides(field)
    assert (on_device(gs.full_like(field, 2)) == 2).all()


def test_a_preset_describes_the_device() -> None:
    field = gs.zeros(SHAPE, backend="gt:cpu_kfirst", device_defaults="gt:gpu")
    assert sides(field) == (C, 1, (2, 1, 0), 128)
    assert field.device == "gpu" and field.managed == "gt4py"
    # Passed, preset, found; and callables and names as for `layout`.
    field = gs.zeros(SHAPE, device_defaults="gt:gpu", device_layout=("K", "I", "J"))
    assert sides(field) == (C, 1, (1, 2, 0), 128)
    field = gs.zeros(SHAPE, device_defaults="gt:gpu", device_alignment_size=64)
    assert sides(field) == (C, 1, (2, 1, 0), 64)
    field = gs.zeros(SHAPE, alignment_size=32, device_layout=lambda dims: range(len(dims))[::-1])
    assert sides(field) == (C, 32, (2, 1, 0), 32)
    assert gs.zeros(SHAPE, "f4", device_defaults=None, device_layout=None).device is None


def test_like_functions_look_the_device_up_in_order() -> None:
    field = gs.zeros(SHAPE, **TWO)
    assert sides(gs.zeros_like(field, device_layout=(1, 0, 2))) == (FORTRAN, 1, (1, 0, 2), 128)
    assert sides(gs.zeros_like(field, device_defaults="gt:gpu")) == (FORTRAN, 1, (2, 1, 0), 128)
    assert sides(gs.zeros_like(field, layout=C)) == (C, 1, C, 128)
    one = gs.zeros(SHAPE, device="gpu", layout=C)
    assert sides(gs.zeros_like(one, layout=FORTRAN)) == (FORTRAN, 1, FORTRAN, 1)


def test_one_side_of_two_layouts_is_a_storage_of_its_own() -> None:
    field = gs.storage(numbers(), **TWO)
    host = gs.storage(field, device=None)
    assert (type(host), host.layout, host.device_layout) == (gs.CPUStorage, FORTRAN, None)
    device = gs.storage(field, managed=None)
    assert (type(device), device.layout, device.alignment_size) == (gs.GPUStorage, C, 128)
    assert device.device_layout == C
    assert (host.to_numpy() == numbers()).all() and (on_device(device) == numbers()).all()
    managed = gs.zeros_like(field, managed="cuda")
    assert (managed.layout, managed.device_layout) == (FORTRAN, FORTRAN)


def test_equal_layouts_are_one() -> None:
    field = gs.zeros(SHAPE, alignment_size=64, device_layout=C, device_alignment_size=64)
    assert "device_" not in repr(field)
    field[...] = numbers()
    assert moved(lambda: on_device(field))[0] >= 5 * 6 * 64, "one copy, with the padding"
    assert "device_layout" not in field.__reduce_ex__(2)[1][3]


# ---- Wrapping. ----


def test_a_wrapped_array_is_neither_copied_nor_moved() -> None:
    array = numbers()
    field = gs.as_storage(array, device_defaults="gt:gpu", device_layout=C, halo=HALO)
    view = field.to_numpy()
    assert view.ctypes.data == array.ctypes.data and view.strides == array.strides
    assert sides(field) == (FORTRAN, 1, C, 128)
    assert (on_device(field) == array).all()
    write_on_device(field[1:3], -1)
    assert (field[1:3].to_numpy() == -1).all()
    assert (array[1:3] == -1).all() and array[0, 0, 1] == 1
    assert (
        gs.storage(array, copy=False, device_layout=C).to_numpy().ctypes.data == array.ctypes.data
    )


def test_a_slice_of_an_array_is_wrapped() -> None:
    base = numbers((10, 8, 9))
    part = base[::2, 1:7, 8:1:-1]
    field = gs.as_storage(part, device_defaults="gt:cpu_kfirst")
    assert (on_device(field) == part).all()
    field.set_device_modified()
    write_on_device(field, 5)
    field.device_to_host()
    assert (base[::2, 1:7, 8:1:-1] == 5).all() and (base[1::2] != 5).any()


def test_a_device_array_gets_a_host_buffer_with_another_layout() -> None:
    array = np.ascontiguousarray(numbers())
    buffer = gridbuf.as_buffer(array).copy(memory="device")
    field = gs.as_storage(device_data=buffer, layout=FORTRAN, device_layout=C)
    assert sides(field)[::2] == (FORTRAN, C)
    assert field.sync_state.state == SyncState.SYNC_DEVICE_DIRTY
    assert np.asarray(field).flags.f_contiguous and (np.asarray(field) == array).all()


def test_two_buffers_with_a_layout_each() -> None:
    host = numbers()
    device = gridbuf.as_buffer(np.ascontiguousarray(numbers() + 100)).copy(memory="device")
    state = SyncState(SyncState.SYNC_DEVICE_DIRTY)
    with pytest.raises(ValueError, match="device_data's strides.*pass device_layout"):
        gs.as_storage(host, device, sync_state=state)
    field = gs.as_storage(host, device, sync_state=state, device_layout=C)
    assert sides(field)[::2] == (FORTRAN, C)
    field.device_to_host()
    assert (host == numbers() + 100).all()
    with pytest.raises(ValueError, match=r"device_layout is wanted as \(1, 0, 2\)"):
        gs.as_storage(host, device, sync_state=SyncState(1), device_layout=(1, 0, 2))
    with pytest.raises(ValueError, match="device_alignment_size is wanted as 128"):
        gs.as_storage(
            host, device, sync_state=SyncState(1), device_layout=C, device_alignment_size=128
        )


def test_extracted_buffers_are_wrapped_again() -> None:
    field = gs.storage(numbers(), **TWO)
    again = gs.as_storage(
        field.to_numpy(),
        device_data=gs.as_storage(field, device="gpu", managed=None),
        sync_state=field.sync_state,
        device_layout=C,
    )
    assert again.sync_state is field.sync_state
    again[0] = 7
    assert (on_device(field)[0] == 7).all()


def test_as_storage_of_two_layouts_is_a_view() -> None:
    field = gs.storage(numbers(), **TWO)
    for view in (gs.as_storage(field, halo=HALO), gs.as_storage(field, dims="JIK")):
        assert sides(view) == sides(field) and view.sync_state is field.sync_state
    view = gs.as_storage(field, device="gpu", managed=None)
    assert (type(view), view.layout) == (gs.GPUStorage, C)
    assert gs.as_storage(field, device=None).layout == FORTRAN


# ---- Views, exports, values. ----

KEYS: list[Any] = [
    np.s_[1:4],
    np.s_[:, 2],
    np.s_[::-2, 1:, ::3],
    np.s_[..., None, 0],
    np.s_[3, :, 6:1:-1],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_views_follow_their_side(key: Any) -> None:
    field = gs.storage(numbers(), halo=HALO, **TWO)
    expected = numbers()[key]
    for storage, values in (
        (field[key], expected),
        (field[key].T, expected.T),
        (field.domain_view[:, 0], numbers()[1:-1, 2:-2][:, 0]),
    ):
        assert (on_device(storage) == values).all()
        assert (storage.to_numpy() == values).all()
        assert entry(storage, "gpu")["strides"] == storage.device_strides
        by_stride = np.argsort([-abs(s) for s in storage.device_strides], kind="stable")
        if 1 not in storage.shape:
            assert [storage.device_layout[axis] for axis in by_stride] == list(range(storage.ndim))
    write_on_device(field[key], -5)
    expected[...] = -5
    assert (field[key].to_numpy() == -5).all()
    whole = numbers()
    whole[key] = -5
    assert (field.to_numpy() == whole).all()


def test_every_export_has_the_layout_of_its_side() -> None:
    field = gs.storage(numbers(), **TWO)
    assert field.__array_interface__["strides"] == field.strides
    assert field.__cuda_array_interface__["strides"] == field.device_strides
    assert memoryview(field).strides == np.asarray(field).strides == field.strides
    assert np.from_dlpack(OnHost(field)).strides == field.strides
    assert device_capsule(field).strides == field.device_strides
    assert gridbuf.as_buffer(field.to_numpy()).layout == FORTRAN
    entries = field.__gt_data_interface__
    assert entries[None].get("strides") == field.strides
    assert entries["gpu"]["strides"] == field.device_strides
    for name in ("shape", "typestr", "dims", "halo"):
        assert entries[None][name] == entries["gpu"][name]
    device = of_interface(field.__cuda_array_interface__, field, on_device=True)
    assert (device.read() == numbers()).all()


@pytest.mark.parametrize("how", [lambda s: s.copy(), copy.copy, copy.deepcopy])
def test_copies_keep_both(how: Callable[[Any], Any]) -> None:
    field = gs.storage(numbers(), halo=HALO, **TWO)
    write_on_device(field[2], 9)
    twin = how(field)
    assert sides(twin) == sides(field) and twin.halo == field.halo
    assert twin.sync_state is not field.sync_state
    assert (on_device(twin)[2] == 9).all() and (twin.to_numpy()[1] == numbers()[1]).all()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_keep_both(protocol: int) -> None:
    field = gs.storage(numbers(), halo=HALO, **TWO)
    for storage in (field, field[1:, 2], field.T):
        twin = pickle.loads(pickle.dumps(storage, protocol))
        assert sides(twin) == sides(storage) and twin.halo == storage.halo
        assert (on_device(twin) == storage.to_numpy()).all()


def test_repr_and_html_show_both() -> None:
    field = gs.storage(numbers(), **TWO)
    text = repr(field)
    for part in (
        "layout=(2, 1, 0), padding=(0, 0, 0), alignment_size=1",
        "device_layout=(0, 1, 2), device_padding=(0, 0, 9), device_alignment_size=128",
    ):
        assert part in text
    assert "device_strides=(768, 128, 24)" in repr(field[..., ::3])
    assert "device_layout" in field._repr_html_()


def test_memory_lives_with_exports_of_each_side() -> None:
    field = gs.storage(numbers(), **TWO)
    host, device = field.to_numpy(), device_capsule(field)
    del field
    gc.collect()
    assert (host == numbers()).all() and (device.read() == numbers()).all()


def test_a_stencil_gets_the_array_of_its_side() -> None:
    field = gs.storage(numbers(), halo=HALO, device_defaults="gt:gpu", device_layout=C)
    seen = {}

    def note(name: str, backend: str) -> Callable[..., Any]:
        @gridbuf.stencil(backend=backend, writes="field")
        def stencil(field: gridbuf.Field[np.float64], *, origin, domain):  # type: ignore[no-untyped-def]
            seen[name] = (field.strides, origin["field"], domain)
            field[...] += 1

        return stencil

    with warnings.catch_warnings():
        warnings.simplefilter("error", gridbuf.SlowFieldWarning)
        note("device", "dace:gpu_IJK")(field)
        note("host", "dace:cpu_KJI")(field)
    assert seen["device"] == (field.device_strides, (1, 2, 0), (3, 2, 7))
    assert seen["host"] == (field.strides, (1, 2, 0), (3, 2, 7))
    assert (on_device(field) == numbers() + 2).all()
    with pytest.warns(gridbuf.SlowFieldWarning, match="layout"):
        note("device", "dace:gpu")(field)


# ---- Arithmetic and assignment. ----


def test_results_have_the_layouts_of_the_first_storage() -> None:
    a = gs.storage(numbers(), **TWO)
    b = gs.ones(SHAPE, device="gpu")
    for made, values in (
        (a + b, numbers() + 1),
        (a * 2, numbers() * 2),
        (np.sqrt(a), np.sqrt(numbers())),
        (np.where(a > 10, a, b), np.where(numbers() > 10, numbers(), 1)),
    ):
        assert sides(made) == sides(a)
        assert np.allclose(on_device(made), values) and np.allclose(made.to_numpy(), values)
    assert sides(b + a) == (C, 1, C, 128), "the least common multiple of the alignments"
    total = a.sum(axis="J")
    assert (total.layout, total.device_layout) == ((1, 0), (0, 1))
    assert (on_device(total) == numbers().sum(axis=1)).all()
    line = gs.storage(np.arange(7.0), dims="K", device="gpu")
    assert (on_device(a + line) == numbers() + np.arange(7.0)).all()
    assert a.sum() == numbers().sum()


def test_assignment_pairs_names_whatever_the_layouts() -> None:
    a = gs.zeros(SHAPE, **TWO)
    b = gs.storage(numbers().transpose(2, 0, 1), dims="KIJ", device="gpu", alignment_size=64)
    a[...] = b
    assert (a.to_numpy() == numbers()).all()
    write_on_device(b, 4)
    a[1:3] = b[:, 1:3]
    assert (on_device(a)[1:3] == 4).all() and (a.to_numpy()[0] == numbers()[0]).all()
    a += 1
    a[a > 100] = 0
    assert a.to_numpy().max() <= 100
    gridbuf.copyto(a, numbers())
    assert (on_device(a) == numbers()).all()


# ---- What moves. ----


def test_a_dirty_halo_moves_its_bytes() -> None:
    shape, halo = (64, 48, 40), ((3, 3), (3, 3), (1, 1))
    field = gs.as_storage(numbers(shape), device_defaults="gt:gpu", device_layout=C, halo=halo)
    on_device(field)
    testing.synchronize()
    halo_bytes = field.nbytes - field.domain_view.nbytes
    for axis, (lower, upper) in enumerate(halo):
        for ends in (slice(0, lower), slice(-upper, None)):
            key = (slice(None),) * axis + (ends,)
            field.to_numpy()[key] = 1 + axis
            field[key].set_host_modified()
    gc.collect()
    field.host_to_device()  # the exports above have ended, and were presumed to write anything

    for axis, (lower, upper) in enumerate(halo):
        for ends in (slice(0, lower), slice(-upper, None)):
            field[(slice(None),) * axis + (ends,)] = 5 + axis
    up, down = moved(field.host_to_device)
    assert halo_bytes <= up <= 1.2 * halo_bytes and down == 0
    assert (on_device(field) == field.to_numpy()).all()


def test_a_whole_field_crosses_once_without_padding() -> None:
    field = gs.storage(numbers((64, 64, 80)), **TWO)
    up, down = moved(field.host_to_device)
    assert (up, down) == (field.nbytes, 0)
    write_on_device(field, 1)
    assert moved(field.device_to_host) == (0, field.nbytes)


FUNCTIONS = {
    "diff": lambda a: np.diff(a, axis=0),
    "concatenate": lambda a: np.concatenate([a, a]),
    "pad": lambda a: np.pad(a, 1),
    "take": lambda a: np.take(a, [0, 0, 1], axis=0),
    "tile": lambda a: np.tile(a, 2),
    "compress": lambda a: np.compress([True, False], a, axis=0),
    "delete": lambda a: np.delete(a, 0, axis=1),
    "insert": lambda a: np.insert(a, 0, 7, axis=1),
    "repeat": lambda a: np.repeat(a, 2, axis=2),
    "sort": np.sort,
    "cumsum": lambda a: np.cumsum(a, axis=0),
    "cumulative_sum": lambda a: np.cumulative_sum(a, axis=0, include_initial=True),
    "roll": lambda a: np.roll(a, 1),
    "gradient": lambda a: np.gradient(a)[0],
    "where": lambda a: np.where(a > 1, a, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_keep_both_layouts(name: str) -> None:
    """Also where an extent changes."""
    function = FUNCTIONS[name]
    values = np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(float)
    for layout, second in itertools.permutations([FORTRAN, C, (0, 2, 1)], 2):
        field = gs.storage(
            values, device="gpu", layout=layout, alignment_size=32, device_layout=second, device_alignment_size=128
        )  # fmt: skip
        for field in (field, field + 0):
            made = function(field)
            assert (made.layout, made.alignment_size) == (layout, 32)
            assert (made.device_layout, made.device_alignment_size) == (second, 128)
            np.testing.assert_array_equal(made.to_numpy(), function(values))
    same = function(gs.storage(values, device="gpu", layout=FORTRAN))
    assert (same.layout, same.device_layout) == (FORTRAN, FORTRAN)
    assert function(gs.storage(values, layout=FORTRAN)).device_layout is None


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "c16", "S5", [("a", "i1"), ("b", "f8")]])
def test_elements_of_any_size(dtype: Any) -> None:
    array = np.zeros((4, 5, 3), dtype, order="F")
    array[...] = (
        np.arange(60).reshape(4, 5, 3).astype(array.dtype if array.dtype.names is None else "i1")
    )
    field = gs.as_storage(array, device_defaults="gt:cpu_ifirst", device_layout=C)
    twin = gs.storage(field, managed=None)
    assert (np.asarray(gs.storage(twin, device=None)) == array).all()
    field.host_to_device()
    array[...] = np.zeros((), array.dtype)
    field.device_to_host(force=True)
    assert (np.asarray(gs.storage(twin, device=None)) == array).all()


def test_gaps_of_records_cross_between_gridbufs_buffers_alone() -> None:
    record = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    raw, element = np.dtype((np.void, 16)), bytes(range(16))
    field = gs.zeros((3, 4), record, layout=(1, 0), device_layout=(0, 1))
    field.to_numpy().view(raw)[...] = np.void(element)
    field.set_host_modified()
    assert on_device(field).tobytes() == 12 * element
    array = np.zeros((3, 4), raw, order="F")
    array[...] = np.void(element)
    wrapped = gs.as_storage(array.view(record), device_layout=(0, 1))
    wrapped.host_to_device()
    through(wrapped, "gpu", lambda elements: elements.write(np.zeros((3, 4), raw)), writes=True)
    wrapped.device_to_host()
    assert array.tobytes() == 12 * (b"\0" + element[1:8] + bytes(8)), "the owner's bytes stay"


@pytest.mark.parametrize("shape", [(), (0, 3), (1, 1, 1), (7,), (1, 5)])
def test_shapes_without_a_choice(shape: tuple[int, ...]) -> None:
    field = gs.ones(shape, device_layout=tuple(range(len(shape)))[::-1], device_alignment_size=64)
    assert (on_device(field) == 1).all() and on_device(field).shape == shape
    assert pickle.loads(pickle.dumps(field)).device_layout == field.device_layout


# ---- What cannot be. ----


@pytest.mark.parametrize(
    "keyword", [{"device_layout": C}, {"device_alignment_size": 64}, {"device_defaults": "gt:gpu"}]
)
def test_a_storage_of_one_buffer_has_one_layout(keyword: dict[str, Any]) -> None:
    (name,) = keyword
    for placed, kind, advice in (
        ({"device": None}, "CPU", "leave out device=None"),
        ({"device": "gpu", "managed": None}, "GPU", 'managed="gt4py"'),
        ({"managed": "cuda"}, "CUDA-managed GPU", 'managed="gt4py"'),
    ):
        message = f"{name} is .*, but must be left out of a {kind} storage.*one buffer.*{advice}"
        with pytest.raises(ValueError, match=message):
            gs.zeros(SHAPE, **placed, **keyword)
        with pytest.raises(ValueError, match=name):
            gs.storage(numbers(), **placed, **keyword)
    with pytest.raises(ValueError, match=name):
        gs.as_storage(numbers(), device=None, **keyword)


@pytest.mark.parametrize(
    ("keyword", "error", "message"),
    [
        ({"device_layout": (0, 0, 1)}, ValueError, "permutation|layout"),
        ({"device_layout": 3}, TypeError, "layout is 3"),
        ({"device_alignment_size": 0}, ValueError, "alignment_size is 0.*1048576"),
        ({"device_alignment_size": 1.5}, TypeError, "alignment_size"),
        ({"device_defaults": "gt:gpuu"}, ValueError, "gt:gpu"),
        ({"device_defaults": 1}, TypeError, "preset"),
    ],
)
def test_wrong_values_say_that_they_are_the_devices(
    keyword: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        gs.zeros(SHAPE, **keyword)
    assert "the device's buffer" in caught.value.__notes__[0]


def test_plain_functions_have_one_layout() -> None:
    with pytest.raises(TypeError, match="device_layout"):
        gridbuf.zeros(SHAPE, device_layout=C)


def test_a_full_device_leaves_nothing() -> None:
    testing.synchronize()
    before = testing.statistics()["live_blocks"]
    with testing.limited(1 << 12), pytest.raises(MemoryError):
        gs.zeros((40, 50, 60), **TWO)
    assert testing.statistics()["live_blocks"] == before
