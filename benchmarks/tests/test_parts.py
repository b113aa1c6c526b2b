"""The parts of the runner on made-up figures: statistics, interleaving, calibration, checks, formats."""

from __future__ import annotations

import dataclasses
import hashlib
import mmap
import re
import threading
import time
import types
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


# Statistics


def test_spread_of_known_series() -> None:
    spread = spread_of([4.0, 1.0, 3.0, 2.0, 5.0])
    assert spread == {"median": 3.0, "lower_quartile": 2.0, "upper_quartile": 4.0, "count": 5}


def test_spread_of_one_value_is_that_value() -> None:
    spread = {"median": 7.0, "lower_quartile": 7.0, "upper_quartile": 7.0, "count": 1}
    assert spread_of([7.0]) == spread


@given(st.lists(times, min_size=1, max_size=40))
def test_spread_is_ordered_and_within_the_series(values: list[float]) -> None:
    spread = spread_of(values)
    parts = (spread[key] for key in ("lower_quartile", "median", "upper_quartile"))
    tiny = 1 + 1e-12  # quartiles interpolate, which rounds
    ordered = [min(values), *parts, max(values)]
    assert all(a <= b * tiny for a, b in zip(ordered, ordered[1:]))


@given(st.lists(st.tuples(times, times, st.floats(0.01, 100.0)), min_size=2, max_size=30))
def test_drift_that_hits_both_sides_cancels(rounds: list[tuple[float, float, float]]) -> None:
    """The reason for forming ratios within a round: a machine half as fast for a while moves no ratio."""
    calm = ratio_of(*_samples([(a, b) for a, b, _ in rounds]))
    drifting = ratio_of(*_samples([(a * drift, b * drift) for a, b, drift in rounds]))
    assert drifting == pytest.approx(calm)


def _samples(rounds: list[tuple[float, float]]) -> list[Samples]:
    return [Samples(1, [*times], [*range(len(rounds))]) for times in zip(*rounds)]


# Timing


def test_a_fresh_process_times_its_first_call() -> None:
    """Every sample is a separate process: gridbuf and NumPy are imported there, and each does one call."""
    (case,) = select(["allocate/small/zeros"], quick=True)
    budget = Budget(rounds=2, min_sample_seconds=1e-6, case_seconds=60.0)
    samples = measure_fresh(case, ["numpy"], budget)
    assert samples["numpy"].loops == 1
    assert len(samples["numpy"].nanoseconds) == 2
    assert all(0 < value < 60e9 for value in samples["numpy"].nanoseconds)


def test_a_failing_fresh_process_is_an_error_with_its_text() -> None:
    (case,) = select(["allocate/small/zeros"], quick=True)
    with pytest.raises(RuntimeError, match=r"allocate/small/zeros of unknown failed in a process"):
        measure_fresh(case, ["unknown"], Budget(1, 1e-6, 1.0))


def test_rounds_of_several_processes_are_taken_together() -> None:
    """No round of one is paired with a round of another: that would compare two placements."""
    first = pooled([Samples(2, [1.0, 3.0], [0, 2], [4, 8]), Samples(1, [5.0], [0], [1])], 3)
    assert first == Samples(1, [1.0, 3.0, 5.0], [0, 2, 3], [2, 4, 1])
    second = pooled([Samples(1, [2.0], [0], [0]), Samples(1, [50.0, 10.0], [0, 1], [0, 0])], 3)
    assert second.rounds == [0, 3, 4]
    assert ratio_of(first, second)["count"] == 2


def test_a_case_in_processes_of_its_own_measures_in_each() -> None:
    (case,) = select(["allocate/small/zeros"], quick=True)
    apart = dataclasses.replace(case, processes=2)
    budget = Budget(rounds=3, min_sample_seconds=1e-6, case_seconds=60.0)
    samples, done = measure_apart(apart, ["numpy"], budget)
    assert done["numpy"]["shape"] == [8, 8, 8], "each checks its work"
    assert samples["numpy"].rounds == [0, 1, 2, 3, 4, 5]
    assert len(samples["numpy"].nanoseconds) == len(samples["numpy"].page_faults) == 6
    assert all(0 < value < 60e9 for value in samples["numpy"].nanoseconds)


