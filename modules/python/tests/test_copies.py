"""Copies and pickles: elements and every parameter survive; what a pickle holds is checked."""

from __future__ import annotations

import copy
import pickle
import pickletools
from collections.abc import Callable
from typing import Any

import gridbuf
import numpy as np
import pytest
from gridbuf import _pickles
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import fill_bytes, raw, requests, without_gaps

PARAMETERS = ("shape", "dtype", "dims", "layout", "aligned_index", "alignment_size", "device")


def through_pickle(protocol: int) -> Callable[[Any], Any]:
    return lambda buffer: pickle.loads(pickle.dumps(buffer, protocol))


def out_of_band(buffer: gridbuf.Buffer) -> gridbuf.Buffer:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(buffer, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers)


WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda buffer: buffer.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    **{f"pickle {protocol}": through_pickle(protocol) for protocol in range(6)},
    "pickle out of band": out_of_band,
}


@pytest.mark.parametrize("way", WAYS)
@given(request=requests(max_ndim=4))
@settings(max_examples=60)
def test_elements_and_parameters_survive(way: str, request: dict[str, Any]) -> None:
    buffer = gridbuf.allocate(**request)
    array = fill_bytes(buffer.to_numpy())
    copied = WAYS[way](buffer)
    for name in PARAMETERS:
        assert getattr(copied, name) == getattr(buffer, name)
    assert copied.strides == buffer.strides
    assert copied.plan == buffer.plan
    assert raw(copied.to_numpy()) == raw(without_gaps(array))
    assert not np.shares_memory(copied.to_numpy(), array)
    assert copied.base is None


@pytest.mark.parametrize("way", WAYS)
@given(request=requests(max_ndim=3, min_extent=1), step=st.sampled_from([1, 2, -1]))
@settings(max_examples=40)
def test_views_are_copied_as_they_are_seen(way: str, request: dict[str, Any], step: int) -> None:
    buffer = gridbuf.allocate(**request)
    fill_bytes(buffer.to_numpy())
    view = buffer[(..., *(slice(None, None, step) for _ in buffer.shape))].T
    copied = WAYS[way](view)
    assert raw(copied.to_numpy()) == raw(without_gaps(view.to_numpy()))
    for name in PARAMETERS:
        assert getattr(copied, name) == getattr(view, name)


def test_a_copy_of_padded_memory_is_aligned_as_the_original() -> None:
    buffer = gridbuf.allocate((5, 7), alignment_size=256, aligned_index=(2, 3))
    for way in WAYS.values():
        assert way(buffer)[2:, 3:].to_numpy().ctypes.data % 256 == 0


def test_read_only_survives_pickling() -> None:
    frozen = gridbuf.ones((3,)).base.toreadonly()
    assert pickle.loads(pickle.dumps(frozen)).readonly


def test_deepcopy_of_a_container_copies_a_buffer_once() -> None:
    buffer = gridbuf.ones((3,)).base
    one, other = copy.deepcopy([buffer, buffer])
    assert one is other
    assert one is not buffer


def test_a_pickle_holds_no_padding() -> None:
    buffer = gridbuf.zeros((64, 1), alignment_size=4096).base
    assert len(pickle.dumps(buffer)) < 64 * 8 + 1000


def test_protocol_5_hands_contiguous_memory_over_without_copying() -> None:
    buffer = gridbuf.ones((100, 100)).base
    buffers: list[pickle.PickleBuffer] = []
    pickle.dumps(buffer, 5, buffer_callback=buffers.append)
    assert np.shares_memory(np.frombuffer(buffers[0]), buffer.to_numpy())


def restore(*arguments: Any) -> Any:
    shape, dtype, layout, alignment_size, aligned_index, dims, readonly, elements, memory = (
        arguments
    )
    parameters = {
        "layout": layout,
        "alignment_size": alignment_size,
        "aligned_index": aligned_index,
        "dims": dims,
    }
    return _pickles.restore_buffer(elements, shape, dtype, memory, readonly, parameters)


GOOD = ((2, 3), np.dtype("f4"), (1, 0), 8, (0, 1), ("K", "I"), False, bytes(24), "host")


