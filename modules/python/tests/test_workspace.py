"""Workspaces: memory for temporaries that the caller owns."""

from __future__ import annotations

import pickle
import threading

import gridbuf
import gridbuf.testing
import numpy as np
import pytest
from gridbuf.memory import Workspace

MIB = 2**20


def test_only_what_is_touched_is_used():
    space = Workspace(2**33)
    assert space.limit == space.nbytes == 2**33
    assert (space.peak, space.committed) == (0, 0)
    view = np.asarray(space)
    assert view.shape == (2**33,) and view.dtype == np.uint8 and view.flags.writeable
    assert view.ctypes.data % 64 == 0
    view[: 3 * MIB] = 1
    assert 3 * MIB <= space.committed <= 8 * MIB
    assert space.trim() >= 3 * MIB
    assert space.committed == 0 and not view[: 3 * MIB].any()


def test_the_memory_lives_as_long_as_its_users():
    view = np.asarray(Workspace(MIB))
    view[...] = 7
    assert view.sum() == 7 * MIB


def test_the_default_is_the_memory_of_the_machine():
    assert Workspace().limit > 2**28


def test_who_compares_the_size_is_heard():
    space = Workspace(MIB)
    assert not space.nbytes < 1000
    assert space.peak == 1000
    assert space.nbytes < MIB + 1
    assert space.peak == 1000
    assert not space.nbytes < 10
    assert space.peak == 1000


def test_two_users_at_once_are_an_error():
    space = Workspace(MIB)
    with space.taken_by("diffusion"):
        space.need(100)
        np.asarray(space)[:100] = 7
        assert space.trim() == 0 and (np.asarray(space)[:100] == 7).all()
        with (
            pytest.raises(ValueError, match="'diffusion'.*'advection'"),
            space.taken_by("advection"),
        ):
            pass
    with space.taken_by("advection"):
        assert space.peak == 100
    assert space.trim() > 0


def test_threads_take_turns_or_are_refused():
    space, counted, refused = Workspace(MIB), [0], [0]

    def work() -> None:
        for _ in range(500):
            try:
                with space.taken_by("a program"):
                    before = counted[0]
                    counted[0] = before + 1
            except ValueError:
                refused[0] += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted[0] + refused[0] == 2000 and counted[0] > 0


def test_streams_have_workspaces_of_their_own():
    space = Workspace(MIB)
    one, other = space.per_stream(7), space.per_stream(8)
    assert one is space.per_stream(7) and one is not other and one.limit == MIB
    with one.taken_by("a"), other.taken_by("b"):
        pass


def test_a_device_has_one_of_fixed_size():
    with gridbuf.testing.emulated_device():
        space = Workspace(1000, device="gpu")
        interface = space.__cuda_array_interface__
        assert interface["shape"] == (1000,) and interface["data"][0] % 256 == 0
        assert not hasattr(space, "__array_interface__") and space.committed == 1000
        assert space.trim() == 0
        with space.taken_by("a"):
            space.need(10)
        with pytest.raises(ValueError, match="limit"):
            Workspace(device="gpu")
    assert not hasattr(Workspace(1), "__cuda_array_interface__")


def test_errors_say_what_to_do():
    space = Workspace(1000)
    with pytest.raises(MemoryError, match="1001 bytes.*1000"):
        space.need(1001)
    with pytest.raises(ValueError, match="nbytes is -1"):
        space.need(-1)
    for wrong in (0, -1, 2**63 - 1):
        with pytest.raises(ValueError, match="limit"):
            Workspace(wrong)
    with pytest.raises(TypeError, match="limit"):
        Workspace("1 GiB")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="process"):
        pickle.dumps(space)
    with pytest.raises(ValueError, match="limit"):
        Workspace(2**70)
    assert "1000" in repr(space)


def test_in_poison_mode_leftovers_show():
    before = gridbuf.memory.options()
    gridbuf.memory.configure(poison=True)
    try:
        space = Workspace(1000)
        view = np.asarray(space)
        space.need(100)
        with space.taken_by("a"):
            assert (view[:100] == 0xCB).all() and not view[100:].any()
    finally:
        gridbuf.memory.configure(**before)