def test_a_failing_process_of_its_own_is_an_error_with_its_text() -> None:
    (case,) = select(["allocate/small/zeros"], quick=True)
    with pytest.raises(RuntimeError, match=r"(?s)small/zeros .* failed in a process .*unknown"):
        measure_apart(dataclasses.replace(case, processes=1), ["unknown"], Budget(1, 1e-6, 1.0))


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
    budget = Budget(rounds=40, min_sample_seconds=1e-9, case_seconds=60.0)
    contenders = {key: Contender(f"log('{key}')", {"log": log.append}) for key in "abc"}
    samples = measure(contenders, budget)
    assert {key: (s.loops, len(s.nanoseconds)) for key, s in samples.items()} == dict.fromkeys(
        "abc", (1, 40)
    )
    rounds = ["".join(log[i : i + 3]) for i in range(len(log) - 120, len(log), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds), "a round is one sample of each"
    assert len(set(rounds)) > 1, "the order within a round changes"


def test_a_case_ends_when_its_time_is_up_but_not_before_the_fewest_rounds() -> None:
    budget = Budget(rounds=1000, min_sample_seconds=1e-9, case_seconds=0.0)
    samples = measure({"a": Contender("None", {})}, budget)
    assert len(samples["a"].nanoseconds) == timing.MINIMUM_ROUNDS


def test_a_slow_contender_sits_out_and_its_ratio_is_that_of_its_rounds() -> None:
    clock = FakeClock()
    log: list[str] = []
    statements = {"fast": 1e-3, "slow": 15e-3, "slower": 30e-3, "slowest": 0.1, "needed": 0.1}
    names = {"log": log.append, "work": clock.work}
    samples = measure(
        {
            key: Contender(
                f"log('{key}') or work({seconds})",
                names,
                known_seconds=seconds,
                essential=key == "needed",
            )
            for key, seconds in statements.items()
        },
        Budget(rounds=12, min_sample_seconds=1e-9, case_seconds=60.0, contender_seconds=0.02),
        clock=clock,
    )
    assert samples["fast"].rounds == [*range(12)]
    assert samples["slow"].rounds == [0, 1]
    assert samples["slower"].rounds == [0], "one is enough of what takes longer than allowed"
    assert "slowest" not in log, "the call that was checked is the sample"
    assert samples["slowest"].rounds == [0]
    assert samples["needed"].rounds == [*range(timing.MINIMUM_ROUNDS)]
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

        statements = {key: f"sleep({(number + 1) * 1e-3})" for key in "ab"}
        contenders = {
            key: Contender(text, {"sleep": time.sleep}) for key, text in statements.items()
        }
        return measure(contenders, Budget(3, 2e-3, 60.0), agree=agree)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(rank, range(2))
    for key in "ab":
        assert (first[key].loops, first[key].rounds) == (second[key].loops, [0, 1, 2])
        assert first[key].nanoseconds == second[key].nanoseconds
        assert min(first[key].nanoseconds) >= 2e6


def test_what_runs_before_a_sample_is_not_timed() -> None:
    log: list[str] = []
    contender = Contender("None", {"log": log.append}, setup="log('before')", known_seconds=1.0)
    measure({"a": contender}, Budget(rounds=3, min_sample_seconds=1e-9, case_seconds=60.0))
    assert log == ["before"] * 3


def test_a_sample_waits_for_threads_that_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [True, True, False]
    monkeypatch.setattr(timing, "others_run", lambda: answers.pop(0))
    contender = Contender("None", {}, known_seconds=1.0)
    measure({"a": contender}, Budget(rounds=1, min_sample_seconds=1e-9, case_seconds=60.0))
    assert answers == []
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


def test_page_faults_of_a_sample_are_counted() -> None:
    def touch() -> None:
        block = mmap.mmap(-1, 64 * mmap.PAGESIZE)
        block.madvise(mmap.MADV_NOHUGEPAGE)
        for begin in range(0, len(block), mmap.PAGESIZE):
            block[begin] = 1

    before = timing.page_faults()
    touch()
    assert timing.page_faults() - before >= 64


@pytest.mark.parametrize(
    "wrong", [{"rounds": 0}, {"min_sample_seconds": 0.0}, {"min_sample_seconds": -1.0}]
)
def test_impossible_budgets_are_refused(wrong: dict[str, Any]) -> None:
    good = {"rounds": 5, "min_sample_seconds": 1e-4, "case_seconds": 1.0}
    with pytest.raises(ValueError, match=str(next(iter(wrong.values())))):
        Budget(**{**good, **wrong})


# The check that entries do the same work

WORK = Work(
    (4, 6, 5), values="arange", layout=(2, 1, 0), alignment_bytes=8, aligned_index=(1, 0, 0)
)
GOOD = np.asfortranarray(np.arange(120.0).reshape(4, 6, 5))


def _check(result: Any, work: Work = WORK) -> Any:
    entry = Entry("gridbuf", "made_up", lambda module: {})
    return check_work(Case("a/b/c", "title", "note", work, (entry,)), entry, result)


def test_right_work_is_described() -> None:
    done = _check(GOOD)
    assert (done["shape"], done["dtype"]) == ((4, 6, 5), "float64")
    assert done["strides_bytes"] == (8, 32, 192)
    assert done["alignment_bytes"] % 8 == 0


def test_digest_does_not_depend_on_the_layout() -> None:
    any_layout = Work((4, 6, 5), values="arange")
    digests = {
        _check(array, any_layout)["values_crc32"] for array in (GOOD, np.ascontiguousarray(GOOD))
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("word", "result"),
    [
        ("shape", GOOD[:3]),
        ("dtype", GOOD.astype(np.float32)),
        ("values", GOOD + (np.arange(120).reshape(4, 6, 5) == 77)),
        ("layout", np.ascontiguousarray(GOOD)),
    ],
)
def test_other_work_is_refused(word: str, result: Any) -> None:
    with pytest.raises(WrongWork, match=f"a/b/c: gridbuf .*{word} should be"):
        _check(np.asfortranarray(result) if word == "values" else result)


def test_misaligned_work_is_refused() -> None:
    strict = Work((4,), alignment_bytes=64, aligned_index=(1,))
    raw = np.empty(4 * 8 + 64, dtype=np.uint8)
    start = -(raw.ctypes.data + 8) % 64
    aligned = raw[start : start + 32].view(np.float64)
    assert _check(aligned, strict)["alignment_bytes"] >= 64
    start = (start + 8) % 64
    with pytest.raises(WrongWork, match="alignment should be 64"):
        _check(raw[start : start + 32].view(np.float64), strict)


@pytest.mark.parametrize("wrong_at", [0, 77, 1 << 21, (1 << 21) + 12345])
def test_large_work_is_sampled(wrong_at: int) -> None:
    """Single elements of millions are looked at only at both ends; a stretch is found anywhere."""
    work = Work(((1 << 21) + 20000,), values=1.0)
    right = np.ones(work.shape)
    _check(right, work)
    right[wrong_at : wrong_at + 5000] = 2.0
    with pytest.raises(WrongWork, match="values should be 1.0 .* found 2.0"):
        _check(right, work)


# Placements and blocks


extents = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@given(extents, st.data())
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
    offsets = sum(
        np.arange(extent).reshape([-1 if i == dim else 1 for i in range(len(shape))]) * stride
        for dim, (extent, stride) in enumerate(zip(shape, strides))
    )
    assert len(np.unique(offsets)) == np.prod(shape)
    assert np.max(offsets) + placement.offset_bytes < placement.span_bytes(shape)
    assert [strides[layout.index(rank)] for rank in range(len(shape))] == sorted(
        strides, reverse=True
    )


def test_padded_rows_are_an_odd_number_of_lines() -> None:
    for extent, lines in ((512, 65), (511, 65), (504, 65), (503, 63), (8, 3), (7, 1)):
        row, item = Placement("float64", (0, 1), "lines").strides_bytes((3, extent))
        assert (row, item) == (lines * LINE_BYTES, 8), "at least a byte of padding"


def test_a_copy_case_is_held_against_its_source_and_its_padding() -> None:
    """With the real memory: right copies pass, others and those that touch padding do not."""
    target = Placement("float64", (1, 0), "lines")
    case = copies.copy_case("copy/8/x/10", (20, 30), target, promises=())
    src = memory.array("source", case.work.shape, Placement("float64", (0, 1)))
    dst = memory.array("target", case.work.shape, target)
    assert src.flags.c_contiguous
    assert dst.strides == (8, 192)
    memory.poison(target.span_bytes(case.work.shape))
    with pytest.raises(WrongWork, match=r"copy/8/x/10: .* values should be"):
        check_work(case, case.entries[0], dst)
    dst[...] = src
    assert check_work(case, case.entries[0], dst)["strides_bytes"] == (8, 192)
    memory.block("target", 192)[20 * 8] = 0
    with pytest.raises(WrongWork, match=r"padding should be 0xa5 behind every row, found .* row 0"):
        check_work(case, case.entries[0], dst)
    info = memory.info()
    assert info["block_bytes"] >= 2 * src.nbytes
    del src, dst
    memory.release()
    assert memory.info()["block_bytes"] == 0


def test_all_contenders_share_their_memory() -> None:
    """Of a conversion, too, where the yardstick writes more bytes than the conversion does."""
    memory.release()
    shape = (512, 512, 64)  # 64 MiB, so that the target's block is too small for the mean of both
    source = Placement("float64", (0, 1, 2))
    case = copies.copy_case(
        "cast/x", shape, Placement("float32", (2, 1, 0)), source=source, promises=()
    )
    module = types.SimpleNamespace(
        copyto=np.copyto, memcpy=None, wake_helper=None, from_numpy=lambda array: array
    )
    names = [dict(entry.names(module)) for entry in case.entries + case.yardsticks]  # type: ignore[arg-type]
    for role in ("src", "dst"):
        starts = {one[role].__array_interface__["data"][0] for one in names if role in one}
        assert len(starts) == 1
    del names
    memory.release()


def test_a_yardstick_must_move_the_bytes() -> None:
    case = copies.copy_case("copy/8/x/10", (20, 30), Placement("float64", (1, 0)), promises=())
    entry = case.yardsticks[0]
    pair = (np.arange(64, dtype=np.uint8), np.arange(64, dtype=np.uint8))
    assert check_yardstick(case, entry, pair)["shape"] == (64,)
    pair[1][63] = 0
    with pytest.raises(WrongWork, match="did not move 64 bytes"):
        check_yardstick(case, entry, pair)


def test_blocks_lie_on_huge_pages() -> None:
    """Shared mappings, which Python makes unless told, would have small ones."""
    policy = machine.describe()["huge_pages"]
    if policy not in ("always", "madvise"):
        pytest.skip(f"the system gives no huge pages (policy {policy}); `madvise` would")
    memory.block("target", 64 << 20)
    assert memory.info()["huge_page_fraction"] > 0.5
    memory.release()


def test_the_source_has_no_equal_words() -> None:
    words = memory.block("source", 1 << 16).view(np.uint64)
    assert len(np.unique(words)) == len(words)
    memory.write_numbers("float32", 1 << 16)
    assert np.isfinite(memory.block("source", 1 << 16).view(np.float32)).all()
    del words
    memory.release()


@pytest.mark.parametrize(
    "export",
    [
        lambda a: a,
        memoryview,
        lambda a: a.__array_interface__,
        lambda a: a.__dlpack__(),
        lambda a: a.__dlpack__(max_version=(1, 0)),
    ],
    ids=["array", "memoryview", "interface", "capsule", "versioned"],
)
def test_every_kind_of_export_can_be_read(export: Any) -> None:
    view = view_of(export(GOOD))
    np.testing.assert_array_equal(view, GOOD)
    assert view.strides == GOOD.strides


# The table of cases


def test_ids_are_unique_and_every_case_says_what_it_compares() -> None:
    assert len({case.id for case in ALL_CASES}) == len(ALL_CASES)
    for case in ALL_CASES:
        assert len(case.note) > 40
        assert len(case.entries + case.yardsticks) > 1


def test_the_matrix_is_whole() -> None:
    """All 3-d permutations, of every item size, shape and padding; arrays of 64 MiB and more."""
    matrix = [case for case in ALL_CASES if re.fullmatch(r"copy/\d+/\w+\.\w+/\d\d\d", case.id)]
    found = {tuple(case.id.split("/")[1:]) for case in matrix}
    layouts = {"".join(map(str, p)) for p in permutations(range(3))}
    for size in ("1", "2", "4", "8", "16"):
        for kind in ("lines.dense", "pow2.dense", "odd.dense", "stencil.dense", "tall.dense"):
            assert {layout for s, k, layout in found if (s, k) == (size, kind)} == layouts
        padded = ("stencil.lines", "tall.lines") if size in ("4", "8") else ()
        for kind in ("pow2.lines", "odd.lines", *padded):
            assert {layout for s, k, layout in found if (s, k) == (size, kind)} == layouts
    assert all(case.work.array_bytes >= 64 << 20 for case in matrix)
    assert all("copy-numpy" in case.promises for case in matrix)


@pytest.mark.parametrize(
    ("id", "promises"),
    [
        ("copy/8/lines.dense/210", {"copy-8-lines"}),
        ("copy/8/pow2.lines/021", {"copy-8-lines"}),
        ("copy/8/pow2.dense/210", {"copy-8-other", "reversed-numpy", "reversed-torch"}),
        ("copy/8/odd.dense/120", {"copy-8-other"}),
        ("copy/8/lines.off/120", {"copy-8-other"}),
        ("copy/8/odd.dense/102", set()),  # the contiguous dimension stays
        ("copy/4/lines.dense/201", {"copy-4-lines"}),
        ("copy/4/pow2.dense/201", {"copy-4-other"}),
        ("copy/2/odd.dense/201", {"copy-2"}),
        ("copy/1/odd.dense/201", set()),
        ("copy/8/4KiB/210", set()),
    ],
)
def test_copies_bear_on_the_right_promises(id: str, promises: set[str]) -> None:
    case = named(id)
    assert set(case.promises) == {"copy-numpy"} | promises


def test_sizes_reach_from_one_mebibyte_to_four_gibibytes() -> None:
    for line in ("cube", "pow2", "fill"):
        sizes = [case.work.array_bytes for case in ALL_CASES if case.group == f"sizes/{line}"]
        assert len(sizes) == 13
        assert sizes == sorted(sizes)
        assert sizes[0] == pytest.approx(1 << 20, rel=0.2)
        assert sizes[-1] == pytest.approx(4 << 30, rel=0.05)
        assert all(1.5 < b / a < 2.5 for a, b in zip(sizes, sizes[1:]))


@pytest.mark.parametrize(
    ("ratios", "met", "mean"),
    [([0.9, 0.95], True, 1.081), ([0.9, 1.05], False, 1.029), ([1.0], True, 1.0)],
)
def test_a_promise_is_judged_by_its_worst_case_whatever_the_mean(
    ratios: list[float], met: bool, mean: float
) -> None:
    def case(number: int, ratio: float) -> dict[str, Any]:
        targets = judged_case(["stencil"], {"gt4py": {"median": ratio}})
        return {"id": f"stencil/{number}", "group": "stencil", "targets": targets}

    judged = {one["id"]: one for one in judge([case(*one) for one in enumerate(ratios)])}
    found = judged["stencil"]
    assert (found["met"], found["mean"], found["cases"]) == (met, mean, len(ratios))
    assert found["cases_met"] == sum(ratio <= 1 / 0.97 for ratio in ratios)
    assert found["worst"] == pytest.approx(1 / max(ratios), abs=1e-3)
    if not met:
        words = "1 of 2 cases; median 1.026, geometric mean 1.029, worst 0.952 (stencil/1)"
        assert report.promise_words(found)[1:] == ("**missed**", words)


def test_cost_is_linear_when_no_size_costs_much_more_a_byte() -> None:
    def result(nanoseconds: list[float]) -> list[dict[str, Any]]:
        return [
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

    linear = judge(result([1.0, 2.0, 4.4]))[-1]
    assert (linear["id"], linear["met"], linear["worst"]) == ("linear", True, 1.1)
    assert judge(result([1.0, 4.0, 8.0]))[-1]["met"] is False
    assert judge([])[-1]["met"] is None


@pytest.mark.parametrize("libraries", [["numpy", "gridbuf"], ["gridbuf", "numpy", "numpy"]])
def test_malformed_cases_are_refused(libraries: list[str]) -> None:
    entries = tuple(Entry(key, "None", lambda module: {}) for key in libraries)
    with pytest.raises(ValueError, match="case x/y has the entries"):
        Case("x/y", "t", "n", Work(()), entries)


def test_filters_select_by_part_and_by_pattern() -> None:
    everything = select([], quick=False)
    assert len(select([], quick=True)) < len(everything) == len(ALL_CASES)
    assert [case.id for case in select(["copy/8/p*/210"], quick=False)] == [
        "copy/8/pow2.dense/210",
        "copy/8/pow2.lines/210",
    ]
    assert {case.chapter for case in select([], quick=False, only=["tiny", "cast"])} == {
        "tiny",
        "cast",
    }
    assert select(["memoryview"], quick=False, only=["tiny"]) == []
    assert {case.group for case in select(["exchange", "preset"], quick=True)} == {
        "exchange",
        "allocate/preset",
    }


# Formats, machine info, files


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (84.23, "84.2 ns"),
        (999.4, "999 ns"),
        (999.6, "1 µs"),
        (1214, "1.21 µs"),
        (62e6, "62 ms"),
        (2.5e9, "2.5 s"),
    ],
)
def test_times_have_three_digits_and_a_unit(nanoseconds: float, text: str) -> None:
    assert report.format_time(nanoseconds) == text