def test_restore_makes_what_was_pickled() -> None:
    buffer = restore(*GOOD)
    assert (buffer.shape, buffer.layout, buffer.dims) == ((2, 3), (1, 0), ("K", "I"))


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, (2, 4)), (0, (2**62, 2**62)), (0, "ab"), (0, (-1, 3)), (0, None),
        (1, object), (1, "U"), (1, np.dtype("f8")), (1, "no type"),
        (2, (0, 0)), (2, "10"), (2, (0, 1, 2)),
        (3, 0), (3, 2**40), (3, 1.5),
        (4, (2, 0)), (4, (0,)), (4, "00"),
        (5, "KK"), (5, ("K", 5)), (5, "X-"),
        (6, 1), (6, None),
        (7, bytes(23)), (7, bytes(25)), (7, "text"), (7, None), (7, memoryview(bytes(48))[::2]),
        (8, "gpu"), (8, b"host"), (8, 3),
    ],
    ids=str,
)  # fmt: skip
def test_a_tampered_pickle_is_an_error(position: int, value: Any) -> None:
    arguments = [*GOOD]
    arguments[position] = value
    with pytest.raises((TypeError, ValueError, BufferError)):
        restore(*arguments)


def test_restore_counts_its_arguments() -> None:
    for arguments in (
        (),
        (bytes(24), (2, 3)),
        (bytes(24), (2, 3), "f4", "host", False, {"shape": 3}),
    ):
        with pytest.raises(TypeError):
            _pickles.restore_buffer(*arguments)


@given(data=st.data())
@settings(max_examples=300)
def test_damaged_pickles_never_crash(data: st.DataObject) -> None:
    pickled = bytearray(pickle.dumps(gridbuf.ones((2, 3), "f4").base, 2))
    for _ in range(data.draw(st.integers(1, 3))):
        pickled[data.draw(st.integers(0, len(pickled) - 1))] = data.draw(st.integers(0, 255))
    if _only_ours(bytes(pickled)):
        try:
            result = pickle.loads(bytes(pickled))
        except Exception:  # noqa: BLE001 (any error will do; what counts is that the process lives)
            return
        repr(result)


def _only_ours(pickled: bytes) -> bool:
    """Whether the pickle names nothing but what a Buffer's pickle names: others may do anything."""
    known = {"gridbuf._pickles restore_buffer", "numpy dtype"}
    try:
        named = {
            argument
            for opcode, argument, _ in pickletools.genops(pickled)
            if opcode.name in ("GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4")
        }
    except Exception:  # noqa: BLE001 (not a pickle any more)
        return False
    return named <= known


def test_reduce_ex_wants_a_protocol() -> None:
    for bad in ("2", None, 2.0):
        with pytest.raises(TypeError):
            gridbuf.allocate((2,)).__reduce_ex__(bad)


@pytest.mark.parametrize(
    "arguments",
    [(), ((2,),), ((2, 3), -1, (0, 1), 1, (0, 0), "IJ"), ((2, 3), 8, (0, 1), 0, (0, 0), "IJ"),
     ((2, 3), 8, (0, 1), 1, (0, 5), "IJ"), ((2, 3), 8, (0, 0), 1, (0, 0), "IJ"),
     ((2, 3), 8, (0, 1), 1, (0, 0), "II"), ((2**62, 3), 8, (0, 1), 1, (0, 0), "IJ")],
    ids=str,
)  # fmt: skip
def test_a_tampered_plan_is_an_error(arguments: tuple[Any, ...]) -> None:
    names = ("layout", "alignment_size", "aligned_index", "dims")
    with pytest.raises((TypeError, ValueError)):
        _pickles.restore_plan(*arguments[:2], dict(zip(names, arguments[2:])))


def test_plans_are_copied_and_pickled() -> None:
    plan = gridbuf.plan((3, 4, 5), "f4", layout=(2, 0, 1), alignment_size=32, dims="KJI")
    for way in (copy.copy, copy.deepcopy, through_pickle(2), through_pickle(5)):
        assert way(plan) == plan
        assert hash(way(plan)) == hash(plan)
        assert repr(way(plan)) == repr(plan)
