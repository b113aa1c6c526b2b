"""The parts of the runner on made-up figures: statistics, interleaving, calibration, checks, formats."""

from __future__ import annotations

import dataclasses
import hashlib
import mmap
import re
import threading
import time
import types
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbuf_benchmarks import machine, memory, report, results, timing
from gridbuf_benchmarks.__main__ import main
from gridbuf_benchmarks.case import (
    Case,
    Entry,
    Work,
    WrongWork,
    check_work,
    check_yardstick,
    view_of,
)
from gridbuf_benchmarks.cases import ALL_CASES, copies, named, select
from gridbuf_benchmarks.memory import LINE_BYTES, Placement
from gridbuf_benchmarks.promises import judge, judged_case
from gridbuf_benchmarks.runner import measure_apart, measure_fresh, pooled
from gridbuf_benchmarks.timing import Budget, Contender, Samples, measure, ratio_of, spread_of

times = st.floats(min_value=1e-3, max_value=1e12)
SHORT = {"min_sample_seconds": 1e-9, "case_seconds": 60.0}

# Statistics


@given(st.lists(times, min_size=1, max_size=40))
def test_spread_is_ordered_and_within_the_series(values: list[float]) -> None:
    spread = spread_of(values)
    parts = (spread[key] for key in ("lower_quartile", "median", "upper_quartile"))
    tiny = 1 + 1e-12  # quartiles interpolate, which rounds
    ordered = [min(values), *parts, max(values)]
    assert all(a <= b * tiny for a, b in zip(ordered, ordered[1:]))
    assert spread["count"] == len(values)


@given(st.lists(st.tuples(times, times, st.floats(0.01, 100.0)), min_size=2, max_size=30))
def test_drift_that_hits_both_sides_cancels(rounds: list[tuple[float, float, float]]) -> None:
    """Why ratios are formed within a round: a slow phase of the machine does not change them."""

    def samples(pairs: list[tuple[float, float]]) -> list[Samples]:
        return [Samples(1, [*some], [*range(len(rounds))]) for some in zip(*pairs)]

    calm = ratio_of(*samples([(a, b) for a, b, _ in rounds]))
    drifting = ratio_of(*samples([(a * drift, b * drift) for a, b, drift in rounds]))
    assert drifting == pytest.approx(calm)


# Timing


@pytest.mark.parametrize("processes", [0, 2], ids=["a process for each call", "two processes"])
def test_processes_are_measured_and_their_errors_shown(processes: int) -> None:
    case = dataclasses.replace(named("allocate/small/zeros"), processes=processes)
    budget = Budget(rounds=3, min_sample_seconds=1e-6, case_seconds=60.0)
    if processes:
        samples, done = measure_apart(case, ["numpy"], budget)
        assert done["numpy"]["shape"] == [8, 8, 8], "each checks its work"
        assert samples["numpy"].rounds == [0, 1, 2, 3, 4, 5]
    else:
        samples = measure_fresh(case, ["numpy"], budget)
        assert samples["numpy"].loops == 1
    assert len(samples["numpy"].page_faults) == 3 * max(processes, 1)
    assert all(0 < value < 60e9 for value in samples["numpy"].nanoseconds)
    with pytest.raises(RuntimeError, match=r"(?s)small/zeros of unknown failed in a process.*unkn"):
        (measure_apart if processes else measure_fresh)(case, ["unknown"], budget)


def test_rounds_of_several_processes_are_taken_together() -> None:
    """Rounds of two processes are not paired, because their placements differ."""
    first = pooled([Samples(2, [1.0, 3.0], [0, 2], [4, 8]), Samples(1, [5.0], [0], [1])], 3)
    assert first == Samples(1, [1.0, 3.0, 5.0], [0, 2, 3], [2, 4, 1])
    second = pooled([Samples(1, [2.0], [0], [0]), Samples(1, [50.0, 10.0], [0, 1], [0, 0])], 3)
    assert second.rounds == [0, 3, 4]
    assert ratio_of(first, second)["count"] == 2


