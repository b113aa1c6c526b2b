"""Arrays that NumPy makes with `gridbuf.memory.numpy_allocator`."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import random
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gridbuf
import numpy as np
import pytest
from gridbuf import memory
from gridbuf.memory import numpy_allocator
from numpy._core.multiarray import get_handler_name

MIB = 1 << 20
LARGE = (512, 1024)  # 4 MiB of float64
PYTHONPATH = ":".join(path for path in sys.path if path)


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Every test finds a cache that is on, whatever the build, and leaves what it found."""
    before, handler = memory.options(), get_handler_name()
    memory.configure(cache_limit_bytes=256 * MIB)
    yield
    gc.collect()
    assert get_handler_name() == handler
    memory.configure(**before)
    memory.trim()


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *arguments],
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_code(code: str, **environment: str) -> None:
    start = "import gridbuf, numpy as np\nfrom gridbuf import memory\nfrom gridbuf.memory import numpy_allocator\nfrom numpy._core.multiarray import get_handler_name\n"
    done = run_python("-W", "always", "-c", start + code, **environment)
    assert (done.returncode, done.stderr) == (0, "")


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def is_ours(array: np.ndarray[Any, Any]) -> bool:
    while array.base is not None:
        array = array.base
    return bool(get_handler_name(array) == "gridbuf")


# ---- Where arrays begin. ----

SOURCE = np.random.default_rng(1).random((40, 50))

CREATIONS: dict[str, Callable[[int], np.ndarray[Any, Any]]] = {
    "empty": lambda n: np.empty(n),
    "zeros": lambda n: np.zeros(n),
    "zeros of bytes": lambda n: np.zeros(n, np.uint8),
    "full": lambda n: np.full(n, 3.0),
    "arange": lambda n: np.arange(n),
    "linspace": lambda n: np.linspace(0, 1, n + 1),
    "arithmetic": lambda n: np.ones(n) * 2 + 1,
    "comparison": lambda n: np.ones(n) > 0,
    "cast": lambda n: np.ones(n).astype(np.float32),
    "sort": lambda n: np.sort(np.arange(n)[::-1]),
    "index": lambda n: np.arange(n + 1)[np.arange(n)],
    "concatenate": lambda n: np.concatenate([np.zeros(n), np.ones(3)]),
    "objects": lambda n: np.full(n, None),
    "text": lambda n: np.full(n, "text"),
    "record": lambda n: np.zeros(n, "i4,f8"),
    "iterator": lambda n: np.fromiter(range(n), np.int32),
    "Fortran order": lambda n: np.array(SOURCE, order="F"),
    "dot": lambda n: SOURCE @ SOURCE.T,
    "no dimension": lambda n: np.array(1.5),
    "no element": lambda n: np.empty((n, 0)),
}


@pytest.mark.parametrize("alignment", [16, 64, 256, 4096, 1 << 20])
@pytest.mark.parametrize("name", CREATIONS)
def test_arrays_begin_at_the_alignment(name: str, alignment: int) -> None:
    with numpy_allocator(alignment):
        for n in (1, 3, 17, 1000, 70_000, 600_000):
            array = CREATIONS[name](n)
            assert is_ours(array)
            whole = array if array.base is None else array.base
            assert address(whole) % alignment == 0
        expected = CREATIONS[name](600)
    if "empty" not in name and expected.dtype != object:
        assert expected.tobytes() == CREATIONS[name](600).tobytes()


@pytest.mark.parametrize("alignment", [0, -64, 8, 24, 100, 1 << 21, 1 << 70])
def test_other_alignments_are_refused(alignment: int) -> None:
    with pytest.raises((ValueError, OverflowError), match="alignment"):
        numpy_allocator(alignment)


