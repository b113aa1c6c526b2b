"""Lifetimes, and the moment of each release: exports, threads, the end of the interpreter, leaks."""

from __future__ import annotations

import ctypes
import gc
import itertools
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gridbuf
import gridbuf.memory
import numpy as np
import pytest
from abi import Managed, consumed, opened
from cycles import grown_bytes

SANITIZED = "libclang_rt" in os.environ.get("LD_PRELOAD", "")
BIG = (5 << 20,)  # doubles: 40 MiB, with private pages


@pytest.fixture(autouse=True)
def _freed_pages_go_back() -> Iterator[None]:
    """Without the cache of freed mappings, memory that is freed is memory that is gone."""
    gridbuf.memory.configure(cache_limit_bytes=0)
    yield
    gridbuf.memory.configure(cache_limit_bytes="auto")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE


# ---- Exports outlive the Buffer. ----

EXPORTS: dict[str, Callable[[gridbuf.Buffer], Any]] = {
    "memoryview": memoryview,
    "to_numpy": lambda buffer: buffer.to_numpy(),
    "asarray": np.asarray,
    "from_dlpack": np.from_dlpack,
    "view": lambda buffer: buffer[...],
    "capsule": lambda buffer: buffer.__dlpack__(),
    "versioned capsule": lambda buffer: buffer.__dlpack__(max_version=(1, 0)),
}


def read(export: Any) -> list[float]:
    if type(export).__name__ == "PyCapsule":
        tensor = opened(export).tensor
        return list((ctypes.c_double * 3).from_address(tensor.data))
    return np.asarray(export).tolist()


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
@pytest.mark.parametrize("name", EXPORTS)
def test_survivors_are_readable_in_any_order_of_dropping(name: str, order: tuple[int, ...]) -> None:
    buffer = gridbuf.full((3,), 2.5).base
    held: list[Any] = [buffer, EXPORTS[name](buffer), EXPORTS[name](buffer)]
    del buffer
    for position in order:
        held[position] = None
        gc.collect()
        noise = [gridbuf.zeros((3,)) for _ in range(20)]
        for export in held[1:]:
            assert export is None or read(export) == [2.5] * 3
        del noise


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("dropped_first", ["buffer", "export"])
def test_memory_is_freed_when_the_last_holder_goes(name: str, dropped_first: str) -> None:
    if SANITIZED:
        pytest.skip("the sanitizer keeps freed memory in quarantine")
    gc.collect()
    before = resident_bytes()
    buffer = gridbuf.ones(BIG).base
    export = EXPORTS[name](buffer)
    assert resident_bytes() - before > 10 * 2**20
    if dropped_first == "buffer":
        del buffer
        assert resident_bytes() - before > 10 * 2**20
        del export
    else:
        del export
        assert resident_bytes() - before > 10 * 2**20
        del buffer
    assert resident_bytes() - before < 8 * 2**20


# ---- DLPack's deleters. ----


def test_a_capsule_is_consumed_once() -> None:
    class Exporter:
        def __init__(self, capsule: Any) -> None:
            self.capsule = capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **_: Any) -> Any:
            return self.capsule

    exporter = Exporter(gridbuf.ones((3,)).base.__dlpack__())
    first = np.from_dlpack(exporter)
    with pytest.raises((ValueError, BufferError, RuntimeError)):
        np.from_dlpack(exporter)
    assert first.tolist() == [1.0] * 3
    del exporter
    gc.collect()
    assert first.tolist() == [1.0] * 3


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_deleter_runs_on_a_foreign_thread_without_the_interpreter(max_version: Any) -> None:
    array = gridbuf.ones((3,))
    managed = consumed(array.base.__dlpack__(max_version=max_version))
    address = ctypes.addressof(managed)
    deleter = ctypes.cast(managed.deleter, ctypes.c_void_p).value
    del array
    # A plain C thread: pthread_create with the deleter as its function. It has no thread state and no GIL.
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert libc.pthread_create(ctypes.byref(thread), None, deleter, address) == 0
    assert libc.pthread_join(thread, None) == 0


