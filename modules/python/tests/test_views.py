"""Indexing, transposing and broadcasting: always what NumPy does, sharing memory."""

from __future__ import annotations

import ctypes
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import dense_strides, fill_bytes, requests

BIG = 2**70


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """A subscript of basic indexing; most are legal, some are out of bounds."""
    entries: list[Any] = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        bound = st.integers(-extent - 2, extent + 2)
        ends = st.none() | bound | st.sampled_from([BIG, -BIG])
        steps = st.sampled_from([None, 1, 2, 3, -1, -2, BIG, -BIG])
        entries.append(
            draw(st.integers(-extent, extent) | st.builds(slice, ends, ends, steps) | bound)
        )
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), ...)
    return entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


@given(requests(max_ndim=4), st.data())
@settings(max_examples=500)
def test_indexing_is_numpys(request: dict[str, Any], data: st.DataObject) -> None:
    buffer = gridbuf.allocate(**request)
    array = fill_bytes(buffer.to_numpy())
    key = data.draw(keys(buffer.shape))
    try:
        expected = array[key]
    except IndexError:
        with pytest.raises(IndexError):
            buffer[key]
        return
    found = buffer[key]
    if not isinstance(expected, np.ndarray) or not isinstance(found, gridbuf.Buffer):
        assert type(found) is type(expected)
        assert found.tobytes() == expected.tobytes()
        return
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    seen = found.to_numpy()
    assert seen.strides == found.strides == dense_strides(expected)
    if found.size:
        assert seen.ctypes.data == expected.ctypes.data
    assert found.base is buffer
    assert sorted(found.layout) == list(range(found.ndim))
    assert len(set(found.dims)) == found.ndim


@given(requests(max_ndim=4, min_extent=1), st.data())
@settings(max_examples=300)
def test_a_view_promises_no_alignment_that_it_does_not_have(
    request: dict[str, Any], data: st.DataObject
) -> None:
    # Zeros, because a key may read an element, and undefined bytes are not text: NumPy raises then.
    buffer = gridbuf.zeros(**request).base
    view = buffer
    for _ in range(2):
        view = view[data.draw(keys(view.shape).filter(lambda key: _is_view(view, key)))]
        view = view.transpose(data.draw(st.permutations(range(view.ndim))))
    if view.size == 0:
        return
    offset = sum(i * s for i, s in zip(view.aligned_index, view.strides, strict=True))
    assert (view.to_numpy().ctypes.data + offset) % view.alignment_size == 0


def _is_view(buffer: gridbuf.Buffer, key: Any) -> bool:
    try:
        return isinstance(buffer[key], gridbuf.Buffer)
    except IndexError:
        return False


@given(requests(max_ndim=4), st.data())
def test_the_layout_of_a_view_orders_its_strides(
    request: dict[str, Any], data: st.DataObject
) -> None:
    buffer = gridbuf.allocate(**request)
    view = buffer.transpose(data.draw(st.permutations(range(buffer.ndim))))[
        (..., *(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in buffer.shape))
    ]
    view = view[None] if data.draw(st.booleans()) else view
    long = [axis for axis, extent in enumerate(view.shape) if extent > 1]
    if view.size:
        by_rank = sorted(long, key=lambda axis: view.layout[axis])
        strides = [abs(view.strides[axis]) for axis in by_rank]
        assert strides == sorted(strides, reverse=True)


@pytest.mark.parametrize(
    "key",
    [
        [0],
        [0, 1],
        (0, [1]),
        np.array([0]),
        np.array([True, False, True]),
        True,
        (0, False),
        1.0,
        "0",
        (0, 1.5),
        {1, 2},
        object(),
        slice("a", None),
        slice(None, 1.5),
        np.bool_(True),
    ],
    ids=str,
)
def test_advanced_and_wrong_keys_are_a_type_error(key: Any) -> None:
    with pytest.raises(TypeError):
        gridbuf.allocate((3, 4))[key]


@pytest.mark.parametrize("key", [(0, 0, 0), (3,), -4, BIG, -BIG, (..., 0, 0, 0), (0,) * 1000])
def test_what_is_out_of_bounds_is_an_index_error(key: Any) -> None:
    with pytest.raises(IndexError):
        gridbuf.allocate((3, 4))[key]


def test_other_faults_of_a_key() -> None:
    with pytest.raises(ValueError, match="zero"):
        gridbuf.allocate((3, 4))[::0]
    with pytest.raises((IndexError, ValueError)):
        gridbuf.allocate((3, 4))[..., ...]
    with pytest.raises((IndexError, ValueError)):
        gridbuf.allocate((3,))[(None,) * 64]
    with pytest.raises((IndexError, ValueError)):
        gridbuf.allocate((3,))[(None,) * 100_000]


def test_integers_of_numpy_are_integers() -> None:
    buffer = gridbuf.full((3, 4), 2.0).base
    assert buffer[np.int8(-1), np.uint64(1)] == 2.0
    assert buffer[np.array(1)].shape == (4,)


def test_a_full_set_of_integers_gives_a_numpy_scalar() -> None:
    buffer = gridbuf.full((3, 4), 2.5).base
    assert type(buffer[1, 2]) is np.float64
    assert type(buffer[1, 2, ...]) is gridbuf.Buffer
    assert type(gridbuf.full((), 3, "i2").base[()]) is np.int16
    assert type(gridbuf.full((), 3, "i2").base[...]) is gridbuf.Buffer
    record = gridbuf.zeros((2,), [("a", "i4")]).base[1]
    assert type(record) is np.void
    assert record["a"] == 0