def test_values_of_a_wrong_kind_are_refused() -> None:
    for arguments in (("64",), (64.0,), (64, 1), (64, True, None)):
        with pytest.raises(TypeError):
            numpy_allocator(*arguments)  # type: ignore[arg-type]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def create_at_random(count: int) -> None:
    """Arrays of random kinds and lengths, some of which live for a while; memory in use stays bounded."""
    draw = random.Random(count)
    alive: list[np.ndarray[Any, Any] | None] = [None] * 64
    half = 0
    names = [name for name in CREATIONS if name not in ("dot", "Fortran order")]
    make = [CREATIONS[name] for name in names]
    with numpy_allocator():
        for i in range(count):
            n = draw.randrange(1 << draw.randrange(1, 13))
            if draw.randrange(2000) == 0:
                array = np.zeros(LARGE) if i % 2 else np.empty(LARGE)
            else:
                array = draw.choice(make)(n)
            whole = array if array.base is None else array.base
            assert address(whole) % 64 == 0
            alive[draw.randrange(64)] = array
            if draw.randrange(20) == 0 and array.base is None and array.ndim == 1:
                array.resize(draw.randrange(1, 2 * n + 2), refcheck=False)
                assert address(array) % 64 == 0
            if i == count // 2:
                half = resident_bytes()
    grown = resident_bytes() - half
    # The sanitizer keeps freed memory.
    assert grown < 24 * MIB or "ASAN_OPTIONS" in os.environ, f"{grown} bytes more after the half"


def test_random_creations() -> None:
    create_at_random(20_000)


@pytest.mark.thorough
def test_a_million_random_creations() -> None:
    create_at_random(1_000_000)


# ---- Large blocks. ----


def test_large_arrays_are_counted_and_kept() -> None:
    memory.trim()
    before = memory.statistics()
    with numpy_allocator():
        array = np.ones(LARGE)
        assert memory.statistics()["live_blocks"] == before["live_blocks"] + 1
        assert memory.statistics()["live_bytes"] >= before["live_bytes"] + array.nbytes
        del array
        after = memory.statistics()
        assert (after["live_blocks"], after["cached_blocks"]) == (before["live_blocks"], 1)
        assert gridbuf.alloc_info(np.empty(LARGE))["from_cache"]
        # One cache for both.
        assert gridbuf.alloc_info(gridbuf.empty(LARGE))["from_cache"]


def test_temporary_arrays_take_no_new_pages() -> None:
    a, b = np.ones((2, *LARGE))
    with numpy_allocator():
        for _ in range(5):
            c = (a * 2 + b * 3 - a) / b
            assert (c == 4.0).all()
            misses = memory.statistics()["misses"]
        assert memory.statistics()["misses"] == misses


def test_the_limit_holds_for_both() -> None:
    memory.trim()
    used = memory.statistics()["live_bytes"]
    memory.configure(limit_bytes=used + 20 * MIB)
    with numpy_allocator():
        first = np.zeros((12, MIB), np.uint8)
        with pytest.raises(MemoryError):
            np.zeros((12, MIB), np.uint8)
        with pytest.raises(MemoryError):
            gridbuf.zeros((12, MIB), np.uint8)
        with pytest.raises(MemoryError):
            first.resize((24, MIB), refcheck=False)
        assert first.shape == (12, MIB)
        del first
        gridbuf.zeros((12, MIB), np.uint8)


def test_what_is_not_kept_goes_back() -> None:
    memory.trim()
    with numpy_allocator(keep=False):
        np.ones(LARGE)
    assert memory.statistics()["cached_blocks"] == 0


def test_small_pages() -> None:
    with numpy_allocator():
        np.ones(LARGE)
    with numpy_allocator(huge_pages=False):
        array = np.ones(LARGE)
        assert gridbuf.alloc_info(array)["pages"] == "small"
        assert gridbuf.alloc_info(array)["huge_page_bytes"] == 0


def test_the_facts_of_an_array() -> None:
    with numpy_allocator(128):
        large, small = np.zeros(LARGE), np.zeros(3)
    for array in (large, large[3:, ::2], large.T, memoryview(large)):
        info = gridbuf.alloc_info(array)
        assert (info["resource"], info["device"]) == ("host", "host")
        assert info["alignment_size"] == 128
        assert info["aligned_index"] is None
        assert info["address"] == address(large)
        assert info["total_bytes"] == large.nbytes
        assert info["allocation_bytes"] is not None
        assert large.nbytes <= info["allocation_bytes"] <= large.nbytes + 2 * MIB + 128 * 1024 + 256
        assert info["note"] == ""
    for array in (large, small):
        buffer = gridbuf.as_buffer(array)
        assert gridbuf.alloc_info(buffer) == gridbuf.alloc_info(array)
        assert gridbuf.alloc_info(buffer.to_numpy()) == gridbuf.alloc_info(array)
    info = gridbuf.alloc_info(small)
    assert (info["pages"], info["from_cache"], info["total_bytes"]) == ("shared", False, 24)
    assert gridbuf.alloc_info(np.zeros(3))["resource"] is None


