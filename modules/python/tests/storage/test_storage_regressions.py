"""Failures of others that keep data on two sides, each as the case that would have caught it here.

A name is a project and the number of its issue or pull request; the line below says what went wrong there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import gridbuf.storage
import numpy as np
import pytest
from foreign import KINDS, Foreign, emulated, entry, through
from gridbuf import testing

SHAPE = (6, 5, 4)


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


def numbered(kind: str, shape: tuple[int, ...] = SHAPE, **more: Any) -> Any:
    """A storage whose elements are numbered, written on the host where it has one."""
    made = gridbuf.storage.zeros(shape, "i8", **{**KINDS[kind], **more})
    side = None if None in made.__gt_data_interface__ else "gpu"
    values = np.arange(made.size).reshape(shape)
    through(made, side, lambda elements: elements.write(values), writes=True)
    return made


def on_device(storage: Any) -> np.ndarray:
    return through(storage, "gpu", Foreign.read, writes=False)


KEYS = [
    (slice(2, 5),),
    (slice(None, None, -1), slice(1, None, 2)),
    (slice(4, 0, -2), Ellipsis, slice(3, 0, -1)),
    (slice(1, 2), slice(2, 3), slice(3, 4)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_gt4py_448_a_slice_lies_at_the_same_place_on_both_sides(key: tuple[Any, ...]) -> None:
    """The device's view of a slice was shifted by the offset's negative."""
    base = numbered("synced", alignment_size=64)
    view, numbers = base[key], np.arange(base.size).reshape(SHAPE)[key]
    for side in (None, "gpu"):
        start, moved = (entry(s, side)["data"][0] for s in (base, view))
        first = np.unravel_index(numbers.flat[0], SHAPE)
        assert moved - start == sum(i * s for i, s in zip(first, base.strides, strict=True))
    np.testing.assert_array_equal(on_device(view), numbers)
    through(view, "gpu", lambda elements: elements.write(-1), writes=True)
    expected = np.arange(base.size).reshape(SHAPE)
    expected[key] = -1
    np.testing.assert_array_equal(np.asarray(base), expected)


def test_gt4py_453_device_values_do_not_travel_through_the_host() -> None:
    """Assigning device values always copied through the host, and waited for storages that had no part in it."""
    source, target = numbered("gpu"), gridbuf.storage.zeros(SHAPE, "i8", **KINDS["gpu"])
    testing.synchronize()
    before = testing.statistics()
    target[...] = source
    after = testing.statistics()
    for direction in ("host_to_device_bytes", "device_to_host_bytes"):
        assert after[direction] == before[direction]
    np.testing.assert_array_equal(on_device(target), on_device(source))


@pytest.mark.parametrize("read", [lambda s: s[1, 2, 3], np.asarray, lambda s: s.to_numpy()])
def test_gt4py_409_host_reads_wait_for_the_stencil(read: Any) -> None:
    """Managed storages had to be read after a synchronisation by hand, or while the stencil was still running."""
    storage = gridbuf.storage.zeros(SHAPE, "u1", **KINDS["managed"])
    through(storage, "gpu", lambda elements: elements.fill_late(9), writes=True)
    assert (np.asarray(read(storage)) == 9).all()


def test_gt4py_409_each_storage_remembers_for_itself() -> None:
    """One table for all storages was cleared as a whole when any of them was read, and kept them alive."""
    first, second = numbered("synced"), numbered("synced")
    for storage in (first, second):
        through(storage, "gpu", lambda elements: elements.write(-1), writes=True)
    before = second.sync_state.state
    assert (np.asarray(first) == -1).all()
    assert second.sync_state.state == before == 2
    assert (np.asarray(second) == -1).all()
    testing.synchronize()
    held = testing.statistics()["live_blocks"]
    through(first, "gpu", lambda elements: elements.write(-2), writes=True)
    del first, storage
    testing.synchronize()
    assert testing.statistics()["live_blocks"] < held


@pytest.mark.parametrize("kind", KINDS)
def test_gt4py_142_results_live_where_their_operands_live(kind: str) -> None:
    """Arithmetic on managed storages (`-field`, `field * nan`) gave results in memory that no GPU library could use."""
    storage = numbered(kind)
    numbers = np.arange(storage.size).reshape(SHAPE)
    for result, expected in ((storage * 2, 2 * numbers), (-storage, -numbers)):
        assert type(result) is type(storage)
        assert result.__gt_data_interface__.keys() == storage.__gt_data_interface__.keys()
        for side in result.__gt_data_interface__:
            assert entry(result, side)["data"][0] != entry(storage, side)["data"][0]
            np.testing.assert_array_equal(
                through(result, side, Foreign.read, writes=False), expected
            )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [(Ellipsis, 0), (1,), (slice(1, 4), 2), (0, 0)], ids=str)
def test_gt4py_31_slices_can_be_copied(kind: str, key: tuple[Any, ...]) -> None:
    """`copy.deepcopy` of a slice with fewer dimensions raised."""
    view = numbered(kind, halo=(1, 1, 1))[key]
    for twin in (copy.deepcopy(view), copy.copy(view), view.copy()):
        assert (twin.shape, twin.dims, twin.halo) == (view.shape, view.dims, view.halo)
        for side in twin.__gt_data_interface__:
            np.testing.assert_array_equal(
                through(twin, side, Foreign.read, writes=False),
                np.arange(np.prod(SHAPE)).reshape(SHAPE)[key],
            )


@pytest.mark.parametrize(
    ("key", "dims", "halo", "aligned_index", "mask"),
    [
        ((Ellipsis, 0), ("I", "J"), ((1, 1), (2, 0)), (1, 2), (True, True, False)),
        ((2,), ("J", "K"), ((2, 0), (0, 1)), (2, 0), (False, True, True)),
        ((slice(None), 3), ("I", "K"), ((1, 1), (0, 1)), (1, 0), (True, False, True)),
        ((1, Ellipsis, 2), ("J",), ((2, 0),), (2,), (False, True, False)),
    ],
)
def test_gt4py_576_dropped_dimensions_take_their_meaning_along(
    key: tuple[Any, ...], dims: Any, halo: Any, aligned_index: Any, mask: Any
) -> None:
    """A slice with fewer dimensions kept origin and mask of the whole."""
    view = numbered("cpu", halo=((1, 1), (2, 0), (0, 1)))[key]
    assert tuple(view.dims) == dims
    assert tuple(view.halo) == halo
    assert tuple(view.aligned_index) == aligned_index
    assert tuple(view.mask) == mask
    assert tuple(view.__gt_dims__) == dims
    assert len(view.__gt_origin__) == view.ndim


def test_gt4py_695_slices_of_slices_keep_their_meaning() -> None:
    """The index was remembered for the next view only: a slice of a slice had the mask of neither."""
    base = numbered("synced", halo=(1, 1, 1))
    view = base[1:, :, ::2][:, 2][1:-1]
    assert (tuple(view.dims), view.shape) == (("I", "K"), (3, 2))
    assert tuple(view.mask) == (True, False, True)
    numbers = np.arange(base.size).reshape(SHAPE)[1:, :, ::2][:, 2][1:-1]
    np.testing.assert_array_equal(on_device(view), numbers)
    np.testing.assert_array_equal(np.asarray(view.T), numbers.T)


@pytest.mark.parametrize(
    ("key", "dims"),
    [
        ((0,), ("J", "K")),
        ((Ellipsis, 0), ("I", "J")),
        ((0, Ellipsis, slice(1, 2)), ("J", "K")),
        ((slice(None), slice(None), slice(None)), ("I", "J", "K")),
        ((), ("I", "J", "K")),
    ],
    ids=str,
)
def test_gt4py_722_short_keys_and_ellipses_name_what_is_left(key: Any, dims: tuple) -> None:
    """Keys with an ellipsis or fewer entries than dimensions gave views that named the wrong ones."""
    base = numbered("synced")
    view = base[key]
    assert tuple(view.dims) == dims
    np.testing.assert_array_equal(on_device(view), np.arange(120).reshape(SHAPE)[key])


def test_kokkos_3806_a_part_with_gaps_between_its_rows_is_synchronised() -> None:
    """A part that is not contiguous claimed to be, and could not be copied between the sides."""
    base = numbered("synced", (10, 10))
    base.synchronize()
    part = base[2:7, 3:8]
    part[...] = -1
    expected = np.arange(100).reshape(10, 10)
    expected[2:7, 3:8] = -1
    np.testing.assert_array_equal(on_device(part), expected[2:7, 3:8])
    np.testing.assert_array_equal(on_device(base), expected)
    through(part, "gpu", lambda elements: elements.write(-2), writes=True)
    expected[2:7, 3:8] = -2
    np.testing.assert_array_equal(np.asarray(base), expected)


@pytest.mark.parametrize("alignment_size", [1, 64, 24, 1024])
def test_kokkos_2995_padding_is_the_same_on_both_sides(alignment_size: int) -> None:
    """The host's mirror of a padded array had no padding, and could not be copied."""
    base = numbered("synced", alignment_size=alignment_size, layout=(2, 0, 1))
    host, device = (entry(base, side) for side in (None, "gpu"))
    assert host["strides"] == device["strides"] == base.strides
    twin = base.copy()
    assert entry(twin, None)["strides"] == entry(twin, "gpu")["strides"] == base.strides
    for storage in (base, twin):
        np.testing.assert_array_equal(on_device(storage), np.arange(120).reshape(SHAPE))