class FakeClock:
    """A clock that only the timed statement moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def work(self, seconds: float) -> None:
        self.seconds += seconds


@given(st.floats(1e-9, 1e-3), st.floats(1e-7, 1e-2))
def test_calibration_reaches_the_shortest_sample(
    call_seconds: float, sample_seconds: float
) -> None:
    clock = FakeClock()
    timer = Timer("work(s)", timer=clock, globals={"work": clock.work, "s": call_seconds})
    if sample_seconds / call_seconds > 2e4:
        return  # the same, only longer
    loops = timing._calibrate(timer.timeit, sample_seconds)
    assert loops * call_seconds >= sample_seconds * 0.999
    # Not wastefully long either: at most a little beyond the goal, or one call.
    assert loops == 1 or (loops - 1) * call_seconds <= 1.2 * sample_seconds + call_seconds


def test_rounds_interleave_all_contenders() -> None:
    log: list[str] = []
    contenders = {key: Contender(f"log('{key}')", {"log": log.append}) for key in "abc"}
    samples = measure(contenders, Budget(rounds=40, **SHORT))
    assert {(one.loops, len(one.nanoseconds)) for one in samples.values()} == {(1, 40)}
    rounds = ["".join(log[i : i + 3]) for i in range(len(log) - 120, len(log), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds), "a round is one sample of each"
    assert len(set(rounds)) > 1, "the order within a round changes"


def test_a_case_ends_when_its_time_is_up_but_not_before_the_fewest_rounds() -> None:
    budget = Budget(rounds=1000, min_sample_seconds=1e-9, case_seconds=0.0)
    assert len(measure({"a": Contender("None", {})}, budget)["a"].rounds) == timing.MINIMUM_ROUNDS


def test_a_slow_contender_sits_out_and_its_ratio_is_that_of_its_rounds() -> None:
    clock = FakeClock()
    log: list[str] = []
    statements = {"fast": 1e-3, "slow": 15e-3, "slower": 30e-3, "slowest": 0.1, "needed": 0.1}
    names = {"log": log.append, "work": clock.work}
    contenders = {
        key: Contender(
            f"log('{key}') or work({s})", names, known_seconds=s, essential=key == "needed"
        )
        for key, s in statements.items()
    }
    samples = measure(contenders, Budget(rounds=12, contender_seconds=0.02, **SHORT), clock=clock)
    assert {key: one.rounds for key, one in samples.items()} == {
        "fast": [*range(12)],
        "slow": [0, 1],
        "slower": [0],  # one is enough of what takes longer than allowed
        "slowest": [0],
        "needed": [*range(timing.MINIMUM_ROUNDS)],
    }
    assert "slowest" not in log, "the call that was checked is the sample"
    assert ratio_of(samples["fast"], samples["slowest"])["median"] == pytest.approx(0.01)
    assert ratio_of(samples["fast"], samples["slow"])["count"] == 2
    assert all(len(one.page_faults) == len(one.rounds) for one in samples.values())


def test_ranks_agree_on_times_and_rounds() -> None:
    """Two threads as ranks, one of which takes twice as long: a sample is the time of the slower."""
    barrier, times = threading.Barrier(2), [0.0, 0.0]

    def rank(number: int) -> dict[str, Samples]:
        def agree(seconds: float) -> float:
            times[number] = seconds
            barrier.wait()
            longest = max(times)
            barrier.wait()
            return longest

        one = Contender(f"sleep({(number + 1) * 1e-3})", {"sleep": time.sleep})
        return measure({"a": one, "b": one}, Budget(3, 2e-3, 60.0), agree=agree)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(rank, range(2))
    for key in "ab":
        assert (first[key].loops, first[key].rounds) == (second[key].loops, [0, 1, 2])
        assert first[key].nanoseconds == second[key].nanoseconds
        assert min(first[key].nanoseconds) >= 2e6


def test_what_precedes_a_sample_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set-up of the entry, and the wait for threads that still run."""
    log: list[str] = []
    answers = [True, True, False]
    monkeypatch.setattr(timing, "others_run", lambda: answers.pop(0))
    contender = Contender("None", {"log": log.append}, setup="log('before')", known_seconds=1.0)
    samples = measure({"a": contender}, Budget(rounds=1, **SHORT))
    assert (log, answers) == (["before"], [])
    assert samples["a"].nanoseconds[0] < 400e3, "less than one wait"
    monkeypatch.setattr(timing, "others_run", lambda: True)
    timing.settle()  # gives up