def test_owners_are_found_through_views_and_buffers() -> None:
    def all_views(array: np.ndarray[Any, Any]) -> list[Any]:
        buffer = gridbuf.as_buffer(array)
        views = [array, array[1:], array.T[::2], array.view(np.uint8), memoryview(array)]
        views += [buffer, buffer[1], buffer.T, buffer.to_numpy(), memoryview(buffer)]
        return [*views, gridbuf.as_buffer(array[1:]), gridbuf.as_buffer(buffer)]

    with numpy_allocator():
        ours = [np.zeros(shape) for shape in ((3, 4), LARGE)]
    for array in (*ours, gridbuf.zeros((3, 4)), gridbuf.zeros(LARGE)):
        for view in all_views(array):
            assert gridbuf.owns(view), view
            assert gridbuf.alloc_info(view)["resource"] == "host"
            assert gridbuf.alloc_info(view)["note"] == ""
    for view in (*all_views(np.zeros((3, 4))), gridbuf.as_buffer(bytearray(8)), b"8", 1, None):
        assert not gridbuf.owns(view)


def test_large_zeros_stay_lazy() -> None:
    shape = (64, MIB)
    with numpy_allocator():
        for _ in range(3):  # fresh pages first, then kept ones
            zeros = np.zeros(shape, np.uint8)
            resident = gridbuf.alloc_info(zeros)["resident_bytes"]
            assert resident is not None
            assert resident <= 4 * MIB
            assert not zeros[::7, ::4096].any()
            zeros[...] = 1
            del zeros
        assert memory.statistics()["cached_bytes"] < 2 * 70 * MIB


@pytest.mark.parametrize("alignment", [16, 64, 1 << 20])
@pytest.mark.parametrize("huge_pages", [True, False])
def test_growing_arrays_are_not_copied(alignment: int, huge_pages: bool) -> None:
    """A copy at each step would move half a terabyte."""
    with numpy_allocator(alignment, huge_pages=huge_pages):
        array = np.ones(64 * MIB, np.uint8)
    before = memory.statistics()
    for _ in range(4000):
        array.resize(array.size + 1024, refcheck=False)
        assert address(array) % alignment == 0
    after = memory.statistics()
    assert (after["misses"], after["live_blocks"]) == (before["misses"], before["live_blocks"])
    assert array.nbytes <= after["live_bytes"] <= before["live_bytes"] + 6 * MIB
    assert (array[: 64 * MIB] == 1).all()
    assert not array[64 * MIB :].any()
    array.resize(5 * MIB, refcheck=False)
    assert memory.statistics()["live_bytes"] < before["live_bytes"] - 50 * MIB
    assert (array == 1).all()


def test_text_of_any_length_is_read(tmp_path: Path) -> None:
    """NumPy does not know how many numbers come, and resizes the array."""
    path = tmp_path / "numbers.txt"
    path.write_text("1 2 3 4 " * 100_000)
    with numpy_allocator(256):
        found = np.fromfile(path, sep=" ")
    assert is_ours(found) and address(found) % 256 == 0
    assert (found.reshape(-1, 4) == [1, 2, 3, 4]).all()


def test_what_is_kept_follows_what_is_used() -> None:
    """Random lengths, a few alive: the memory of the process stays near the arrays', and goes back in the end."""
    memory.configure(cache_limit_bytes="auto")
    if memory.statistics()["cache_limit_bytes"] == 0 and "ASAN_OPTIONS" in os.environ:
        pytest.skip("with the sanitizer nothing is kept")
    memory.trim()
    start, draw = resident_bytes(), random.Random(7)
    arrays: list[np.ndarray[Any, Any] | None] = [None] * 8
    peak = most = 0
    with numpy_allocator():
        for _ in range(200):
            place = draw.randrange(8)
            arrays[place] = None
            arrays[place] = np.ones(draw.randrange(1024, 32 * MIB), np.uint8)
            peak = max(peak, sum(array.nbytes for array in arrays if array is not None))
            most = max(most, resident_bytes() - start)
            found = memory.statistics()
            assert found["cached_bytes"] <= found["cache_limit_bytes"]
    assert most <= 1.25 * peak + 16 * MIB
    arrays.clear()
    assert resident_bytes() - start <= peak / 3 + 16 * MIB


