"""Host memory as users see it: facts, figures, settings, threads, limits, forks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import gridbuf
import numpy as np
import pytest
from gridbuf import memory

MIB = 1 << 20
LARGE = (512, 1024)  # 4 MiB of float64
PYTHONPATH = ":".join(path for path in sys.path if path)


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Every test finds a cache that is on, whatever the build, and leaves what it found."""
    before, threads = memory.options(), gridbuf.get_num_threads()
    memory.configure(cache_limit_bytes=256 * MIB)
    yield
    gc.collect()
    memory.configure(**before)
    gridbuf.set_num_threads(threads)
    memory.trim()


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


# ---- Facts. ----


def test_the_facts_of_a_large_array() -> None:
    memory.trim()
    array = gridbuf.zeros(LARGE, alignment_size=128, aligned_index=(0, 3))
    info = gridbuf.alloc_info(array)
    assert info["resource"] == "host"
    assert info["device"] == "host"
    assert info["pages"] in ("huge", "small")
    assert info["from_cache"] is False
    assert info["address"] == array.ctypes.data
    assert info["total_bytes"] == array.base.plan.total_bytes
    assert info["alignment_size"] == 128
    assert info["aligned_index"] == (0, 3)
    assert info["stagger_bytes"] is not None
    assert 0 <= info["stagger_bytes"] < 128 * 1024
    assert info["note"] == ""
    bound = info["total_bytes"] + 128 + 2 * MIB + 128 * 1024
    assert info["total_bytes"] <= info["allocation_bytes"] <= bound


def test_the_facts_of_a_small_array() -> None:
    info = gridbuf.alloc_info(gridbuf.ones((3, 4)))
    assert (info["pages"], info["from_cache"], info["stagger_bytes"]) == ("shared", False, 0)
    # The room for the owner's count is another block where the address sanitizer watches.
    assert info["allocation_bytes"] - (3 * 4 * 8 + 63) in (0, 64)


def test_what_was_written_is_in_memory() -> None:
    array = gridbuf.empty(LARGE)
    array[...] = 1
    info = gridbuf.alloc_info(array)
    assert info["resident_bytes"] == info["total_bytes"]
    assert 0 <= info["huge_page_bytes"] <= info["total_bytes"]


def test_huge_pages_never_are_none() -> None:
    memory.trim()
    memory.configure(huge_pages="never")
    array = gridbuf.zeros(LARGE)
    array[...] = 1
    info = gridbuf.alloc_info(array)
    assert (info["pages"], info["huge_page_bytes"]) == ("small", 0)


def test_views_and_exports_have_the_facts_of_their_allocation() -> None:
    buffer = gridbuf.allocate((64, 64, 80), layout=(2, 1, 0))
    whole = gridbuf.alloc_info(buffer)
    array = buffer.to_numpy()
    for view in (buffer[3], buffer[1:, 2].T, array, array[5:, ::2], array.T[1], memoryview(buffer)):
        assert gridbuf.alloc_info(view) == whole, type(view)


def test_foreign_memory_says_what_is_not_known() -> None:
    array = np.ones(LARGE)
    info = gridbuf.alloc_info(array[::2])
    for key in ("resource", "device", "pages", "from_cache", "allocation_bytes", "alignment_size"):
        assert info[key] is None  # type: ignore[literal-required]
    assert "not gridbuf's memory" in info["note"]
    assert info["address"] == array.ctypes.data
    assert info["total_bytes"] == array.nbytes - array.strides[0]
    assert info["resident_bytes"] == info["total_bytes"]
    assert gridbuf.alloc_info(b"bytes")["total_bytes"] == 5
    adopted = gridbuf.as_buffer(array)
    assert gridbuf.alloc_info(adopted)["resource"] is None


@pytest.mark.parametrize("thing", [1, "text", None, [1, 2]])
def test_what_is_no_array_is_refused(thing: object) -> None:
    with pytest.raises(TypeError, match=r"must be an array or a gridbuf\.Buffer"):
        gridbuf.alloc_info(thing)


# ---- The cache and its figures. ----