def test_the_deleter_of_a_consumed_capsule_frees_the_memory() -> None:
    if SANITIZED:
        pytest.skip("the sanitizer keeps freed memory in quarantine")
    before = resident_bytes()
    managed = consumed(gridbuf.ones(BIG).base.__dlpack__())
    assert isinstance(managed, Managed)
    assert resident_bytes() - before > 10 * 2**20
    managed.deleter(ctypes.addressof(managed))
    assert resident_bytes() - before < 8 * 2**20


# ---- References and leaks. ----

LOOPS: dict[str, Callable[[], Any]] = {
    "allocate": lambda: gridbuf.allocate((3, 4)),
    "keywords": lambda: gridbuf.empty(
        (3, 4), "f4", backend="gtmc", dims="KI", aligned_index=(1, 1)
    ),
    "empty": lambda: gridbuf.empty((3, 4)),
    "full": lambda: gridbuf.full((3, 4), 2.0),
    "full array": lambda: gridbuf.full((3, 4), [1, 2, 3, 4]),
    "like": lambda: gridbuf.zeros_like(SHARED),
    "from_array": lambda: gridbuf.from_array([[1, 2], [3, 4]], "f4"),
    "record": lambda: gridbuf.zeros((2,), [("a", "i4"), ("b", "f8")]),
    "swapped dtype": lambda: gridbuf.zeros((2,), np.dtype("f8").newbyteorder()),
    "view": lambda: SHARED[1:, ::-1].T,
    "scalar": lambda: SHARED[1, 1],
    "iterate": lambda: list(SHARED),
    "memoryview": lambda: memoryview(SHARED),
    "array interface": lambda: SHARED.__array_interface__,
    "capsule": lambda: SHARED.__dlpack__(),
    "versioned": lambda: SHARED.__dlpack__(max_version=(1, 0)),
    "copied capsule": lambda: SHARED.__dlpack__(max_version=(1, 0), copy=True),
    "from_dlpack": lambda: np.from_dlpack(SHARED),
    "asarray": lambda: np.asarray(SHARED),
    "array": lambda: SHARED.__array__("f4"),
    "copy": lambda: SHARED.copy(),
    "pickle": lambda: SHARED.__reduce_ex__(5),
    "plan": lambda: SHARED.plan.draw(),
    "repr": lambda: repr(SHARED),
    "attributes": lambda: [getattr(SHARED, name) for name in ATTRIBUTES],
    "presets": gridbuf.presets,
    "get_dims": lambda: gridbuf.get_dims(SHARED, "IJ"),
    "refused": lambda: pytest.raises(BufferError, SHARED.T[::-1].__dlpack__, dl_device=(2, 0)),
    "bad shape": lambda: pytest.raises(ValueError, gridbuf.empty, (3, -1)),
    "bad kind": lambda: pytest.raises(TypeError, gridbuf.empty, (3, "x")),
    "bad keyword": lambda: pytest.raises(TypeError, gridbuf.empty, (3,), halo=1),
    "bad preset": lambda: pytest.raises(ValueError, gridbuf.empty, (3,), backend="none such"),
    "bad index": lambda: pytest.raises(IndexError, SHARED.__getitem__, 5),
    "no memory": lambda: pytest.raises(MemoryError, gridbuf.empty, (2**55,)),
}
SHARED = gridbuf.ones((3, 4), alignment_size=64).base
ATTRIBUTES = [name for name in dir(SHARED) if not name.startswith("__")]


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_leaves_nothing_behind(name: str) -> None:
    action = LOOPS[name]
    watched = [SHARED, SHARED.dtype, np.dtype("f4"), np.dtype("f8"), gridbuf.Buffer, None, True]
    for _ in range(400):
        action()
    gc.collect()
    counts = [sys.getrefcount(item) for item in watched]
    blocks, memory = sys.getallocatedblocks(), resident_bytes()
    for _ in range(4000):
        action()
    gc.collect()
    # One block a turn would be 4000; the cache of dtypes, which holds up to 256 of 11 blocks each, may be fuller than before.
    assert sys.getallocatedblocks() - blocks < 3000
    assert [
        abs(now - before) < 100
        for now, before in zip((sys.getrefcount(item) for item in watched), counts, strict=True)
    ] == [True] * len(watched)
    if not SANITIZED:
        assert resident_bytes() - memory < 4 * 2**20