def test_speeds_are_the_inverse_of_ratios() -> None:
    assert [report.format_speed(ratio) for ratio in (1.25, 0.5, 0.04)] == ["0.80", "2.00", "25"]


def test_bandwidth_is_decimal_gigabytes() -> None:
    contender = {"library": "gridbuf", "nanoseconds": {"median": 1e9}}
    work = {"bytes_moved": 2_000_000_000}
    ratios = {"memory": _spread(1.0, 2.0, 3.0)}
    case = {"title": "a_b", "contenders": [contender], "work": work, "ratios": ratios}
    assert report.case_table([case]).splitlines() == [
        "| case | gridbuf | GB/s | of the memory |",
        "|---|--:|--:|--:|",
        r"| a\_b | 1 s | 2 | **0.50 ±50%** |",
    ]


def test_machine_facts_warn_of_disturbances() -> None:
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


def test_a_change_counts_when_the_ranges_do_not_overlap() -> None:
    def result(ratio: dict[str, float]) -> dict[str, Any]:
        return {"cases": [{"id": "a/b", "title": "t", "ratios": {"numpy": ratio}}]}

    before = result(_spread(1.0, 1.1, 1.2))
    for ratio, verdict in (
        (_spread(0.7, 0.8, 0.9), "faster"),
        (_spread(1.3, 1.4, 1.5), "slower"),
        (_spread(1.15, 1.3, 1.5), "same"),  # the ranges overlap
        (_spread(1.201, 1.205, 1.3), "same"),  # they do not, but the medians are within a tenth
    ):
        (change,) = report.changes(before, result(ratio))
        assert change.verdict == verdict
        assert bool(report.regressions([change])) == (verdict == "slower")
    assert report.changes({"cases": []}, before) == []