def test_memory_is_kept_for_the_next_array() -> None:
    memory.trim()
    before = memory.statistics()
    first = gridbuf.empty(LARGE)
    first[...] = 7
    assert memory.statistics()["live_blocks"] == before["live_blocks"] + 1
    del first
    kept = memory.statistics()
    assert (kept["cached_blocks"], kept["live_blocks"]) == (1, before["live_blocks"])
    second = gridbuf.zeros(LARGE)
    assert gridbuf.alloc_info(second)["from_cache"] is True
    assert memory.statistics()["hits"] == before["hits"] + 1
    assert not second.any()


def test_every_function_but_empty_forgets_what_was_there() -> None:
    shape = (300, 1001)
    for function, wanted in (
        (gridbuf.zeros, 0.0),
        (gridbuf.ones, 1.0),
        (lambda s, **kw: gridbuf.full(s, 2.5, **kw), 2.5),
    ):
        dirty = gridbuf.empty(shape, alignment_size=64)
        dirty[...] = np.nan
        whole = dirty.base
        del dirty, whole
        array = function(shape, alignment_size=64)
        assert (array == wanted).all()
        plan = array.base.plan
        rows = np.ndarray(plan.padded_shape, buffer=_all_bytes(array), dtype=np.float64)
        assert not rows[:, shape[1] :].any(), "padding is zero"


def _all_bytes(array: np.ndarray) -> object:
    import ctypes

    length = array.base.plan.total_bytes
    return (ctypes.c_char * length).from_address(array.ctypes.data)


def test_trim_gives_kept_memory_back() -> None:
    memory.trim()
    arrays = [gridbuf.empty(LARGE) for _ in range(3)]
    arrays.clear()
    cached = memory.statistics()["cached_bytes"]
    assert cached >= 3 * 4 * MIB
    assert memory.trim(cached - 1) == cached // 3
    assert memory.trim() == cached // 3 * 2
    assert memory.statistics()["cached_bytes"] == 0
    with pytest.raises(ValueError, match="keep_bytes is -1"):
        memory.trim(-1)


def test_the_cache_can_be_switched_off() -> None:
    memory.configure(cache_limit_bytes=0)
    for _ in range(3):
        assert gridbuf.alloc_info(gridbuf.empty(LARGE))["from_cache"] is False
    assert memory.statistics()["cached_bytes"] == 0


def test_starts_are_spread_over_the_cache_sets() -> None:
    arrays = [gridbuf.empty(LARGE) for _ in range(8)]
    assert len({array.ctypes.data % 4096 for array in arrays}) == 8
    again = [gridbuf.empty(LARGE, alignment_size=256) for _ in range(8)]
    assert {array.ctypes.data % 256 for array in again} == {0}


def test_beyond_the_limit_is_a_memory_error() -> None:
    memory.trim()
    live = memory.statistics()["live_bytes"]
    memory.configure(limit_bytes=live + 10 * MIB)
    first = gridbuf.empty(LARGE)
    with pytest.raises(MemoryError, match=r"the limit is .* in use") as caught:
        gridbuf.empty((1024, 1024))
    for word in ("(1024, 1024)", "float64", "8.0 MiB", "large blocks in use"):
        assert word in str(caught.value)
    del first
    assert gridbuf.empty((1024, 1024)).shape == (1024, 1024)


# ---- Settings. ----


def test_configure_changes_only_what_is_given() -> None:
    memory.configure(cache_limit_bytes=5 * MIB, huge_pages="never")
    memory.configure(limit_bytes=1 << 40)
    assert memory.options() == {
        "cache_limit_bytes": 5 * MIB,
        "limit_bytes": 1 << 40,
        "huge_pages": "never",
        "poison": False,
    }
    memory.configure(cache_limit_bytes="auto", limit_bytes=None, huge_pages="auto")
    assert memory.options()["cache_limit_bytes"] == "auto"
    assert memory.options()["limit_bytes"] is None


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"cache_limit_bytes": -1}, ValueError, "cache_limit_bytes is -1"),
        ({"cache_limit_bytes": 1 << 63}, ValueError, "64 bits"),
        ({"cache_limit_bytes": "much"}, ValueError, "'auto'"),
        ({"cache_limit_bytes": 1.5}, TypeError, "an integer"),
        ({"limit_bytes": -1}, ValueError, "limit_bytes is -1"),
        ({"limit_bytes": True}, TypeError, "an integer"),
        ({"huge_pages": "sometimes"}, ValueError, '"auto" or "never"'),
        ({"huge_pages": 1}, TypeError, "huge_pages"),
        ({"poison": 1}, TypeError, "poison"),
        ({"speed": "fast"}, TypeError, "speed"),
    ],
)
def test_bad_settings_change_nothing(
    keywords: dict[str, object], error: type[Exception], text: str
) -> None:
    before = memory.options()
    with pytest.raises(error, match=text):
        memory.configure(**keywords)  # type: ignore[arg-type]
    assert memory.options() == before