def test_length_and_iteration() -> None:
    buffer = gridbuf.from_array([[1, 2], [3, 4], [5, 6]]).base
    assert len(buffer) == 3
    assert [row.to_numpy().tolist() for row in buffer] == [[1, 2], [3, 4], [5, 6]]
    assert list(buffer[:, 0]) == [1, 3, 5]
    assert list(buffer[:0]) == []
    with pytest.raises(TypeError, match="length"):
        len(gridbuf.allocate(()))
    with pytest.raises(TypeError, match="iterated"):
        list(gridbuf.allocate(()))


def test_views_keep_the_memory_alive() -> None:
    views = [gridbuf.full((4, 4), float(n)).base[1:, ::-1] for n in range(100)]
    assert [view[0, 0] for view in views] == [float(n) for n in range(100)]
    assert views[0].base.shape == (4, 4)
    assert views[0][1:].base is views[0].base


# ---- transpose, T, broadcast_to, toreadonly. ----


@given(requests(max_ndim=5), st.data())
def test_transpose_is_numpys(request: dict[str, Any], data: st.DataObject) -> None:
    buffer = gridbuf.allocate(**request)
    array = buffer.to_numpy()
    axes = tuple(
        axis - data.draw(st.sampled_from([0, buffer.ndim]))
        for axis in data.draw(st.permutations(range(buffer.ndim)))
    )
    for found, expected in [
        (buffer.transpose(*axes), array.transpose(axes)),
        (buffer.transpose(axes), array.transpose(axes)),
        (buffer.transpose(list(axes)), array.transpose(axes)),
        (buffer.transpose(), array.T),
        (buffer.transpose(None), array.T),
        (buffer.T, array.T),
    ]:
        assert (found.shape, found.strides) == (expected.shape, dense_strides(expected))
    moved = buffer.transpose(axes)
    for name in ("dims", "layout", "aligned_index"):
        assert getattr(moved, name) == tuple(getattr(buffer, name)[axis] for axis in axes)


@pytest.mark.parametrize(
    ("axes", "error"),
    [
        ((0, 0, 1), ValueError),
        ((0, 1), ValueError),
        ((0, 1, 2, 0), ValueError),
        (((),), ValueError),
        ((0, 1, 3), IndexError),
        ((0, 1, BIG), ValueError),
        ((0, 1, 2**40), IndexError),
        ((0, 1, 2.0), TypeError),
        (("012",), ValueError),
        ((None, 0, 1), TypeError),
        ((True, 0, 2), TypeError),
        ((0,) * 1000, ValueError),
    ],
    ids=str,
)
def test_what_are_no_axes(axes: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        gridbuf.allocate((2, 3, 4)).transpose(*axes)


@given(requests(max_ndim=4), st.data())
@settings(max_examples=300)
def test_strides_without_meaning_are_those_of_a_dense_array_in_every_view(
    request: dict[str, Any], data: st.DataObject
) -> None:
    buffer = gridbuf.zeros(**request).base
    storage = gs.as_storage(buffer)
    for _ in range(2):
        axes = data.draw(st.permutations(range(buffer.ndim)))
        key = tuple(
            slice(
                data.draw(st.sampled_from([None, 1, 2])),
                None,
                data.draw(st.sampled_from([1, -1, 3])),
            )
            for _ in range(buffer.ndim)
        ) + (...,)
        expected = storage.to_ndarray().transpose(axes)[key]
        buffer, storage = buffer.transpose(axes)[key], storage.transpose(axes)[key]
        for made, wanted in [
            (buffer, expected),
            (storage, expected),
            (buffer.T, expected.T),
            (storage.T, expected.T),
            (buffer[None], expected[None]),
            (storage[..., None], expected[..., None]),
            (storage.domain_view, expected),
            (
                buffer.broadcast_to((2, *buffer.shape)),
                np.broadcast_to(expected, (2, *buffer.shape)),
            ),
        ]:
            assert made.strides == dense_strides(wanted)
            assert made.to_numpy().strides == made.strides


def test_broadcast_to_repeats_without_copying() -> None:
    buffer = gridbuf.from_array([[1.0], [2.0]]).base
    wide = buffer.broadcast_to((3, 2, 4))
    assert wide.to_numpy().tolist() == [[[1.0] * 4, [2.0] * 4]] * 3
    assert wide.strides == (0, 8, 0)
    assert wide.readonly
    assert wide.copy().to_numpy().tolist() == wide.to_numpy().tolist()
    for bad in ((3,), (2, 2, 2, 3)[:1], (3, 1), (-1, 1), (2, 2**70), (2**62, 2, 4)):
        with pytest.raises(ValueError):
            buffer.broadcast_to(bad)
    with pytest.raises(TypeError):
        buffer.broadcast_to("22")


def test_read_only_views_cannot_be_written() -> None:
    buffer = gridbuf.allocate((3, 4))
    frozen = buffer.toreadonly()
    assert (buffer.readonly, frozen.readonly, frozen[1:].readonly, frozen.T.readonly) == (
        False,
        True,
        True,
        True,
    )
    assert not frozen.to_numpy().flags.writeable
    assert not np.asarray(frozen).flags.writeable
    assert not np.from_dlpack(frozen).flags.writeable
    with pytest.raises((BufferError, TypeError)):
        (ctypes.c_double * 12).from_buffer(frozen)
    assert frozen.copy().readonly is False
