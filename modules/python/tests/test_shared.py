"""Memory that processes share: pickles without a copy, lifetime, layouts."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest

SHAPE = (6, 5, 4)
METHODS = ("fork", "spawn", "forkserver")


def _values() -> np.ndarray:
    return np.arange(120.0).reshape(SHAPE)


def _storage(**keywords: Any) -> Any:
    field = gridbuf.storage.zeros(
        SHAPE, layout=(2, 0, 1), alignment_size=64, halo=(1, 1, 0), memory="shared", **keywords
    )
    field[...] = _values()
    return field


def _added(field: Any, number: float) -> Any:
    np.asarray(field)[...] += number
    return field


@pytest.mark.parametrize("method", METHODS)
def test_processes_see_the_same_elements(method: str):
    field, buffer = _storage(), gridbuf.zeros(SHAPE, memory="shared").base
    with multiprocessing.get_context(method).Pool(2) as pool:
        returned = pool.apply(_added, (field, 1))
        assert (np.asarray(field) == _values() + 1).all()
        pool.apply(_added, (buffer, 3))
        assert (buffer.to_numpy() == 3).all()
        field[0, 0, 0] = -5
        assert returned[0, 0, 0] == -5


def _made(number: float) -> Any:
    return gridbuf.storage.full((1000,), number, memory="shared")


@pytest.mark.parametrize("method", METHODS)
def test_what_a_worker_made_arrives(method: str):
    """The worker drops it as soon as it was sent."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        fields = pool.map(_made, range(20))
    for number, field in enumerate(fields):
        assert (np.asarray(field) == number).all()


def test_a_pickle_has_the_parameters_and_no_elements():
    field = _storage(lower=(3, 4, 0))
    text = pickle.dumps(field)
    assert len(text) < 1000
    other = pickle.loads(text)
    assert type(other) is type(field)
    for name in ("shape", "strides", "dtype", "dims", "halo", "layout", "aligned_index", "lower"):
        assert getattr(other, name) == getattr(field, name), name
    assert other.__array_interface__["data"][0] % 64 == field.__array_interface__["data"][0] % 64
    other[2, 2, 2] = 99
    assert field[2, 2, 2] == 99
    again = pickle.loads(pickle.dumps(other))
    del field, other
    assert again[2, 2, 2] == 99


@pytest.mark.parametrize(
    "index",
    [np.s_[1:], np.s_[::-1], np.s_[:, 2], np.s_[::2, ..., ::-3], np.s_[1:1], np.s_[3, 2, 1:2]],
)
def test_views_stay_views(index: Any):
    for whole in (_storage(), gridbuf.zeros(SHAPE, memory="shared").base):
        view = whole[index]
        other = pickle.loads(pickle.dumps(view))
        assert other.shape == view.shape
        if np.asarray(view).size:
            np.asarray(view)[...] = 17
            assert (np.asarray(other) == 17).all() and other.strides == view.strides


def test_read_only_stays_read_only():
    buffer = gridbuf.ones(SHAPE, memory="shared").base.toreadonly()
    other = pickle.loads(pickle.dumps(buffer))
    assert other.readonly and not other.to_numpy().flags.writeable


def test_alignment_and_layout_are_as_for_other_memory():
    for alignment in (1, 64, 4096, 2**20):
        shared = gridbuf.zeros(
            SHAPE, alignment_size=alignment, aligned_index=(1, 1, 1), memory="shared"
        )
        plain = gridbuf.zeros(SHAPE, alignment_size=alignment, aligned_index=(1, 1, 1))
        assert shared.strides == plain.strides and shared[1, 1, 1:2].ctypes.data % alignment == 0
        assert gridbuf.owns(shared) and gridbuf.alloc_info(shared)["resource"] == "shared"
    with pytest.raises(ValueError, match="power of two"):
        gridbuf.zeros(SHAPE, alignment_size=24, memory="shared")


def test_every_maker_takes_it():
    for made in (
        gridbuf.empty(SHAPE, memory="shared"),
        gridbuf.full(SHAPE, 3.0, memory="shared"),
        gridbuf.from_array(_values(), memory="shared"),
        gridbuf.zeros_like(_values(), memory="shared"),
        gridbuf.storage.full(SHAPE, 2.0, memory="shared"),
        gridbuf.storage.storage(_values(), memory="shared"),
        gridbuf.storage.ones_like(_values(), memory="shared"),
    ):
        assert gridbuf._core._shared_place(np.asarray(made).ctypes.data) is not None


def test_what_cannot_be_shared_says_so():
    with pytest.raises(ValueError, match="memory is 'sharde'.*'shared'"):
        gridbuf.zeros(SHAPE, memory="sharde")  # type: ignore[call-overload]
    with gridbuf.testing.emulated_device():
        with pytest.raises(ValueError, match="shared"):
            gridbuf.allocate(SHAPE, device="gpu", memory="shared")
        with pytest.raises(ValueError, match="shared"):
            gridbuf.storage.zeros(SHAPE, device="gpu", managed=None, memory="shared")
        both = gridbuf.storage.zeros(SHAPE, device="gpu", memory="shared")
        with pytest.raises(TypeError, match="device"):
            pickle.dumps(both)
    with pytest.raises(ValueError, match="memory"):
        gridbuf.storage.zeros(SHAPE, memory="pinned")
    text = pickle.dumps(gridbuf.zeros(SHAPE, memory="shared").base)
    gc.collect()
    with pytest.raises(BufferError, match="keep the array"):
        pickle.loads(text)


def _die(field: Any) -> None:
    np.asarray(field)[0] = 1
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_nothing():
    field = gridbuf.storage.zeros((4, 1000), memory="shared")
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_die, args=(field,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (field[0] == 1).all() and not field[1:].any()
    # What the process has mapped when it is killed has no name that could be left.
    code = (
        "import gridbuf, os; x = gridbuf.ones((1000, 1000), memory='shared')\n"
        "maps = open('/proc/self/maps').read(); assert 'memfd:gridbuf' in maps and '/dev/shm' not in maps\n"
        "os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL


def _accesses(field: Any, lock: Any, seed: int, count: int) -> dict[int, int]:
    """Adds to random elements, under a lock; returns what was added by element."""
    random, added = np.random.default_rng(seed), dict[int, int]()
    elements = np.asarray(field).reshape(-1)
    for _ in range(count):
        place, number = int(random.integers(elements.size)), int(random.integers(100))
        with lock:
            elements[place] += number
        added[place] = added.get(place, 0) + number
    return added


def _worker(field: Any, lock: Any, seed: int, count: int, results: Any) -> None:
    results.put(_accesses(field, lock, seed, count))


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_eight_processes_agree_with_a_model(count: int):
    context = multiprocessing.get_context("spawn")
    field = gridbuf.storage.zeros((50, 7), "int64", memory="shared")
    lock, results = context.Lock(), context.Queue()
    workers = [
        context.Process(target=_worker, args=(field, lock, seed, count, results))
        for seed in range(8)
    ]
    for worker in workers:
        worker.start()
    expected = np.zeros(350, np.int64)
    for _ in workers:
        for place, number in results.get(timeout=300).items():
            expected[place] += number
    for worker in workers:
        worker.join()
    assert (np.asarray(field).reshape(-1) == expected).all()


def test_other_libraries_share_it():
    torch = pytest.importorskip("torch")
    field = _storage()
    tensor = torch.from_dlpack(pickle.loads(pickle.dumps(field)))
    tensor[0, 0, 0] = 77
    assert field[0, 0, 0] == 77 and np.from_dlpack(field)[0, 0, 0] == 77