def test_cycles_of_exports_and_imports_leave_memory_flat() -> None:
    if SANITIZED:
        pytest.skip("the sanitizer keeps freed memory in quarantine")
    # A leak of one small block a cycle would be 1 MiB or more. The long run: python cycles.py 1000000.
    assert grown_bytes(20_000) < 1 << 20


def test_dtypes_made_on_the_fly_do_not_pile_up() -> None:
    def allocate_many() -> None:
        for count in range(1, 1500):
            gridbuf.zeros((1,), [("a", "i4", (count,))])

    allocate_many()
    gc.collect()
    blocks = sys.getallocatedblocks()
    allocate_many()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 3000


# ---- Threads. ----


def test_buffers_are_made_shared_and_freed_by_many_threads() -> None:
    errors: list[BaseException] = []
    passed: list[Any] = []

    def work(seed: int) -> None:
        try:
            for n in range(200):
                array = gridbuf.full((n % 7 + 1, 5), float(seed), alignment_size=64)
                capsule = array.base.__dlpack__(max_version=(1, 0))
                view = array.base[::-1]
                passed.append((array if n % 2 else view, capsule, float(seed)))
                if len(passed) > 20:
                    other, _, value = passed.pop(0)
                    assert (np.asarray(other) == value).all()
        except BaseException as error:  # noqa: BLE001 (reported by the main thread)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_long_fills_and_copies_let_other_threads_run() -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            done.wait(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    field = gridbuf.full((64, 1024, 1024), 1.0)  # 512 MiB: several milliseconds at least
    before = ticks
    copied = field.base.copy()
    during = ticks - before
    done.set()
    thread.join()
    assert copied[-1, -1, -1] == 1.0
    assert during > 3


# ---- The end of the interpreter. ----

ENDINGS = {
    "return": "",
    "sys.exit": "import sys; sys.exit(0)",
    "exception": "import sys; sys.excepthook = lambda *_: None; raise SystemExit(0)",
    "os._exit": "import os; os._exit(0)",
    "cycle": "box = []; box.append((box, buffer, capsule)); del buffer, capsule",
    "atexit": "import atexit; atexit.register(lambda: buffer.to_numpy().sum())",
    "thread": "import threading; threading.Thread(target=lambda: capsule and view.sum()).start()",
    "module attribute": "gridbuf.kept = (buffer, capsule, view, view2); del buffer, capsule, view, view2",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends_with_live_exports(ending: str) -> None:
    code = (
        "import ctypes, numpy as np, gridbuf\n"
        "buffer = gridbuf.ones((300, 300), alignment_size=64).base\n"
        "capsule = buffer.__dlpack__()\n"
        "versioned = buffer.__dlpack__(max_version=(1, 0))\n"
        "view = np.from_dlpack(buffer); view2 = np.asarray(buffer); memory = memoryview(buffer)\n"
        "plan = buffer.plan\n"
        "struct = buffer.__array_struct__; foreign = gridbuf.as_buffer(np.ones(3))\n"
        "held = foreign.__dlpack__(); seen = np.asarray(foreign[1:])\n"
        "import gridbuf.testing; gridbuf.testing.emulated_device()\n"
        "managed = buffer.copy(memory='managed'); both = managed.__gt_data_interface__\n"
        "device = buffer.copy(memory='device'); sent = device.__dlpack__(); host = managed.to_numpy()\n"
        f"{ENDINGS[ending]}\n"
    )
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_can_use_and_free_what_it_inherited() -> None:
    code = (
        "import os, warnings, gridbuf\n"
        "warnings.simplefilter('ignore')\n"
        "buffer = gridbuf.ones((100, 100)).base\n"
        "capsule = buffer.__dlpack__()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    total = buffer.to_numpy().sum() + gridbuf.ones((3,)).sum()\n"
        "    del buffer, capsule\n"
        "    os._exit(0 if total == 10003 else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_subinterpreters_are_refused_not_crashed() -> None:
    code = (
        "import gridbuf\n"
        "try:\n    import _xxsubinterpreters as sub\n"
        "except ImportError:\n    import _interpreters as sub\n"
        "identity = sub.create()\n"
        "try:\n    sub.run_string(identity, 'import gridbuf')\n"
        "except Exception:\n    pass\n"
        "assert gridbuf.ones((3,)).sum() == 3\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