def test_variables_set_the_same_at_the_start() -> None:
    code = "import gridbuf; print(gridbuf.memory.options(), gridbuf.get_num_threads())"
    done = run_python(
        code,
        GRIDBUF_CACHE_LIMIT_BYTES="1000",
        GRIDBUF_HUGE_PAGES="never",
        GRIDBUF_POISON="1",
        GRIDBUF_NUM_THREADS="3",
    )
    assert done.stdout.strip() == (
        "{'cache_limit_bytes': 1000, 'limit_bytes': None, 'huge_pages': 'never', 'poison': True} 3"
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GRIDBUF_CACHE_LIMIT_BYTES", "much"),
        ("GRIDBUF_CACHE_LIMIT_BYTES", "-1"),
        ("GRIDBUF_HUGE_PAGES", "perhaps"),
        ("GRIDBUF_POISON", "yes"),
        ("GRIDBUF_SIMD", "sse9"),
    ],
)
def test_a_bad_variable_is_a_warning(name: str, value: str) -> None:
    done = run_python("import gridbuf; print(gridbuf.zeros(3).sum())", **{name: value})
    assert done.stdout == "0.0\n"
    assert f"RuntimeWarning: {name} is '{value}' and was ignored" in done.stderr


def test_show_config_shows_the_decisions() -> None:
    memory.configure(cache_limit_bytes=123456)
    gridbuf.set_num_threads(2)
    facts = gridbuf.show_config("dict")["memory"]
    assert "pages: " in facts["blocks from 2 MiB on"]
    assert "limit: 123456 bytes" in facts["kept for reuse"]
    assert facts["threads"] == "2 (set by the program)"
    assert facts["vector instructions"].startswith(
        f"{memory.get_simd()} (this processor has portable"
    )
    assert facts["poison"] == "off"


# ---- Instruction sets. ----


def test_the_instruction_set() -> None:
    before = memory.get_simd()
    supported = memory.supported_simd()
    assert supported[0] == "portable"
    assert before in supported
    try:
        for name in supported:
            memory.set_simd(name)
            assert memory.get_simd() == name
        for wrong in ("", "AVX2", "sse9", "portable "):
            with pytest.raises(ValueError, match="one of 'portable', 'avx2', 'avx512', 'neon'"):
                memory.set_simd(wrong)  # type: ignore[arg-type]
        for absent in {"avx2", "avx512", "neon"} - {*supported}:
            with pytest.raises(ValueError, match="one that this processor has: portable"):
                memory.set_simd(absent)  # type: ignore[arg-type]
        for wrong in (None, 2, b"portable"):
            with pytest.raises(TypeError):
                memory.set_simd(wrong)  # type: ignore[arg-type]
        assert memory.get_simd() == supported[-1]
    finally:
        memory.set_simd(before)


def test_the_variable_chooses_the_instruction_set() -> None:
    code = "import gridbuf; print(gridbuf.memory.get_simd())"
    assert run_python(code, GRIDBUF_SIMD="portable").stdout == "portable\n"
    assert run_python(code, GRIDBUF_SIMD="").stdout == f"{memory.supported_simd()[-1]}\n"


# ---- Threads. ----


def test_the_number_of_threads() -> None:
    gridbuf.set_num_threads(np.int8(3))
    assert gridbuf.get_num_threads() == 3
    for n in (0, -1, 257, 1 << 40):
        with pytest.raises(
            ValueError, match=f"is {min(n, 2**31 - 1)}, but must be .* from 1 to 256"
        ):
            gridbuf.set_num_threads(n)
    for wrong in (True, "2", 1.0, None):
        with pytest.raises(TypeError):
            gridbuf.set_num_threads(wrong)  # type: ignore[arg-type]
    assert gridbuf.get_num_threads() == 3


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_threads(threads: int) -> None:
    gridbuf.set_num_threads(threads)
    shape = (3, 700, 1025)  # 17 MiB
    memory.trim()
    assert not gridbuf.zeros(shape).any()
    assert (gridbuf.full(shape, -1.25) == -1.25).all()
    dirty = gridbuf.full(shape, np.nan)
    del dirty
    assert not gridbuf.zeros(shape, populate=True).any()