def test_kokkos_3567_narrow_rows_cross_in_few_copies() -> None:
    """Parts with gaps had to be packed by hand: there was no copy of them between the sides."""
    base = numbered("synced", (64, 64, 3))
    base.synchronize()
    base[1:-1, 1:-1, 1:2] = -1  # 3844 elements with gaps between them
    before = testing.calls("copy")
    expected = np.arange(base.size).reshape(base.shape)
    expected[1:-1, 1:-1, 1:2] = -1
    base.host_to_device()
    assert testing.calls("copy") - before < 100
    np.testing.assert_array_equal(on_device(base), expected)


def test_kokkos_4262_empty_views_keep_their_other_extents() -> None:
    """A part of an array of 0 by n elements was 0 by 0."""
    base = gridbuf.storage.zeros((0, 7), **KINDS["synced"])
    assert base[:, 1:5].shape == (0, 4)
    assert np.asarray(base[:, ::2]).shape == on_device(base[:, ::2]).shape == (0, 4)


@pytest.mark.parametrize(
    "empty", [(slice(0, 0),), (slice(2, 2), slice(1, 3)), (Ellipsis, slice(4, 4))]
)
def test_kokkos_2981_an_empty_part_is_synchronised(empty: tuple[Any, ...]) -> None:
    """Synchronising a part without elements asked the driver about no address, and ended the program."""
    base = numbered("synced")
    part = base[empty]
    for step in ("set_device_modified", "device_to_host", "set_host_modified", "host_to_device"):
        base.synchronize()
        getattr(part, step)()
    assert np.asarray(part).size == on_device(part).size == 0