def test_poison_fills_what_is_fresh() -> None:
    with numpy_allocator():
        np.ones(100, np.uint8)
        memory.configure(poison=True)
        for count in (100, 4 * MIB):
            assert (np.empty(count, np.uint8) == 0xCB).all()
            assert not np.zeros(count, np.uint8).any()


# ---- Arrays and handlers. ----


def test_arrays_outlive_the_block_and_its_successors() -> None:
    made: list[np.ndarray[Any, Any]] = []
    expected = []
    for allocator in (numpy_allocator(), numpy_allocator(4096, False, False), numpy_allocator(16)):
        with allocator:
            for count in (5, 3000, 400_000):
                made.append(np.arange(count))
                expected.append(count)
    made.append(np.arange(7))
    expected.append(7)
    with numpy_allocator(256):
        for array, count in zip(made, expected):
            before = get_handler_name(array)
            array.resize(count * 3, refcheck=False)
            assert get_handler_name(array) == before
            assert (array[:count] == np.arange(count)).all()
            assert not array[count:].any()
            array.resize(3, refcheck=False)
            assert (array == [0, 1, 2]).all()
        made.clear()
    assert get_handler_name() == "default_allocator"


def test_an_exception_in_the_middle() -> None:
    live = memory.statistics()["live_blocks"]
    with pytest.raises(ZeroDivisionError), numpy_allocator():
        array = np.ones(LARGE)
        assert is_ours(array)
        array.shape[0] // 0
    assert get_handler_name() == "default_allocator"
    del array
    with pytest.raises(ZeroDivisionError), numpy_allocator():
        np.fromiter((1 / (499_999 - i) for i in range(500_000)), float)
    gc.collect()
    assert memory.statistics()["live_blocks"] == live


def test_blocks_nest() -> None:
    outer, inner = numpy_allocator(64), numpy_allocator(4096)
    with outer, inner, outer:
        with inner:
            assert gridbuf.alloc_info(np.ones(3))["alignment_size"] == 4096
        assert gridbuf.alloc_info(np.ones(3))["alignment_size"] == 64
    assert get_handler_name() == "default_allocator"


@numpy_allocator()
def double(array: np.ndarray[Any, Any], times: int = 1) -> np.ndarray[Any, Any]:
    """Twice the array."""
    return array if times == 0 else double(array * 2, times - 1)


