"""Indexing, assignment and transposing of all four kinds, held against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, emulated
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPE = (4, 5, 6)


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


@pytest.fixture(params=list(KINDS))
def storage(request: pytest.FixtureRequest) -> Any:
    made = gs.zeros(SHAPE, "i4", layout=(2, 0, 1), alignment_size=48, **KINDS[request.param])
    made[...] = pattern()
    return made


def pattern() -> np.ndarray:
    return np.arange(120, dtype="i4").reshape(SHAPE)


def values(storage: Any) -> np.ndarray:
    return np.array(np.asarray(gs.storage(storage, device=None)))


BASIC = [
    np.s_[0],
    np.s_[-1],
    np.s_[1:3],
    np.s_[::-1],
    np.s_[::2, 1:, ::-3],
    np.s_[..., 2],
    np.s_[1, ..., 3:1:-1],
    np.s_[None, :, 2],
    np.s_[:, None, ..., None, 0],
    np.s_[5:],
    np.s_[1:1, ::2],
    np.s_[()],
    np.s_[...],
    np.s_[np.int64(2), np.uint8(1)],
    np.s_[True - 0, 2],
]


@pytest.mark.parametrize("key", BASIC, ids=repr)
def test_basic_indices_give_views_as_in_numpy(storage: Any, key: Any) -> None:
    view = storage[key]
    assert type(view) is type(storage)
    assert (values(view) == pattern()[key]).all()
    assert view.shape == pattern()[key].shape
    assert view.sync_state is storage.sync_state
    storage[...] = pattern() + 1000
    assert (values(view) == pattern()[key] + 1000).all(), "it shows the same memory"
    view.fill(-1)
    expected = pattern() + 1000
    expected[key] = -1
    assert (values(storage) == expected).all()


def test_integers_drop_a_dimension_with_its_meaning_and_slices_keep_it() -> None:
    storage = gs.zeros((8, 9, 10), halo=((1, 2), (3, 0), 0), dims="KIJ", aligned_index=(1, 3, 4))
    assert storage[2].dims == ("I", "J")
    assert storage[2].halo == ((3, 0), (0, 0))
    assert storage[2].aligned_index == (3, 4)
    view = storage[0:5, ::-1, None, 2:]
    assert view.dims == ("K", "I", "0", "J")
    assert view.halo == ((1, 0), (0, 3), (0, 0), (0, 0))
    assert view.aligned_index == (1, 5, 0, 2)


def test_a_full_set_of_integers_gives_a_scalar(storage: Any) -> None:
    element = storage[1, -1, 2]
    assert type(element) is np.int32
    assert element == pattern()[1, -1, 2]
    assert type(storage[0, 0, 0, ...]) is type(storage)
    assert type(gs.zeros(())[()]) is np.float64


ADVANCED = [
    np.s_[[0, 2]],
    np.s_[np.array([3, 1]), 2],
    np.s_[:, [True, False, True, False, True]],
    np.s_[[[0], [1]], [2, 3], ::2],
    np.s_[True],
    np.s_[np.array(2)],
    np.s_[np.bool_(False)],
    np.s_[[], :],
    np.s_[..., np.array([0, -1])],
]


@pytest.mark.parametrize("key", ADVANCED, ids=repr)
def test_advanced_indices_give_an_ndarray_of_its_own(storage: Any, key: Any) -> None:
    picked = storage[key]
    assert isinstance(picked, (np.ndarray, np.generic))
    assert (picked == pattern()[key]).all()
    assert np.shape(picked) == pattern()[key].shape
    if isinstance(picked, np.ndarray) and picked.size:
        picked[...] = -1
        assert (values(storage) == pattern()).all()


def test_a_mask_selects_and_assigns(storage: Any) -> None:
    mask = pattern() % 3 == 0
    assert (storage[mask] == pattern()[mask]).all()
    storage[mask] = 7
    assert (values(storage) == np.where(mask, 7, pattern())).all()


def test_keys_may_be_anything_with_an_interface(storage: Any) -> None:
    indices = np.array([3, 1])
    interface = type("I", (), {"__array_interface__": indices.__array_interface__, "held": indices})
    keys = [
        gs.as_storage(indices),
        gs.storage(indices, device="gpu"),
        gs.storage(indices, device="gpu", managed=None),
        gridbuf.as_buffer(indices),
        gridbuf.as_buffer(indices).copy(memory="device"),
        interface(),
        memoryview(indices),
    ]
    for key in keys:
        assert (storage[key] == pattern()[indices]).all()
        assert (storage[1, key] == pattern()[1, indices]).all()
        storage[key] = pattern()[indices]
    assert (values(storage) == pattern()).all()


@pytest.mark.parametrize(
    "key", [4, -5, (0, 5), (0, 0, 0, 0), (..., ...), 2**80, 1.5, [9]], ids=repr
)
def test_what_is_out_of_bounds_or_no_index_is_an_index_error(storage: Any, key: Any) -> None:
    with pytest.raises(IndexError):
        storage[key]
    with pytest.raises(IndexError):
        storage[key] = 1


def test_other_keys_are_errors(storage: Any) -> None:
    with pytest.raises(ValueError, match="step"):
        storage[::0]
    with pytest.raises((IndexError, TypeError)):
        storage["I"]
    with pytest.raises(ValueError, match="deleted"):
        del storage[0]


def test_length_and_iteration(storage: Any) -> None:
    assert len(storage) == 4
    for row, expected in zip(storage, pattern(), strict=True):
        assert type(row) is type(storage)
        assert (values(row) == expected).all()
    flat = gs.zeros((), **KINDS["cpu"])
    with pytest.raises(TypeError, match="0-dimensional"):
        len(flat)
    with pytest.raises(TypeError, match="0-dimensional"):
        iter(flat)


@pytest.mark.parametrize("axes", [(), (None,), (2, 0, 1), ((1, 2, 0),), (-1, 0, 1)], ids=repr)
def test_transpose_is_numpys_and_takes_its_meaning_along(storage: Any, axes: Any) -> None:
    storage.halo = (1, 2, (0, 3))
    turned = storage.transpose(*axes)
    assert (values(turned) == pattern().transpose(*axes)).all()
    order = [2, 1, 0] if axes in [(), (None,)] else np.ravel(axes).tolist()
    for name in ("dims", "halo", "aligned_index"):
        assert getattr(turned, name) == tuple(getattr(storage, name)[i] for i in order)
    assert turned.sync_state is storage.sync_state
    assert (values(storage.T) == pattern().T).all()


@pytest.mark.parametrize("axes", [(0, 1), (0, 0, 1), (0, 1, 3), (0, 1, 2, 0), ((0, 1),)], ids=repr)
def test_what_are_no_axes(storage: Any, axes: Any) -> None:
    with pytest.raises((ValueError, IndexError)):
        storage.transpose(*axes)
    with pytest.raises(ValueError, match="one of"):
        storage.transpose("IJK")


# ---- Assignment. ----

VALUES = [
    3,
    2.9,
    np.float32(7),
    np.arange(6),
    np.arange(5)[:, None],
    [[1], [2], [3], [4], [5]],
    np.ones((1, 1, 5, 6), "f8"),
    np.arange(30, dtype=">i4").reshape(5, 6)[::-1, ::-1],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__}{np.shape(v)}")
@pytest.mark.parametrize("key", [np.s_[2], np.s_[::2], np.s_[::-1, :, :]], ids=repr)
def test_numbers_and_arrays_are_assigned_as_in_numpy(storage: Any, key: Any, value: Any) -> None:
    expected = pattern()
    expected[key] = value
    storage[key] = value
    assert (values(storage) == expected).all()


@pytest.mark.parametrize("kind", KINDS)
def test_storages_are_assigned_by_the_names_of_their_dimensions(storage: Any, kind: str) -> None:
    profile = gs.storage(np.arange(6, dtype="i4"), dims="K", **KINDS[kind])
    storage[...] = profile
    assert (values(storage) == np.arange(6)).all()
    plane = gs.storage(np.arange(20, dtype="i4").reshape(5, 4), dims="JI", **KINDS[kind])
    storage[...] = plane
    assert (values(storage) == np.arange(20).reshape(5, 4).T[:, :, None]).all()
    narrow = gs.storage(np.arange(20, dtype="f8").reshape(5, 4) + 0.5, dims="JI", **KINDS[kind])
    storage[:, :, 3] = narrow
    assert (values(storage)[:, :, 3] == np.arange(20).reshape(5, 4).T).all()
    for wrong in (gs.zeros(6, dims="0"), gs.zeros(5, dims="K"), gs.zeros((1, 1), dims="JK")):
        with pytest.raises(ValueError, match="'0'|0|K|J"):
            storage[...] = wrong


class Named:
    """An array of another library that names its dimensions in its data interface."""

    def __init__(self, array: np.ndarray, dims: tuple[str, ...]) -> None:
        self.array, self.dims_of_entry, self.calls = array, dims, []

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        hooks = {n: lambda n=n: self.calls.append(n) for n in ("acquire", "touch", "release")}
        entry = dict(self.array.__array_interface__) | hooks | {"dims": self.dims_of_entry}
        return {None: entry}


def test_arrays_that_name_their_dimensions_are_assigned_by_them(storage: Any) -> None:
    plane = np.arange(20, dtype="i4").reshape(5, 4)
    named = Named(plane, ("J", "I"))
    storage[...] = named
    assert (values(storage) == plane.T[:, :, None]).all()
    assert named.calls == ["acquire", "release"]
    storage[:, :, 3] = Named(plane + 1, ("J", "I"))
    assert (values(storage)[:, :, 3] == plane.T + 1).all()
    assert (values(storage)[:, :, 2] == plane.T).all()
    for dims, message in [(("K", "I"), "K"), (("lat", "lon"), "lat")]:
        wrong = Named(plane, dims)
        with pytest.raises(ValueError, match=message):
            storage[...] = wrong
        assert wrong.calls == ["acquire", "release"]
    assert (values(storage)[:, :, 2] == plane.T).all()


def test_values_from_anywhere(storage: Any) -> None:
    rows = np.arange(30, dtype="i4").reshape(5, 6)
    for memory in ("host", "pinned", "managed", "device"):
        storage[...] = 0
        storage[1] = gridbuf.as_buffer(rows).copy(memory=memory)
        assert (values(storage)[1] == rows).all()
        storage[2] = gridbuf.as_buffer(rows.astype("f8")).copy(memory=memory)
        assert (values(storage)[2] == rows).all()


def test_overlapping_source_and_target_are_as_if_read_first(storage: Any) -> None:
    for target, source in [
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[::-1], np.s_[:]),
        (np.s_[:, 1:, ::-1], np.s_[:, :-1, :]),
    ]:
        storage[...] = pattern()
        expected = pattern()
        expected[target] = pattern()[source]
        storage[target] = storage[source]
        assert (values(storage) == expected).all()
    square = gs.storage(np.arange(9).reshape(3, 3), dims="IJ")
    square[...] = gs.as_storage(square.T, dims="IJ")
    assert (values(square) == np.arange(9).reshape(3, 3).T).all()


@pytest.mark.parametrize(
    "value",
    [np.zeros(7), np.zeros((3, 5, 6)), "text", object(), 1j, None, [1, [2]], 2**70],
    ids=repr,
)
def test_a_refused_value_changes_nothing(storage: Any, value: Any) -> None:
    storage.device_to_host()
    storage.host_to_device()
    with pytest.raises((TypeError, ValueError, OverflowError)):
        storage[1:3] = value
    assert (values(storage) == pattern()).all()


OVERLAPS = {
    "itself": lambda a: a,
    "reversed": lambda a: a[::-1],
    "transposed": lambda a: a.T,
    "turned": lambda a: a[::-1, ::-1].T,
    "row": lambda a: a[1],
    "column": lambda a: a[:, 2],
    "element": lambda a: a[1:2, 1:2],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seen", OVERLAPS)
def test_keys_and_values_that_share_memory_with_the_target_are_as_if_read_first(
    kind: str, seen: str
) -> None:
    """NumPy reads a mask or an index while it writes."""
    see, rng = OVERLAPS[seen], np.random.default_rng(5)
    for dtype in ("?", "i8"):
        for _ in range(20):
            # Every value is an index, too.
            begin = rng.integers(0, 2 if dtype == "?" else 4, (4, 4)).astype(dtype)
            for key_of, value_of in [
                (see, lambda a: 1),
                (see, lambda a: see(a)[0]),
                (lambda a: [0, 2, 1, 3], lambda a: np.asarray(see(a)) if kind != "gpu" else see(a)),
                (lambda a: (slice(None), see(a)[-1]), lambda a: 1),
                (lambda a: (see(a)[0], see(a)[-1]), lambda a: a[1, 1]),
                (lambda a: see(a) > 0, lambda a: 0),
            ]:
                target, expected, copied = (
                    gs.storage(begin, **KINDS[kind]),
                    begin.copy(),
                    begin.copy(),
                )
                try:
                    expected[key_of(copied)] = value_of(copied)
                except (IndexError, ValueError) as error:
                    with pytest.raises(type(error)):
                        target[key_of(target)] = value_of(target)
                    continue
                target[key_of(target)] = value_of(target)
                np.testing.assert_array_equal(values(target), expected)


def test_in_place_operators(storage: Any) -> None:
    before = storage
    storage += 1
    assert storage is before
    storage[1:3] *= 2
    expected = pattern() + 1
    expected[1:3] *= 2
    assert (values(storage) == expected).all()


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_chains_of_views_are_numpys(data: st.DataObject) -> None:
    keywords = KINDS[data.draw(st.sampled_from(list(KINDS)))]
    expected = pattern()
    with emulated():
        view = gs.zeros(SHAPE, "i4", layout=(1, 2, 0), **keywords)
        view[...] = expected
        for _ in range(data.draw(st.integers(1, 4))):
            entries = st.one_of(
                st.slices(6), st.just(slice(None)), st.just(None), st.just(slice(None, None, -2))
            )
            key = tuple(data.draw(st.lists(entries, max_size=expected.ndim)))
            key = tuple(k for i, k in enumerate(key) if k is not None or i < 1)
            if sum(k is not None for k in key) > expected.ndim:
                continue
            view, expected = view[key], expected[key]
            if expected.ndim > 1 and data.draw(st.booleans()):
                view, expected = view.T, expected.T
        assert view.shape == expected.shape
        assert (values(view) == expected).all()
        assert len(view.dims) == len(view.halo) == len(view.aligned_index) == expected.ndim


def test_what_is_broadcast_to_a_device_crosses_once() -> None:
    """A value is repeated there by a kernel, not on the host: an element crosses as none, a row as a row."""
    on_device = gs.zeros(SHAPE, "i4", layout=(2, 0, 1), alignment_size=48, **KINDS["gpu"])
    expected = np.zeros(SHAPE, "i4")
    row = np.arange(6, dtype="i8")
    for key, value, crossing_bytes in [
        (..., 7, 0),
        ((slice(1, 3), 2), -1, 0),
        ((..., slice(None, None, -1)), row, 6 * 4),
    ]:
        before = gridbuf.testing.statistics()["host_to_device_bytes"]
        on_device[key] = value
        expected[key] = value
        assert (values(on_device) == expected).all()
        crossed = gridbuf.testing.statistics()["host_to_device_bytes"] - before
        assert crossed == crossing_bytes