def test_a_faster_peer_is_no_regression_where_the_memory_tells() -> None:
    def result(memory: float, numpy: float) -> dict[str, Any]:
        ratios = {"memory": memory, "numpy": numpy}
        spreads = {key: _spread(0.99 * r, r, 1.01 * r) for key, r in ratios.items()}
        return {"cases": [{"id": "a/b", "title": "t", "ratios": spreads}]}

    before = result(1.0, 1.0)
    assert not report.regressions(report.changes(before, result(1.0, 2.0)))
    (slower,) = report.regressions(report.changes(before, result(2.0, 1.0)))
    assert (slower.id, slower.peer) == ("a/b", "memory")


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
    ("arguments", "message"),
    [
        (["run", "--filter", "no-such-case"], "matches no-such-case; `list` prints the ids"),
        (["run", "--only", "copy,nonsense"], "no chapter nonsense; there are allocate"),
        (["compare", "--fail-on-regression"], "required: OLD.json, NEW.json"),
        (["report", "no-such-file.json"], "no-such-file.json"),
        (["run", "--repeat", "0"], "rounds is 0"),
        (["compare", "no-such-file.json", "neither.json"], "no-such-file.json"),
        ([], "required: COMMAND"),
    ],
)
def test_wrong_usage_says_what_to_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_list_names_every_case_without_running_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(case.id in printed for case in ALL_CASES)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], ["--quick", "exit codes", "examples", "interquartile", "--peers", "compare"]),
        (["run"], ["--quick", "101 rounds", "PATH-copies.png"]),
        (["cpp"], ["--filter", "repetitions"]),
        (["unit-strides"], ["objdump", "--cases"]),
    ],
)
def test_help_teaches(
    command: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    for word in words:
        assert word in printed


# The C++ programs


def _program(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return str(path)


def test_cpp_command_runs_every_program_with_its_options(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    programs = [
        _program(tmp_path, name, 'echo "$0" "$@"') for name in ("a_benchmark", "b_benchmark")
    ]
    assert main(["cpp", *programs, "--quick", "--filter", "BM_Copy"]) == 0
    printed = capfd.readouterr().out
    assert all(printed.count(program) == 1 for program in programs)
    for option in ("filter=BM_Copy", "repetitions=3", "min_time=0.02", "interleaving=true"):
        assert printed.count(f"_{option}") == 2


def test_cpp_command_tells_of_a_failed_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = _program(tmp_path, "broken_benchmark", "echo no memory >&2; exit 3\n")
    assert main(["cpp", broken]) == 1
    printed = capfd.readouterr().err
    assert "no memory" in printed
    assert "broken_benchmark failed with 3" in printed