@numpy_allocator()
async def double_later(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    await asyncio.sleep(0)
    return array * 2


def test_decorated_functions() -> None:
    assert is_ours(double(np.ones(3), times=3))
    assert (double.__name__, double.__doc__) == ("double", "Twice the array.")
    assert is_ours(asyncio.run(double_later(np.ones(3))))
    assert get_handler_name() == "default_allocator"


def test_generators_are_refused() -> None:
    with pytest.raises(TypeError, match="is a generator"):

        @numpy_allocator()
        def numbers() -> Iterator[int]:
            yield 1


def test_the_memory_is_traced() -> None:
    tracemalloc.start()
    try:
        with numpy_allocator():
            array = np.ones(LARGE)
            domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
            traced = tracemalloc.take_snapshot().filter_traces([domain]).statistics("lineno")
            assert sum(one.size for one in traced) == array.nbytes
    finally:
        tracemalloc.stop()


# ---- Contexts, threads and processes. ----


def test_tasks_have_the_allocator_of_their_creator() -> None:
    async def name() -> str:
        await asyncio.sleep(0)
        return str(get_handler_name())

    async def change() -> str:
        with numpy_allocator():
            await asyncio.sleep(0)
            return str(get_handler_name())

    async def main() -> list[str]:
        changed, before = asyncio.create_task(change()), asyncio.create_task(name())
        with numpy_allocator():
            inherited = asyncio.create_task(name())
        return await asyncio.gather(changed, before, inherited)

    assert asyncio.run(main()) == ["gridbuf", "default_allocator", "gridbuf"]


def test_a_context_keeps_its_allocator() -> None:
    with numpy_allocator():
        context = contextvars.copy_context()
    assert get_handler_name() == "default_allocator"
    assert context.run(get_handler_name) == "gridbuf"


def test_a_new_thread_begins_with_the_allocator_of_its_context() -> None:
    names: list[str] = []
    with numpy_allocator():
        thread = threading.Thread(target=lambda: names.append(get_handler_name()))
        thread.start()
        thread.join()
    # Python 3.14 can pass the context on; its free-threaded build does.
    inherits = getattr(sys.flags, "thread_inherit_context", False)
    assert names == ["gridbuf" if inherits else "default_allocator"]


def test_threads_make_and_free_arrays_of_each_other() -> None:
    live = memory.statistics()["live_blocks"]
    made: list[list[np.ndarray[Any, Any]]] = [[] for _ in range(8)]
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        try:
            draw = random.Random(number)
            for turn in range(30):
                with numpy_allocator(draw.choice([16, 64, 4096])):
                    for _ in range(10):
                        count = draw.choice([3, 500, 20_000, 300_000])
                        made[number].append(np.full(count, number))
                barrier.wait()
                other = (number + turn) % 8
                assert all((array == other).all() for array in made[other])
                barrier.wait()
                made[other].clear()
                barrier.wait()
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert memory.statistics()["live_blocks"] == live


def test_a_child_after_fork_uses_and_frees_arrays() -> None:
    run_code("""
import os
numpy_allocator().install()
arrays = [np.full(count, 7) for count in (3, 5000, 600_000)]
del arrays[1:2]
child = os.fork()
total = sum(array.sum() for array in arrays)
assert total == 7 * 600_003
arrays[0].resize(500_000, refcheck=False)
arrays = [array * 2 for array in arrays]
assert get_handler_name(arrays[1]) == "gridbuf"
del arrays
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")


def test_arrays_live_to_the_end_of_the_interpreter() -> None:
    run_code("""
import atexit, sys, threading, time
numpy_allocator().install()
small, large = np.ones(3), np.ones((512, 1024))
sys.keep = np.ones((512, 1024))
class Last:
    def __del__(self, make=np.ones):
        make(5); make((512, 1024))
sys.last = Last()
atexit.register(lambda: np.ones((512, 1024)) + large)
def work():
    while True:
        np.ones((512, 1024)) + 1
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""")


# ---- Whole programs. ----


def test_install_is_for_new_threads_too() -> None:
    run_code("""
import threading
from concurrent.futures import ThreadPoolExecutor
numpy_allocator().install()
with ThreadPoolExecutor(4) as pool:
    assert {*pool.map(lambda _: get_handler_name(), range(20))} == {"gridbuf"}
    numpy_allocator(4096).install()
    made = []
    thread = threading.Thread(target=lambda: made.append(np.ones(3)))
    thread.start()
    thread.join()
assert memory.alloc_info(made[0])["alignment_size"] == 4096
assert memory.alloc_info(np.ones(3))["alignment_size"] == 4096
with numpy_allocator(128):
    assert memory.alloc_info(np.ones(3))["alignment_size"] == 128
assert memory.alloc_info(np.ones(3))["alignment_size"] == 4096
""")


def test_install_survives_what_programs_do_to_threading() -> None:
    run_code("""
import sys, threading
from concurrent.futures import ThreadPoolExecutor
names = []
note = lambda *_: names.append(get_handler_name())
def new_threads():
    class Own(threading.Thread):
        def run(self):
            note()
    made = [threading.Thread(target=note), Own(), threading.Timer(0, note), threading.Thread()]
    made[3].run = note
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()
    assert "run" not in vars(made[0]) and made[3].run is note
    with ThreadPoolExecutor(1) as pool:
        pool.submit(note).result()
    found = [*names]
    names.clear()
    return {*found}, len(found)
numpy_allocator().install()
assert new_threads() == ({"gridbuf"}, 5)
calls = []
for profile in (lambda *event: calls.append(event), None):
    threading.setprofile(profile)
    threading.settrace(profile)
    assert new_threads() == ({"gridbuf"}, 5)
assert calls and sys.getprofile() is None
thread = threading.Thread(target=note)
thread.start()
thread.join()
try:
    thread.start()
except RuntimeError:
    assert "run" not in vars(thread)
else:
    raise AssertionError
""")


PROGRAM = """
import multiprocessing, sys, threading
import numpy as np
from numpy._core.multiarray import get_handler_name

def name():
    return get_handler_name(np.ones(3))

if __name__ == "__main__":
    names = [name()]
    thread = threading.Thread(target=lambda: names.append(name()))
    thread.start()
    thread.join()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        names.append(pool.apply(name))
    import neighbour
    print(names, sys.argv[1:], neighbour.__name__)
    sys.exit(5)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_a_program_that_does_not_know_gridbuf(program: Path) -> None:
    expected = f"{['gridbuf'] * 3} ['--flag', '-m', 'x'] neighbour\n"
    run = ("-W", "error::RuntimeWarning", "-m", "gridbuf.memory", "run")
    done = run_python(*run, str(program), "--flag", "-m", "x")
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 5)
    path = {"PYTHONPATH": f"{PYTHONPATH}:{program.parent}"}
    done = run_python(*run, "-m", "program", "--flag", "-m", "x", **path)
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 5)