def test_kokkos_2514_synchronising_one_part_leaves_the_other_dirty() -> None:
    """Two parts shared one flag: synchronising the first forgot the second's changes."""
    base = numbered("synced")
    base.synchronize()
    first, second = base[:2], base[4:]
    first[...] = -1
    second[...] = -2
    np.testing.assert_array_equal(on_device(first), np.full((2, 5, 4), -1))
    np.testing.assert_array_equal(on_device(second), np.full((2, 5, 4), -2))


@pytest.mark.parametrize("kind", ["cpu", "gpu", "managed"])
def test_kokkos_8277_one_memory_has_nothing_to_synchronise(kind: str) -> None:
    """With one memory for both sides, flags were still set, and asked for copies that never came."""
    storage = numbered(kind)
    for step in ("set_host_modified", "set_device_modified", "synchronize", "set_synchronized"):
        assert getattr(storage, step)() is None
    storage.set_host_modified()
    storage.set_device_modified()  # no conflict: there is nothing to be in conflict with
    for step in ("device_to_host", "host_to_device"):
        getattr(storage, step)(force=True)
    assert storage.sync_state is None
    for side in storage.__gt_data_interface__:
        shown = through(storage, side, Foreign.read, writes=False)
        np.testing.assert_array_equal(shown, np.arange(storage.size).reshape(SHAPE))


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 3)], ids=str)
@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.__setitem__(..., 5),
        lambda view: view.fill(5),
        lambda view: np.copyto(view, 5),
        lambda view: gridbuf.copyto(view, np.zeros(view.shape)),
        lambda view: np.add(view, 1, out=view),
        lambda view: entry(view, None)["touch"](),
        lambda view: view.set_host_modified(),
        lambda view: np.asarray(view),
        lambda view: memoryview(view),
        lambda view: view.__array_interface__,
    ],
    ids=["assign", "fill", "np.copyto", "copyto", "out", "touch", "mark", "asarray", "memoryview", "interface"],
)  # fmt: skip
def test_a_write_of_no_element_marks_nothing(write: Any, shape: tuple[int, ...]) -> None:
    """An empty view of an array without dimensions counted for its one element, and the host's old value came back."""
    storage = gridbuf.storage.ones(shape, **KINDS["synced"])
    through(storage, "gpu", lambda elements: elements.write(13), writes=True)
    before = storage.sync_state.state
    for view in (storage[None][0:0], storage[..., None][..., 0:0], storage[None, None][:, 1:]):
        write(view)
        assert storage.sync_state.state == before
    assert (storage.copy().to_numpy() == 13).all()
    assert (on_device(storage) == 13).all()
    assert (np.asarray(storage) == 13).all()