def test_other_threads_run_while_zeros_are_made() -> None:
    """Zeroing releases the GIL: a second thread allocates at the same time, and nothing is mixed up."""
    failures: list[str] = []

    def work(value: float) -> None:
        for _ in range(10):
            array = gridbuf.zeros((2048, 1024))
            if array.any():
                failures.append("zeros are not zero")
            array[...] = value
            if not (array == value).all():
                failures.append("another thread wrote here")

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- Length, laziness, forks, poison. ----


def test_three_gibibytes_work_at_both_ends() -> None:
    array = gridbuf.empty((3, 1 << 27))
    array[0, 0], array[-1, -1] = 1.0, 2.0
    assert (array[0, 0], array[-1, -1], array.nbytes) == (1.0, 2.0, 3 << 30)


def test_a_field_as_long_as_the_machine_stays_untouched() -> None:
    # With the file pages that the kernel frees first; without them, half of it may be short enough to be touched.
    with open("/proc/meminfo", encoding="ascii") as file:
        available = 1024 * next(
            int(line.split()[1]) for line in file if line.startswith("MemAvailable:")
        )
    array = gridbuf.zeros((available // 2, 1), dtype="i1")
    assert gridbuf.alloc_info(array)["note"] == ""
    before = memory.statistics()["live_bytes"]
    assert before >= available // 2
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert resident < available // 4


def test_a_child_after_fork_has_memory_of_its_own() -> None:
    held = gridbuf.full(LARGE, 5.0)
    kept = gridbuf.full(LARGE, 6.0)
    del kept
    assert memory.statistics()["cached_blocks"] >= 1
    child = os.fork()
    if child == 0:
        good = memory.statistics()["cached_blocks"] == 0
        fresh = gridbuf.zeros(LARGE)
        fresh[...] = 1.0
        held[...] = 2.0
        del fresh
        good = good and not gridbuf.zeros(LARGE).any()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (held == 5.0).all()
    assert memory.statistics()["cached_blocks"] >= 1


def test_poison_fills_what_is_fresh() -> None:
    memory.configure(poison=True)
    for shape in ((10, 10), LARGE):
        assert (gridbuf.empty(shape, "u1") == 0xCB).all()
        assert not gridbuf.zeros(shape).any()
        assert (gridbuf.full(shape, 3.0) == 3.0).all()


def test_poison_makes_a_use_after_free_fatal() -> None:
    code = (
        "import ctypes, gridbuf\n"
        "gridbuf.memory.configure(poison=True)\n"
        "array = gridbuf.ones((512, 1024))\n"
        "byte = ctypes.c_char.from_address(array.ctypes.data + 1000)\n"
        "del array\n"
        "print(byte.value)\n"
    )
    done = run_python(code)
    assert done.returncode != 0
    assert done.stdout == ""
    fine = run_python(code.replace("del array\n", ""))
    assert fine.returncode == 0, fine.stderr


def test_poison_guards_the_padding_of_rows() -> None:
    """Only AddressSanitizer can see a stray read between two rows; all others leave it alone."""
    code = (
        "import ctypes, gridbuf\n"
        "gridbuf.memory.configure(poison=True)\n"
        "array = gridbuf.zeros((4, 5), alignment_size=64)\n"
        "target = ctypes.create_string_buffer(8)\n"
        "ctypes.memmove(target, array.ctypes.data + {offset}, 8)\n"
        "print('read')\n"
    )
    assert run_python(code.format(offset=4 * 8)).stdout == "read\n"  # the last element of a row
    padding = run_python(code.format(offset=5 * 8))
    if "detect_leaks" in os.environ.get("ASAN_OPTIONS", "") or "asan" in os.environ.get(
        "LD_PRELOAD", ""
    ):
        assert padding.stdout == ""
        assert "use-after-poison" in padding.stderr
    else:
        assert padding.stdout == "read\n"