ARGUMENTS = """
import sys
print(sys.argv, __file__, __name__, __spec__, sys.path[0], sys.modules["__main__"].__file__)
"""


@pytest.mark.parametrize(
    "arguments",
    [[], ["--"], ["--", "x"], ["x", "--", "-m"], ["-h"], ["--help", "--"], ["-m", "run"]],
)
def test_a_program_gets_its_arguments_as_python_gives_them(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "directory").mkdir()
    for name in ("script.py", "directory/__main__.py"):
        (tmp_path / name).write_text(ARGUMENTS)
    run = ("-m", "gridbuf.memory", "run")
    for script in ("script.py", "./script.py", str(tmp_path / "script.py")):
        expected = run_python(script, *arguments)
        assert (expected.returncode, expected.stderr) == (0, "")
        found = run_python(*run, script, *arguments)
        assert (found.stdout, found.stderr) == (expected.stdout, "")
    found = run_python(*run, "directory", *arguments)
    assert str(arguments)[1:-1] in found.stdout
    assert f"{tmp_path}/directory/__main__.py" in found.stdout
    found = run_python(*run, "-m", "script", *arguments, PYTHONPATH=f"{PYTHONPATH}:{tmp_path}")
    assert str(arguments)[1:-1] in found.stdout


def test_a_program_that_is_missing_is_an_error() -> None:
    done = run_python("-m", "gridbuf.memory", "run", "nowhere.py")
    assert done.returncode == 2
    assert "there is no file nowhere.py" in done.stderr


def test_the_variable_installs_the_allocator() -> None:
    run_code('assert get_handler_name() == "gridbuf"', GRIDBUF_NUMPY_ALLOCATOR="1")
    run_code('assert get_handler_name() == "default_allocator"', GRIDBUF_NUMPY_ALLOCATOR="0")
    done = run_python("-c", "import gridbuf", GRIDBUF_NUMPY_ALLOCATOR="yes")
    assert "GRIDBUF_NUMPY_ALLOCATOR is 'yes' and was ignored: it must be 0 or 1" in done.stderr


def failures_of_numpy(*start: str) -> tuple[set[str], str]:
    """The tests of the installed NumPy that fail, and pytest's summary."""
    packages = [f"numpy.{name}" for name in ("_core", "lib", "ma", "linalg")]
    done = subprocess.run(
        [
            sys.executable,
            *start,
            "-m",
            "pytest",
            "--pyargs",
            *packages,
            "-q",
            "-m",
            "not slow",
            "-rfE",
        ]
        + ["-p", "no:cacheprovider", "-p", "no:randomly", "-W", "ignore"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )
    lines = done.stdout.splitlines()
    assert done.returncode in (0, 1), done.stdout + done.stderr
    failed = {line.partition(" - ")[0] for line in lines if line.startswith(("FAILED", "ERROR"))}
    return failed, lines[-1]


@pytest.mark.thorough
def test_numpys_own_tests_pass_as_without() -> None:
    expected, summary = failures_of_numpy()
    assert int(summary.split(" passed")[0].split()[-1]) > 20_000, summary
    found, with_gridbuf = failures_of_numpy("-m", "gridbuf.memory", "run")
    assert found <= expected
    assert with_gridbuf.split(" passed")[0].split()[-1] == summary.split(" passed")[0].split()[-1]
