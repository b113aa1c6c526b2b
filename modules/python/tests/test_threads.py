"""Eight threads on shared arrays, storages, caches, presets, settings and imports.

Written for free-threaded Python and for the thread sanitizer; with the GIL the same promises hold. GRIDBUF_ROUNDS sets how
long the threads work.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import pickle
import random
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import gridbuf
import gridbuf.memory
import gridbuf.storage as gs
import gridbuf.testing
import numpy as np
import pytest
from abi import DLTensor
from operations import TABLE

THREADS = 8
ROUNDS = int(os.environ.get("GRIDBUF_ROUNDS", "150"))

KINDS: dict[str, dict[str, Any]] = {
    "cpu": {},
    "gpu": {"device": "gpu", "managed": None},
    "synced": {"device": "gpu", "managed": "gt4py"},
    "managed": {"device": "gpu", "managed": "cuda"},
}


def in_threads(work: Callable[[int, random.Random], None]) -> None:
    """Run `work(number, random numbers)` on all threads at once; the first exception is raised."""
    failures: list[BaseException] = []
    begin = threading.Barrier(THREADS)

    def run(number: int) -> None:
        try:
            begin.wait()
            work(number, random.Random(number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads), "a thread never ends"
    if failures:
        raise failures[0]


DICT = {
    "shape": (3, 4),
    "typestr": "<f8",
    "version": 3,
    "data": bytearray(96),
    "descr": [("", "<f8")],
}


class Dict:
    """An exporter whose dict other threads change."""

    __array_interface__ = DICT


def read_the_dict() -> None:
    """Either of the two descriptions may be there; the longer one is refused."""
    try:
        assert gridbuf.as_buffer(Dict()).shape == (3, 4)
    except ValueError as error:
        assert str(error).startswith("AI-13: descr is [('', '<f8'), ('', '<f8')")


def change_the_dict() -> None:
    DICT["strides"] = (32, 8)
    DICT["descr"].append(("", "<f8"))  # type: ignore[attr-defined]
    DICT["descr"].pop()  # type: ignore[attr-defined]
    DICT.pop("strides", None)


BUFFER = gridbuf.ones((3, 4), layout=(1, 0), alignment_size=64).base
NUMBERS = np.arange(12.0).reshape(3, 4)
numbers_made = itertools.count()


def borrowed() -> None:
    tensor = DLTensor()
    TABLE.borrow(BUFFER, ctypes.byref(tensor))
    assert tensor.ndim == 2


def new_dtype() -> None:
    """More types than the caches keep."""
    length = next(numbers_made) % 700 + 1
    assert gridbuf.empty((2,), f"V{length}").dtype.itemsize == length


def new_name() -> None:
    name = f"N{next(numbers_made) % 500}"
    field = gs.zeros((2, 3), dims=(name, "K"))
    assert field.dims[0] == name
    assert (field + field).dims[1] == "K"


ON_ARRAYS: list[Callable[[], Any]] = [
    lambda: gridbuf.empty((3, 4), "f4", layout=(1, 0)),
    lambda: gridbuf.zeros((1 << 18,), alignment_size=4096),
    lambda: gridbuf.from_array(NUMBERS.T),
    lambda: memoryview(BUFFER),
    lambda: np.asarray(BUFFER),
    lambda: np.from_dlpack(BUFFER),
    lambda: BUFFER[1:, ::-1].T,
    lambda: BUFFER.copy(),
    lambda: BUFFER.__array_interface__,
    lambda: BUFFER.__gt_data_interface__,
    lambda: repr(BUFFER),
    lambda: pickle.loads(pickle.dumps(BUFFER)),
    lambda: gridbuf.as_buffer(NUMBERS),
    read_the_dict,
    lambda: gridbuf.as_numpy(memoryview(b"abc")),
    lambda: gridbuf.copyto(np.empty((4, 3), "f4").T, NUMBERS),
    lambda: gridbuf.presets(),
    lambda: gridbuf.show_config("dict"),
    lambda: gridbuf.memory.statistics(),
    lambda: gridbuf.memory.trim(),
    lambda: gridbuf.memory.configure(cache_limit_bytes="auto"),
    lambda: gridbuf.set_num_threads(2),
    lambda: gridbuf.declare_dims(levels="vertical"),
    borrowed,
    change_the_dict,
    new_dtype,
    new_name,
]


def test_the_interpreter_stays_free_threaded() -> None:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("NOT TESTED: this Python has the GIL")
    assert not sys._is_gil_enabled()


def test_arrays_caches_and_settings_are_shared() -> None:
    def work(number: int, draw: random.Random) -> None:
        for _ in range(ROUNDS):
            draw.choice(ON_ARRAYS)()
        assert (np.asarray(BUFFER) == 1).all()

    in_threads(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_storage_is_shared(kind: str) -> None:
    with gridbuf.testing.emulated_device():
        storage = gs.zeros((THREADS, 16), "f8", halo=(0, 1), **KINDS[kind])
        other = gs.ones((THREADS, 16), "f8", **KINDS[kind])
        actions: list[Callable[[], Any]] = [
            lambda: storage + other,
            lambda: storage.domain_view.shape,
            lambda: storage.copy(),
            lambda: storage.sum(axis=1),
            lambda: repr(storage),
            lambda: storage.halo,
            lambda: setattr(storage, "halo", (0, next(numbers_made) % 3)),
            # Of `other`, because a writable export counts as a write of all elements.
            lambda: other.__dlpack__(max_version=(1, 0)),
            lambda: storage.__gt_data_interface__,
            lambda: storage.synchronize(),
            lambda: storage.sync_state and storage.sync_state.state,
            lambda: gs.storage(storage, device=None).to_numpy(),
            lambda: pickle.loads(pickle.dumps(other)),
        ]

        def work(number: int, draw: random.Random) -> None:
            for value in range(ROUNDS // 3):
                storage[number] = value
                assert float(storage[number, draw.randrange(16)]) == value
                draw.choice(actions)()
                other[number] = 1

        in_threads(work)
        found = np.asarray(gs.storage(storage, device=None))
        assert (found == ROUNDS // 3 - 1).all()
        assert (np.asarray(gs.storage(other, device=None)) == 1).all()
        gridbuf.testing.synchronize()


def test_a_stencil_is_shared() -> None:
    @gridbuf.stencil
    def add(a: gridbuf.Field[float, gridbuf.IJ], b: gridbuf.Field[float, gridbuf.IJ]) -> None:
        b[...] = a + 1

    source = gs.zeros((4, 5))

    def work(number: int, draw: random.Random) -> None:
        for _ in range(ROUNDS // 3):
            target = gs.zeros((4, 5))
            add(source, target)
            assert (np.asarray(target) == 1).all()

    in_threads(work)
