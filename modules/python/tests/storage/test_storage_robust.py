"""Nothing that Python passes, drops or does from other threads crashes the process or leaks."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gridbuf
import gridbuf._pickles
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, emulated
from gridbuf import testing
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


class Hostile:
    """Whatever it is asked, it raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"hostile {name}")

    def __index__(self) -> int:
        raise RuntimeError("hostile __index__")

    def __len__(self) -> int:
        raise RuntimeError("hostile __len__")

    def __getitem__(self, key: object) -> Any:
        raise RuntimeError("hostile __getitem__")

    def __repr__(self) -> str:
        raise RuntimeError("hostile __repr__")


class Changing(list):
    """A list that loses its entries when it is asked for its length."""

    def __len__(self) -> int:
        length = super().__len__()
        self.clear()
        return length


class Self:
    """An array interface that leads back to where it was asked."""

    @property
    def __array_interface__(self) -> Any:
        return self

    @property
    def __gt_data_interface__(self) -> Any:
        return {None: {"shape": (2**62,), "typestr": "<f8", "data": (8, False), "strides": (8,)}}


VALUES: list[Any] = [
    None, True, -1, 0, 3, 2**63, -(2**70), 1.5, float("nan"), 1j, "", "gpu", "IJK", "\ud800", b"IJ", (), (0,),
    (1, 1), (2**62, 2**62), ((1, 2), (3, 4)), ((1,), 2), [], [[]], {}, {"a": 1}, object(), Hostile(), Changing([1, 1]),
    Self(), np.zeros((2, 3)), np.zeros(0), np.float64(3), slice(None), ..., int, len, lambda *a: a, lambda dims: (1, 0),
    gs.SyncState(), memoryview(b"abc"), range(3), iter([1, 2]), np.ma.masked_array([1, 2], [0, 1]),
    {"I": (1, 1)}, {"I": Hostile()}, {Hostile(): 1}, gridbuf.Dim("E2C", "local"), SimpleNamespace(value="I", kind="local"), SimpleNamespace(value="I", kind=Hostile()),
    [SimpleNamespace(value=5, kind="local")], (SimpleNamespace(value="I", kind="up"),), ("I", Hostile()), ("Cell", "K"),
]  # fmt: skip

KEYWORDS = ["backend", "defaults", "device", "layout", "alignment_size", "aligned_index", "dims", "populate", "halo", "managed"]  # fmt: skip
EXPECTED = (
    TypeError, ValueError, IndexError, BufferError, MemoryError, RuntimeError, OverflowError, AttributeError,
    DeprecationWarning, KeyError,
)  # fmt: skip


def answered(call: Any) -> None:
    try:
        call()
    except EXPECTED:
        pass


@pytest.mark.parametrize(
    "keyword", [*KEYWORDS, "dtype", "copy", "sync_state", "shape", "data", "device_data"]
)
def test_hostile_values_of_every_parameter_are_answered(keyword: str) -> None:
    for value in VALUES:
        for function in (gs.zeros, gs.storage, gs.as_storage, gs.full):
            given_first = () if keyword in ("shape", "data") else (np.zeros((2, 3)),)
            if function in (gs.zeros, gs.full) and given_first:
                given_first = ((2, 3),) if function is gs.zeros else ((2, 3), 1)
            answered(lambda f=function, a=given_first, v=value: f(*a, **{keyword: v}))
            answered(lambda f=function, v=value: f(v, v, v))
        answered(lambda v=value: gs.zeros_like(v))
        answered(lambda v=value: gs.full_like(np.zeros((2, 3)), v))


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_values_of_every_method_are_answered(kind: str) -> None:
    storage = gs.zeros((2, 3), **KINDS[kind])
    methods = [name for name in dir(type(storage)) if callable(getattr(type(storage), name, None))]
    skipped = {"__class__", "__init_subclass__", "__subclasshook__", "__new__", "__init__", "__dir__", "__getattribute__",
               "__setattr__", "__delattr__", "__sizeof__", "__array_wrap__"}  # fmt: skip
    assert "__getitem__" in methods
    for name, value in itertools.product(sorted(set(methods) - skipped), VALUES):
        method = getattr(storage, name)
        answered(method)
        answered(lambda m=method, v=value: m(v))
        answered(lambda m=method, v=value: m(v, v))
    for value in VALUES:
        answered(lambda v=value: setattr(storage, "halo", v))
        answered(lambda v=value: storage.__setitem__(v, 1))
        answered(lambda v=value: storage.__setitem__(0, v))
        answered(lambda v=value: gs.SyncState(v))
        answered(lambda v=value: gridbuf._core._run_kernel(v))
        answered(lambda v=value: gridbuf._pickles.restore_storage(v, v, v, v))
        answered(lambda v=value: gridbuf._core._set_storage_types(v, v, v, v))
    assert storage.shape == (2, 3)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(list(KINDS)),
    st.dictionaries(st.sampled_from(KEYWORDS), st.sampled_from(VALUES), max_size=3),
)
def test_any_values_give_a_storage_or_the_right_error(kind: str, keywords: dict[str, Any]) -> None:
    with emulated():
        try:
            made = gs.full((2, 3), 1, **{**KINDS[kind], **keywords})
        except EXPECTED:
            return
        assert isinstance(made, gs.Storage)
        assert (np.asarray(gs.storage(made, device=None)) == 1).all()