def test_threads_that_run_are_seen() -> None:
    """One that hashes, which needs no interpreter lock; and none when it has ended."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            hashlib.sha256(bytes(1 << 20))

    def seen(wanted: bool) -> bool:
        deadline = time.monotonic() + 30
        while timing.others_run() != wanted and time.monotonic() < deadline:
            time.sleep(1e-3)
        return timing.others_run() == wanted or time.monotonic() < deadline

    thread = threading.Thread(target=work)
    thread.start()
    assert seen(True)
    stop.set()
    thread.join()
    assert seen(False)


def test_page_faults_are_counted() -> None:
    before = timing.page_faults()
    block = mmap.mmap(-1, 64 * mmap.PAGESIZE)
    block.madvise(mmap.MADV_NOHUGEPAGE)
    for begin in range(0, len(block), mmap.PAGESIZE):
        block[begin] = 1
    assert timing.page_faults() - before >= 64


@pytest.mark.parametrize(("name", "value"), [("rounds", 0), ("min_sample_seconds", -1.0)])
def test_impossible_budgets_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=str(value)):
        Budget(**{"rounds": 5, **SHORT, name: value})  # type: ignore[arg-type]


# The check that entries do the same work

WORK = Work(
    (4, 6, 5), values="arange", layout=(2, 1, 0), alignment_bytes=8, aligned_index=(1, 0, 0)
)
GOOD = np.asfortranarray(np.arange(120.0).reshape(4, 6, 5))
OTHER = GOOD.copy(order="K")
OTHER[2, 3, 2] += 1
ALIGNED = Work((4,), alignment_bytes=64, aligned_index=(1,))


def _check(result: Any, work: Work = WORK) -> Any:
    entry = Entry("gridbuf", "made_up", lambda module: {})
    return check_work(Case("a/b/c", "title", "note", work, (entry,)), entry, result)


def _at(offset_bytes: int) -> Any:
    """Four elements, the second of which begins so many bytes after a multiple of 64."""
    raw = np.empty(4 * 8 + 128, dtype=np.uint8)
    start = -(raw.ctypes.data + 8) % 64 + offset_bytes
    return raw[start : start + 32].view(np.float64)


def test_right_work_is_described() -> None:
    done = _check(GOOD)
    assert (done["shape"], done["dtype"]) == ((4, 6, 5), "float64")
    assert done["strides_bytes"] == (8, 32, 192)
    assert done["alignment_bytes"] % 8 == 0
    assert _check(_at(0), ALIGNED)["alignment_bytes"] >= 64
    any_layout = Work((4, 6, 5), values="arange")
    digests = {_check(one, any_layout)["values_crc32"] for one in (GOOD, GOOD.copy(order="C"))}
    assert digests == {done["values_crc32"]}, "whatever the layout"


@pytest.mark.parametrize(
    ("word", "result", "work"),
    [
        ("shape", GOOD[:3], WORK),
        ("dtype", GOOD.astype(np.float32), WORK),
        ("values", OTHER, WORK),
        ("layout", np.ascontiguousarray(GOOD), WORK),
        ("alignment", _at(8), ALIGNED),
    ],
)
def test_other_work_is_refused(word: str, result: Any, work: Work) -> None:
    with pytest.raises(WrongWork, match=f"a/b/c: gridbuf .*{word} should be"):
        _check(result, work)


@pytest.mark.parametrize("wrong_at", [0, 77, 1 << 21, (1 << 21) + 12345])
def test_large_work_is_sampled(wrong_at: int) -> None:
    """Single elements of millions are looked at only at both ends; a stretch is found anywhere."""
    work = Work(((1 << 21) + 20000,), values=1.0)
    right = np.ones(work.shape)
    _check(right, work)
    right[wrong_at : wrong_at + 5000] = 2.0
    with pytest.raises(WrongWork, match="values should be 1.0 .* found 2.0"):
        _check(right, work)


EXPORTS = {
    "array": lambda a: a,
    "memoryview": memoryview,
    "interface": lambda a: a.__array_interface__,
    "capsule": lambda a: a.__dlpack__(),
    "versioned": lambda a: a.__dlpack__(max_version=(1, 0)),
}


@pytest.mark.parametrize("kind", EXPORTS)
def test_every_kind_of_export_can_be_read(kind: str) -> None:
    view = view_of(EXPORTS[kind](GOOD))
    np.testing.assert_array_equal(view, GOOD)
    assert view.strides == GOOD.strides


# Placements and blocks


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_placements_are_layouts_without_overlap(shape: list[int], data: st.DataObject) -> None:
    """Every element has separate bytes, the layout map is kept, and all is within the span."""
    layout = tuple(data.draw(st.permutations(range(len(shape)))))
    placement = Placement(
        data.draw(st.sampled_from(["uint8", "int16", "float64", "complex128"])),
        layout,
        data.draw(st.sampled_from(["dense", "lines"])),
        data.draw(st.integers(1, 3)),
        data.draw(st.sampled_from([0, 16])),
    )
    strides = placement.strides_bytes(shape)
    offsets = sum(index * stride for index, stride in zip(np.indices(shape), strides))
    assert len(np.unique(offsets)) == np.prod(shape)
    assert np.max(offsets) + placement.offset_bytes < placement.span_bytes(shape)
    by_rank = [strides[layout.index(rank)] for rank in range(len(shape))]
    assert by_rank == sorted(strides, reverse=True)


def test_padded_rows_are_an_odd_number_of_lines() -> None:
    for extent, lines in ((512, 65), (511, 65), (504, 65), (503, 63), (8, 3), (7, 1)):
        row, item = Placement("float64", (0, 1), "lines").strides_bytes((3, extent))
        assert (row, item) == (lines * LINE_BYTES, 8), "at least a byte of padding"


def test_a_copy_case_is_held_against_its_source_and_its_padding() -> None:
    """With the real memory: right copies pass, others and those that touch padding do not."""
    target = Placement("float64", (1, 0), "lines")
    case = copies.copy_case("copy/8/x/10", (20, 30), target)
    src = memory.array("source", case.work.shape, Placement("float64", (0, 1)))
    dst = memory.array("target", case.work.shape, target)
    assert src.flags.c_contiguous
    memory.poison(target.span_bytes(case.work.shape))
    with pytest.raises(WrongWork, match=r"copy/8/x/10: .* values should be"):
        check_work(case, case.entries[0], dst)
    dst[...] = src
    assert check_work(case, case.entries[0], dst)["strides_bytes"] == (8, 192)
    memory.block("target", 192)[20 * 8] = 0
    with pytest.raises(WrongWork, match=r"padding should be 0xa5 behind every row, found .* row 0"):
        check_work(case, case.entries[0], dst)
    assert memory.info()["block_bytes"] >= 2 * src.nbytes
    del src, dst
    memory.release()
    assert memory.info()["block_bytes"] == 0


def test_all_contenders_share_their_memory() -> None:
    """Of a conversion, too, where the yardstick writes more bytes than the conversion does."""
    memory.release()
    shape = (512, 512, 64)  # 64 MiB, so that the target's block is too small for the mean of both
    source = Placement("float64", (0, 1, 2))
    case = copies.copy_case("cast/x", shape, Placement("float32", (2, 1, 0)), source=source)
    module: Any = types.SimpleNamespace(
        copyto=np.copyto, memcpy=None, wake_helper=None, from_numpy=lambda array: array
    )
    names = [dict(entry.names(module)) for entry in case.entries + case.yardsticks]
    for role in ("src", "dst"):
        assert len({one[role].__array_interface__["data"][0] for one in names}) == 1
    del names
    memory.release()


def test_a_yardstick_must_move_the_bytes() -> None:
    case = copies.copy_case("copy/8/x/10", (20, 30), Placement("float64", (1, 0)))
    entry = case.yardsticks[0]
    pair = (np.arange(64, dtype=np.uint8), np.arange(64, dtype=np.uint8))
    assert check_yardstick(case, entry, pair)["shape"] == (64,)
    pair[1][63] = 0
    with pytest.raises(WrongWork, match="did not move 64 bytes"):
        check_yardstick(case, entry, pair)


def test_blocks_have_huge_pages_and_a_source_without_equal_words() -> None:
    words = memory.block("source", 1 << 16).view(np.uint64)
    assert len(np.unique(words)) == len(words)
    memory.write_numbers("float32", 1 << 16)
    assert np.isfinite(memory.block("source", 1 << 16).view(np.float32)).all()
    del words
    memory.block("target", 64 << 20)
    fraction = memory.info()["huge_page_fraction"]
    memory.release()
    policy = machine.describe()["huge_pages"]
    if policy not in ("always", "madvise"):
        pytest.skip(f"the system gives no huge pages (policy {policy}); `madvise` would")
    assert fraction > 0.5, "shared mappings, which Python makes unless told, have small ones"


# The table of cases


def test_ids_are_unique_and_every_case_says_what_it_compares() -> None:
    assert len({case.id for case in ALL_CASES}) == len(ALL_CASES)
    for case in ALL_CASES:
        assert len(case.note) > 40
        assert len(case.entries + case.yardsticks) > 1


def test_the_matrix_is_whole() -> None:
    """All 3-d permutations, of every item size, shape and padding; arrays of 64 MiB and more."""
    matrix = [case for case in ALL_CASES if re.fullmatch(r"copy/\d+/\w+\.\w+/\d\d\d", case.id)]
    kinds = ["lines.dense", "pow2.dense", "odd.dense", "pow2.lines", "odd.lines"]
    more = ["stencil.dense", "tall.dense", "stencil.lines", "tall.lines"]
    wanted = {f"copy/{size}/{kind}" for size in (1, 2, 4, 8, 16) for kind in kinds}
    wanted |= {f"copy/{size}/{kind}" for size in (4, 8) for kind in more}
    layouts = ["".join(map(str, p)) for p in permutations(range(3))]
    assert {case.id for case in matrix} >= {f"{one}/{p}" for one in wanted for p in layouts}
    assert all(case.work.array_bytes >= 64 << 20 for case in matrix)


def test_grid_sizes_are_measured_next_to_one_thread_of_memcpy() -> None:
    grids = [case for case in ALL_CASES if case.chapter == "grid"]
    layouts = {(2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1)}
    assert len(grids) == 7 * 2 * len(layouts)
    for case in grids:
        assert case.work.layout in layouts
        assert [entry.library for entry in case.entries] == ["gridbuf", "numpy", "torch", "hptt"]
        assert case.yardsticks[0].library == "memcpy"
        assert 1 << 20 < case.work.array_bytes < 100 << 20


_MOVED = {"moved-numpy", "moved-torch", "moved-numpy-most", "moved-torch-most"}


@pytest.mark.parametrize(
    ("id", "promises"),
    [
        ("copy/8/lines.dense/210", {*_MOVED, "moved-8"}),
        ("copy/8/lines.off/120", {*_MOVED, "moved-8"}),
        ("sizes/pow2/4096MiB", {*_MOVED, "moved-8"}),
        ("copy/8/odd.dense/102", set()),  # the contiguous dimension stays
        ("copy/4/pow2.dense/201", {*_MOVED, "moved-4-2"}),
        ("copy/2/odd.dense/201", {*_MOVED, "moved-4-2"}),
        ("copy/1/odd.dense/201", _MOVED),
        ("copy/8/5d.mixed/43210", _MOVED),
        ("grid/float64/64x64x80/210", _MOVED),
        ("cast/int32.float64.210", _MOVED),
        ("cast/float32.float64.012", {"cast"}),
        ("copy/8/256KiB/210", _MOVED),
        ("copy/8/4KiB/210", set()),
    ],
)
def test_copies_bear_on_the_right_promises(id: str, promises: set[str]) -> None:
    assert {*named(id).promises} == promises


@pytest.mark.parametrize(
    ("line", "count", "first"),
    [("cube", 16, 4 << 10), ("fill", 16, 4 << 10), ("pow2", 6, 128 << 20)],
)
def test_sizes_grow_up_to_four_gibibytes(line: str, count: int, first: int) -> None:
    sizes = [case.work.array_bytes for case in ALL_CASES if case.group == f"sizes/{line}"]
    assert (len(sizes), sizes[0]) == (count, first)
    assert sizes[-1] == pytest.approx(4 << 30, rel=0.05)
    assert all(1.5 < b / a < 8.5 for a, b in zip(sizes, sizes[1:]))


@pytest.mark.parametrize("libraries", [["numpy", "gridbuf"], ["gridbuf", "numpy", "numpy"]])
def test_malformed_cases_are_refused(libraries: list[str]) -> None:
    entries = tuple(Entry(key, "None", lambda module: {}) for key in libraries)
    with pytest.raises(ValueError, match="case x/y has the entries"):
        Case("x/y", "t", "n", Work(()), entries)


def test_filters_select_by_part_and_by_pattern() -> None:
    everything = select([], quick=False)
    assert len(select([], quick=True)) < len(everything) == len(ALL_CASES)
    reversed_ = [case.id for case in select(["copy/8/p*/210"], quick=False)]
    assert reversed_ == ["copy/8/pow2.dense/210", "copy/8/pow2.lines/210"]
    chapters = Counter(case.chapter for case in select([], quick=False, only=["tiny", "cast"]))
    assert chapters == {"tiny": 5, "cast": 8}
    assert select(["memoryview"], quick=False, only=["tiny"]) == []
    groups = {case.group for case in select(["exchange", "preset"], quick=True)}
    assert groups == {"exchange", "allocate/preset"}


# Promises


@pytest.mark.parametrize(
    ("ratios", "met", "mean", "words"),
    [
        ([0.9, 0.95], True, 1.081, ("1.05 (stencil/1)", "met")),
        ([0.9, 1.05], False, 1.029, ("0.952 (stencil/1)", "**missed** by 1 of 2")),
        ([1.0], True, 1.0, ("1", "met")),
        ([], None, None, ("–", "not measured")),
    ],
)
def test_a_promise_is_judged_by_its_worst_case_whatever_the_mean(
    ratios: list[float], met: bool, mean: float, words: tuple[str, ...]
) -> None:
    def case(number: int, ratio: float) -> dict[str, Any]:
        targets = judged_case(["stencil"], {"gt4py": {"median": ratio}})
        return {"id": f"stencil/{number}", "group": "stencil", "targets": targets}

    judged = {one["id"]: one for one in judge([case(*one) for one in enumerate(ratios)])}
    found = judged["stencil"]
    assert (found["met"], found.get("mean"), found["cases"]) == (met, mean, len(ratios))
    assert found["cases_met"] == sum(ratio <= 1 / 0.97 for ratio in ratios)
    assert report.promise_words(found)[2:] == words


@pytest.mark.parametrize(
    ("nanoseconds", "met"), [([1.0, 2.0, 4.4], True), ([1.0, 4.0, 8.0], False), ([], None)]
)
def test_cost_is_linear_when_no_size_costs_much_more_a_byte(
    nanoseconds: list[float], met: bool | None
) -> None:
    cases = [
        {
            "id": f"sizes/cube/{i}",
            "group": "sizes/cube",
            "work": {"array_bytes": 1 << (28 + i)},
            "yardstick": "memcpy_halves",
            "ratios": {},
            "targets": [],
            "contenders": [{"library": "gridbuf", "nanoseconds": {"median": time}}],
        }
        for i, time in enumerate(nanoseconds)
    ]
    linear = judge(cases)[-1]
    assert (linear["id"], linear["met"]) == ("linear", met)


# Formats, machine info, files


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("84.2 ns", report.format_time(84.23)),
        ("999 ns", report.format_time(999.4)),
        ("1 µs", report.format_time(999.6)),
        ("62 ms", report.format_time(62e6)),
        ("2.5 s", report.format_time(2.5e9)),
        ("1.25", report.format_ratio(1.2517)),
        ("0.047", report.format_ratio(0.04683)),
    ],
)
def test_figures_have_few_digits(text: str, formatted: str) -> None:
    assert formatted == text


def test_a_row_has_speed_in_decimal_gigabytes_and_ratios_with_their_spread() -> None:
    contender = {"library": "gridbuf", "nanoseconds": {"median": 1e9}}
    work = {"bytes_moved": 2_000_000_000}
    ratios = {"memory": _spread(1.0, 2.0, 3.0)}
    case = {"title": "a_b", "contenders": [contender], "work": work, "ratios": ratios}
    assert report.case_table([case]).splitlines() == [
        "| case | gridbuf | GB/s | ÷ the memory |",
        "|---|--:|--:|--:|",
        r"| a\_b | 1 s | 2 | **2** ±50% |",
    ]


def test_machine_info_warns_of_disturbances() -> None:
    info = machine.describe()
    assert info["cores_usable"] >= 1
    assert info["memory_bytes"] > 2**20
    quiet = {**info, "load_average_1min": 0.0, "governor": "performance"}
    assert machine.disturbances(quiet) == []
    busy = machine.disturbances({**quiet, "load_average_1min": 99.0, "governor": "powersave"})
    assert "99.0" in busy[0]
    assert "powersave" in busy[1]


def _spread(lower: float, median: float, upper: float) -> dict[str, float]:
    return {"lower_quartile": lower, "median": median, "upper_quartile": upper, "count": 5}


def _result(**ratios: dict[str, float]) -> dict[str, Any]:
    return {"cases": [{"id": "a/b", "title": "t", "ratios": ratios}]}


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (_spread(0.7, 0.8, 0.9), "faster"),
        (_spread(1.3, 1.4, 1.5), "slower"),
        (_spread(1.15, 1.3, 1.5), "same"),  # the ranges overlap
        (_spread(1.201, 1.205, 1.3), "same"),  # they do not, but the medians are within a tenth
    ],
)
def test_a_change_counts_when_the_ranges_do_not_overlap(
    now: dict[str, float], verdict: str
) -> None:
    before = _result(numpy=_spread(1.0, 1.1, 1.2))
    (change,) = report.changes(before, _result(numpy=now))
    assert change.verdict == verdict
    assert bool(report.regressions([change])) == (verdict == "slower")
    assert report.changes({"cases": []}, before) == []


@pytest.mark.parametrize(("memory", "numpy", "slower"), [(1.0, 2.0, []), (2.0, 1.0, ["memory"])])
def test_a_faster_peer_is_no_regression_where_the_memory_tells(
    memory: float, numpy: float, slower: list[str]
) -> None:
    one = _spread(0.99, 1.0, 1.01)
    now = {
        key: _spread(*(r * part for part in (0.99, 1.0, 1.01)))
        for key, r in {"memory": memory, "numpy": numpy}.items()
    }
    found = report.regressions(report.changes(_result(memory=one, numpy=one), _result(**now)))
    assert [change.peer for change in found] == slower


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"schema": "gridbuf.benchmarks", "schema_version": 99}']
)
def test_foreign_files_are_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="old.json"):
        results.read(path)


# The command line


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("run --filter no-such-case", 2, "matches no-such-case; `list` prints the ids"),
        ("run --only copy,nonsense", 2, "no chapter nonsense; there are allocate"),
        ("compare --fail-on-regression", 2, "required: OLD.json, NEW.json"),
        ("report no-such-file.json", 2, "no-such-file.json"),
        ("run --repeat 0", 2, "rounds is 0"),
        ("compare no-such-file.json neither.json", 2, "no-such-file.json"),
        ("", 2, "required: COMMAND"),
        ("--help", 0, "--quick|exit codes|examples|interquartile|--peers|compare"),
        ("run --help", 0, "--quick|101 rounds|SVG|CSV|--only|--filter|--json|--summary"),
        ("cpp --help", 0, "--filter|repetitions"),
    ],
)
def test_help_teaches_and_wrong_usage_says_what_to_do(
    arguments: str, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    assert stop.value.code == code
    printed = capsys.readouterr()
    text = printed.err if code else printed.out
    assert all(word in text for word in words.split("|"))


def test_list_names_every_case_without_running_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(case.id in printed for case in ALL_CASES)


def test_cpp_command_runs_every_program_and_tells_of_a_failed_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    programs = [tmp_path / name for name in ("a_benchmark", "b_benchmark", "broken_benchmark")]
    for path, script in zip(programs, ['echo "$0" "$@"'] * 2 + ["echo no memory >&2; exit 3"]):
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    first, second, broken = map(str, programs)
    assert main(["cpp", first, second, "--quick", "--filter", "BM_Copy"]) == 0
    printed = capfd.readouterr().out
    assert all(printed.count(program) == 1 for program in (first, second))
    for option in ("filter=BM_Copy", "repetitions=3", "min_time=0.02", "interleaving=true"):
        assert printed.count(f"_{option}") == 2
    assert main(["cpp", broken]) == 1
    error = capfd.readouterr().err
    assert "no memory" in error
    assert "broken_benchmark failed with 3" in error