def test_exceptions_of_foreign_objects_reach_the_caller() -> None:
    storage = gs.zeros((2, 3))
    for call in (
        lambda: gs.as_storage(Hostile()),
        lambda: storage[Hostile()],
        lambda: storage.__setitem__(0, Hostile()),
        lambda: gs.zeros(Hostile()),
        lambda: gs.zeros((2, 3), halo=Hostile()),
    ):
        with pytest.raises(RuntimeError, match="hostile"):
            call()


# ---- Lifetime. ----

EXPORTS = {
    "view": lambda s: s[1:],
    "domain": lambda s: s.domain_view,
    "wrapped": lambda s: gs.as_storage(s),
    "state": lambda s: s.sync_state,
    "array": lambda s: None if type(s) is gs.GPUStorage else np.asarray(s),
    "to_numpy": lambda s: None if type(s) is gs.GPUStorage else s.to_numpy(),
    "memoryview": lambda s: None if type(s) is gs.GPUStorage else memoryview(s),
    "capsule": lambda s: s.__dlpack__(max_version=(1, 0)),
    "buffer": lambda s: gridbuf.as_buffer(s),
    "pointer": lambda s: s.device_data,
    "struct": lambda s: getattr(s, "__array_struct__", None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_survivors_are_usable_in_any_order_of_dropping(kind: str) -> None:
    gridbuf.testing.synchronize()
    gc.collect()
    before = gridbuf.testing.statistics()["live_blocks"]
    for first, second in itertools.permutations(EXPORTS, 2):
        storage = gs.full((4, 5), 7, "i4", **KINDS[kind])
        kept = [EXPORTS[first](storage), EXPORTS[second](storage)]
        del storage
        while kept:
            survivor = kept.pop()
            if isinstance(survivor, gs.Storage):
                assert survivor[0, 0] == 7
                survivor[0, 0] = 7
            elif isinstance(survivor, (np.ndarray, memoryview)):
                assert np.asarray(survivor)[0, 0] == 7
            elif isinstance(survivor, gridbuf.Buffer):
                assert survivor.copy(memory="host").to_numpy()[0, 0] == 7
    del survivor
    gc.collect()
    gridbuf.testing.synchronize()
    assert gridbuf.testing.statistics()["live_blocks"] == before


def test_storages_can_be_referred_to_weakly_and_are_freed_at_once() -> None:
    for kind in KINDS:
        storage = gs.zeros((2, 3), **KINDS[kind])
        gone = weakref.ref(storage)
        del storage
        assert gone() is None
    state = gs.zeros(3, device="gpu").sync_state
    assert weakref.ref(state)() is state


def test_a_loop_leaves_nothing_behind() -> None:
    def everything() -> None:
        for kind in KINDS:
            storage = gs.full((4, 5), 3, "f4", halo=(1, 1), **KINDS[kind])
            for make in EXPORTS.values():
                make(storage)
            storage[1:3, ::2] = gs.as_storage(storage[1:3, ::2]).copy()
            storage[[0, 1]] = 4
            storage.astype("i4").T[0].fill(2)
            storage[0, 0], storage[[1]], float(storage[1, 1:2])
            answered(lambda s=storage: s.__setitem__(0, np.zeros(99)))
            answered(lambda: gs.zeros((2, 3), halo=(9, 9)))
            answered(lambda s=storage: gs.as_storage(s, alignment_size=4096))

    everything()
    gridbuf.testing.synchronize()
    gc.collect()
    blocks, live = sys.getallocatedblocks(), gridbuf.testing.statistics()["live_blocks"]
    for _ in range(50):
        everything()
    gridbuf.testing.synchronize()
    gc.collect()
    assert gridbuf.testing.statistics()["live_blocks"] == live
    assert sys.getallocatedblocks() - blocks < 200, "50 rounds leave not one object each behind"


def test_the_interpreter_ends_with_storages_and_exports_of_every_kind() -> None:
    code = """
import gridbuf.testing, gridbuf.storage as gs, numpy as np
gridbuf.testing.emulated_device()
kept = []
for keywords in ({}, dict(device="gpu", managed=None), dict(device="gpu"), dict(device="gpu", managed="cuda")):
    storage = gs.full((4, 5), 3, **keywords)
    kept += [storage, storage[1:], storage.sync_state, storage.device_data, storage.__dlpack__()]
    if keywords.get("managed", 1) is not None:
        kept += [storage.to_numpy(), memoryview(storage), storage.__array_struct__]
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# ---- Threads. ----


@pytest.mark.parametrize("kind", KINDS)
def test_many_threads_read_one_storage_and_write_parts_of_their_own(kind: str) -> None:
    storage = gs.zeros((8, 64), "i8", **KINDS[kind])
    failures: list[BaseException] = []

    def work(row: int) -> None:
        try:
            for value in range(30):
                storage[row] = value
                assert storage[row, value] == value
                view = storage[row : row + 1]
                view.device_to_host()
                view.host_to_device()
                assert (np.asarray(gs.storage(view, device=None)) == value).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread never ends"
    assert not failures, failures
    assert (np.asarray(gs.storage(storage, device=None)) == 29).all()


def test_kernels_in_python_and_copies_from_other_threads_do_not_wait_for_each_other() -> None:
    storage = gs.zeros((64, 64), "f8", device="gpu")
    done = threading.Event()

    def kernels() -> None:
        def add(array: np.ndarray) -> None:
            array += 1

        for _ in range(50):
            array = storage._write_array("device", None, False)
            gridbuf._core._run_kernel(add, array)
            storage._written("device")
        done.set()

    thread = threading.Thread(target=kernels)
    thread.start()
    while not done.wait(0.001):
        float(storage[0, 0])
        memoryview(storage).release()
    thread.join(60)
    assert not thread.is_alive()
    storage.device_to_host(force=True)


# ---- What the array functions in Python are made of. ----


def test_a_kernel_returns_or_raises_what_its_function_does() -> None:
    storage = gs.full((2, 3), 4, "f4", **KINDS["gpu"])
    array = storage._read_array("device", ("J", "K", "I"))
    assert (array.shape, array.flags.writeable) == ((3, 1, 2), False)
    total = gridbuf._core._run_kernel(lambda a: float(a.sum()), array)
    assert total == 24.0
    with pytest.raises(ZeroDivisionError):
        gridbuf._core._run_kernel(lambda a: 1 / 0, array)
    with pytest.raises(TypeError):
        gridbuf._core._run_kernel()
    target = storage._write_array("device")
    gridbuf._core._run_kernel(lambda a: a.fill(9), target)
    storage._written("device")
    assert storage[1, 1] == 9
    with gridbuf.testing.emulated_device(False), pytest.raises(gridbuf.DeviceUnavailableError):
        gridbuf._core._run_kernel(lambda: None)


def test_arrays_of_a_side_are_current_and_no_exports() -> None:
    storage = gs.full((2, 3), 4, "f4", device="gpu")
    assert storage._current_sides() == ("host",)
    storage._read_array("device")
    assert storage._current_sides() == ("host", "device")
    array = storage._write_array("host")
    array[...] = 5
    storage._written("host")
    assert storage._current_sides() == ("host",)
    del array
    storage.synchronize()
    assert storage._current_sides() == ("host", "device")
    for wrong in ("gpu", None, 3):
        with pytest.raises(ValueError, match="side"):
            storage._read_array(wrong)
    with pytest.raises(gridbuf.GTNoSuchBufferError):
        gs.zeros(3)._read_array("device")
    with pytest.raises(gridbuf.GTNoSuchBufferError):
        gs.zeros(3)._write_array("device")


# ---- Kernels of calls that failed. ----


def test_a_kernel_does_not_outlive_a_call_that_failed() -> None:
    storage = gs.ones((4, 5), device="gpu")
    storage.host_to_device()
    with testing.failing("synchronize"), pytest.raises(RuntimeError, match="injected"):
        np.add(storage, storage, out=storage)
    testing.synchronize()  # Before, it ran the kernel, which referred to the stack of that call.
    assert float(storage[0, 0]) == 1.0


def test_a_stencil_that_computes_with_another_device_storage_leaves_no_kernel() -> None:
    field, other = gs.ones((4, 5, 6), device="gpu"), gs.ones((4, 5, 6), device="gpu")
    other.host_to_device()

    @gridbuf.stencil(backend="gt:gpu", writes="out")
    def computes(out: gridbuf.Field[np.float64], *, origin: object, domain: object) -> None:
        out[...] = np.asarray((other + other).to_cupy())

    with pytest.raises(RuntimeError, match="kernel"):
        computes(field)
    testing.synchronize()
    assert float((other + other)[0, 0, 0]) == 2.0


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_masked_casts_into_empty_parts_of_a_device(managed: str | None) -> None:
    target = gs.zeros((4, 5), device="gpu", dtype=np.float32, managed=managed)
    source = gs.ones((4, 5), device="gpu", managed=managed)
    mask = gs.ones((4, 5), device="gpu", dtype=bool, managed=managed)
    for array in (target, source, mask):
        array.host_to_device(force=True)
        array.set_device_modified()
    for part in (np.s_[:0], np.s_[2:2], np.s_[4:], np.s_[:, :0], np.s_[:, 5:]):
        gridbuf.copyto(target[part], source[part], casting="unsafe", where=mask[part])
    testing.synchronize()
