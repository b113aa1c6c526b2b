"""The whole runner on the real libraries, with budgets too small to mean anything: no time is judged here."""

from __future__ import annotations

import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

from gridbuf_benchmarks import plot, report, results, unit_strides
from gridbuf_benchmarks.__main__ import main
from gridbuf_benchmarks.cases import ALL_CASES, select
from gridbuf_benchmarks.libraries import LIBRARIES, MEMORY
from gridbuf_benchmarks.promises import PROMISES

_YARDSTICKS = {entry.library for case in ALL_CASES for entry in case.yardsticks}
Run = tuple[dict[str, Any], Path]
QUICK = ["run", "--quick", "--repeat", "2", "--min-sample-us", "1"]


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One tiny run of all quick cases, with its JSON result and the folder of its plots."""
    folder = tmp_path_factory.mktemp("quick")
    assert (
        main([*QUICK, "--json", str(folder / "run.json"), "--plot", str(folder / "run.svg")]) == 0
    )
    return results.read(folder / "run.json"), folder


@pytest.fixture(scope="module")
def result(quick_run: Run) -> dict[str, Any]:
    return quick_run[0]


def test_result_follows_its_schema(result: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(results.schema())
    jsonschema.validate(result, results.schema())


def test_schema_refuses_broken_results(result: dict[str, Any]) -> None:
    """A zero ratio, an absent library without its remedy, a judged promise without a figure, a missing field."""
    case, absent = result["cases"][0], {"title": "x", "state": "absent", "version": None}
    silent = {**result["promises"][0], "met": True, "worst": None}
    nothing = dict.fromkeys(case["ratios"]["numpy"], 0.0)
    for broken in (
        {**result, "schema_version": 1},
        {**result, "promises": [silent]},
        {**result, "cases": []},
        {**result, "cases": [{**case, "ratios": {"numpy": nothing}}]},
        {**result, "libraries": {**result["libraries"], "torch": absent}},
        {key: value for key, value in result.items() if key != "machine"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, results.schema())


def test_every_quick_case_is_reported(result: dict[str, Any]) -> None:
    present = {key for key, info in result["libraries"].items() if info["state"] == "present"}
    cases = [case for case in select([], quick=True) if case.consumer in (None, *present)]
    assert [case["id"] for case in result["cases"]] == [case.id for case in cases]
    for stated, case in zip(cases, result["cases"]):
        rounds = 2 * max(stated.processes, 1)
        assert case["rounds"] == rounds
        for entry in case["contenders"]:
            assert len(entry["samples_nanoseconds"]) == rounds
            assert entry["rounds"] == [*range(rounds)], (
                "interleaved: each round has a sample of each"
            )
            assert entry["page_faults_per_call"] >= 0


def test_every_present_peer_has_its_ratio(result: dict[str, Any]) -> None:
    present = {key for key, info in result["libraries"].items() if info["state"] == "present"}
    assert {"gridbuf", "numpy"} <= present
    wanted = {
        case.id: {entry.library for entry in case.entries} & present
        | ({MEMORY} if case.yardsticks else set())
        for case in ALL_CASES
    }
    for case in result["cases"]:
        assert set(case["ratios"]) == wanted[case["id"]] - {"gridbuf"}


def test_the_memory_is_the_faster_yardstick(result: dict[str, Any]) -> None:
    """The ratio to the memory is that to the yardstick with the smallest median, round by round."""
    beside_memory = [case for case in result["cases"] if case["yardstick"]]
    assert len(beside_memory) > 10
    for case in beside_memory:
        contenders = {entry["library"]: entry for entry in case["contenders"]}
        sticks = {key: entry for key, entry in contenders.items() if key in _YARDSTICKS}
        medians = {key: entry["nanoseconds"]["median"] for key, entry in sticks.items()}
        assert medians[case["yardstick"]] == min(medians.values())
        quotients = [
            own / other
            for own, other in zip(
                contenders["gridbuf"]["samples_nanoseconds"],
                sticks[case["yardstick"]]["samples_nanoseconds"],
                strict=True,
            )
        ]
        assert case["ratios"][MEMORY]["median"] == pytest.approx(
            float(np.median(quotients)), rel=1e-3, abs=1e-3
        )


def test_copies_are_between_the_same_touched_blocks(result: dict[str, Any]) -> None:
    shared = [case for case in result["cases"] if case["memory"]]
    assert {case["id"].partition("/")[0] for case in shared} >= {"copy", "cast", "fill", "sizes"}
    for case in shared:
        assert case["memory"]["block_bytes"] >= case["work"]["array_bytes"]
        assert case["memory"]["page_bytes"] in (4096, 2 << 20)
        assert 0 <= case["memory"]["huge_page_fraction"] <= 1
    assert all(
        case["memory"] is None for case in result["cases"] if case["id"].startswith("allocate/")
    )


def test_ratios_are_positive_and_ordered(result: dict[str, Any]) -> None:
    for case in result["cases"]:
        for ratio in case["ratios"].values():
            assert 0 < ratio["lower_quartile"] <= ratio["median"] <= ratio["upper_quartile"]


def test_contenders_did_the_same_work(result: dict[str, Any]) -> None:
    """Judged from the result file alone: all contenders of a case agree with each other and with the case."""
    for case in result["cases"]:
        for entry in case["contenders"]:
            if entry["library"] in _YARDSTICKS:
                continue  # moves as many bytes, in no layout
            context = f"{case['id']}, {entry['library']}"
            assert entry["done"]["shape"] == case["work"]["shape"], context
            assert entry["done"]["dtype"] == case["work"]["dtype"], context
            assert entry["done"]["values_crc32"] == case["contenders"][0]["done"]["values_crc32"], (
                context
            )
            assert (entry["done"]["values_crc32"] is None) == (case["work"]["values"] is None), (
                context
            )
            assert entry["done"]["alignment_bytes"] >= case["work"]["alignment_bytes"], context
            assert _ranks(entry["done"]["strides_bytes"]) == (
                case["work"]["layout"] or _ranks(case["contenders"][0]["done"]["strides_bytes"])
            ), context


def _ranks(strides_bytes: list[int]) -> list[int]:
    return [int(rank) for rank in np.argsort(np.argsort([-stride for stride in strides_bytes]))]


def test_promises_are_judged_by_their_worst_case(result: dict[str, Any]) -> None:
    judged = {promise["id"]: promise for promise in result["promises"]}
    assert set(judged) == {*PROMISES, "linear"}
    for promise in PROMISES.values():
        cases = [case for case in result["cases"] if promise.id in _promises_of(case)]
        found = judged[promise.id]
        assert found["cases"] == len(cases)
        if not cases:
            assert found["met"] is None
            continue
        worst = max(case["ratios"][promise.peer]["median"] for case in cases)
        assert found["met"] == (worst <= promise.limit)
        assert found["worst"] == pytest.approx(promise.figure(worst), abs=1e-3)
    assert judged["allocate-small"]["words"] == "at most 1.5 × the time of NumPy"
    assert judged["copy-8-lines"]["words"] == "at least 0.8 of the speed of memcpy or memset"
    assert judged["c-table"]["cases"] == 1
    assert judged["zeros-large"]["met"] is None, "not among the quick cases"


def _promises_of(case: Mapping[str, Any]) -> set[str]:
    return {target["promise"] for target in case["targets"]}


def test_an_unoptimised_build_is_called_one(result: dict[str, Any]) -> None:
    debugging = result["libraries"]["gridbuf"]["build"]["assertions"] == "on"
    assert any("unoptimised" in warning for warning in result["warnings"]) == debugging


def test_plots_are_written(quick_run: Run) -> None:
    result, folder = quick_run
    picture = (folder / "run.svg").read_text()
    for case in result["cases"]:
        elsewhere = case["id"].startswith(("copy/", "sizes/"))
        assert (case["title"].replace("&", "&amp;") in picture) != elsewhere
    assert "512×512×80, padded" in (folder / "run-copies.svg").read_text()
    assert "into the reversed layout" in (folder / "run-sizes.svg").read_text()
    drawn = plot.save(result, folder / "one.png")
    assert drawn == [folder / f"one{name}.png" for name in ("", "-copies", "-sizes")]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_a_plot_without_cases_is_not_drawn(result: dict[str, Any], tmp_path: Path) -> None:
    some = {**result, "cases": [case for case in result["cases"] if case["id"] == "tiny/row"]}
    assert plot.save(some, tmp_path / "some.png") == [tmp_path / "some.png"]


@pytest.mark.parametrize("key", ["gridbuf_dlpack", "torch", "gt4py"])
def test_peer_takes_part(result: dict[str, Any], key: str) -> None:
    library = LIBRARIES[key]
    if importlib.util.find_spec(library.module.partition(".")[0]) is None:
        pytest.skip(
            f"{library.title} is not installed, so nothing was compared with it; {library.install}"
        )
    assert result["libraries"][key]["state"] == "present"
    assert any(key in case["ratios"] for case in result["cases"])


def test_absent_peer_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(
        sys.modules, "torch", None
    )  # what the import system itself takes for "not there"
    path = tmp_path / "run.json"
    assert main([*QUICK, "--filter", "small/empty", "--json", str(path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "not compared: PyTorch" in printed
    assert "./bazelw --peers" in printed
    result = results.read(path)
    assert result["libraries"]["torch"]["state"] == "absent"
    assert "torch" not in result["cases"][0]["ratios"]
    jsonschema.validate(result, results.schema())


def test_a_case_whose_consumer_is_absent_is_named_and_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    path = tmp_path / "run.json"
    assert main([*QUICK, "--filter", "exchange/*from_dlpack", "--json", str(path)]) == 0
    result = results.read(path)
    assert [case["id"] for case in result["cases"]] == ["exchange/from_dlpack"]
    assert "torch.from_dlpack(x) was not run: it needs torch" in result["warnings"]


def test_without_gridbuf_there_is_nothing_to_measure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gridbuf", None)
    with pytest.raises(SystemExit) as stop:
        main([*QUICK, "--filter", "small/empty"])
    assert stop.value.code == 2
    assert "./bazelw run //benchmarks" in capsys.readouterr().err


def test_table_names_target_and_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--filter", "small/empty", "--filter", "preset/small"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "empty of 4 KiB: at most 1.5 × the time of NumPy" in printed
    assert "so gridbuf does more here" in printed


def test_comparison_with_an_old_result(
    quick_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An old result whose ratios are a thousand times today's: all that is common became faster."""
    result, folder = quick_run
    old = json.loads(json.dumps(result))
    for case in old["cases"]:
        case["ratios"] = {key: _scaled(ratio, 1000) for key, ratio in case["ratios"].items()}
    results.write(old, tmp_path / "old.json")
    assert main(["compare", str(tmp_path / "old.json"), str(folder / "run.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("faster") == sum(len(case["ratios"]) for case in result["cases"])
    assert "-100%" in printed
    assert "no case became slower" in printed


def _scaled(spread: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: value if name == "count" else value * factor for name, value in spread.items()}


@pytest.mark.parametrize(("asked", "code"), [([], 0), (["--fail-on-regression"], 3)])
def test_regressions_fail_only_if_asked(
    quick_run: Run, tmp_path: Path, asked: list[str], code: int
) -> None:
    """An old result that was a thousand times as fast, compared with a stored one."""
    result, folder = quick_run
    old = json.loads(json.dumps(result))
    for case in old["cases"]:
        case["ratios"] = {key: _scaled(ratio, 1e-3) for key, ratio in case["ratios"].items()}
    results.write(old, tmp_path / "old.json")
    arguments = ["compare", str(tmp_path / "old.json"), str(folder / "run.json")]
    assert main([*arguments, *asked]) == code


def test_document_is_made_from_a_run(quick_run: Run, tmp_path: Path) -> None:
    result, folder = quick_run
    path = tmp_path / "performance.md"
    picture = tmp_path / "pictures" / "run.png"
    picture.parent.mkdir()
    arguments = [
        "report",
        str(folder / "run.json"),
        "--plot",
        str(picture),
        "--markdown",
        str(path),
    ]
    assert main(arguments) == 0
    first = path.read_text()
    assert "{{" not in first and "{%" not in first
    for word in (result["machine"]["cpu_model"], "](pictures/run-copies.png)", "conformance suite"):
        assert word in first
    for case in result["cases"]:
        assert f"| {report.plain(case['title'])} |" in first
    for promise in result["promises"]:
        assert f"| {report.plain(promise['text'])}: " in first
    tables = [line for line in first.splitlines() if line.startswith("| ")]
    assert len(tables) > len(result["cases"])
    assert main(arguments) == 0
    assert path.read_text() == first, "nothing comes from anywhere but the result and the template"


def test_a_gap_that_nothing_fills_is_an_error(result: dict[str, Any]) -> None:
    environment = report.template().environment
    for gap in ("{{ nonsense }}", "{{ ratio('tiny/row') }}"):
        with pytest.raises((jinja2.UndefinedError, TypeError)):
            environment.from_string(gap).render(report.gaps(result))
    text = "{{ ratio('tiny/row', 'numpy') }} {{ ratio('no/such', 'numpy') }}"
    assert environment.from_string(text).render(report.gaps(result)).endswith("× –")


_LOOPS = """
extern "C" void known(int n, const double* a, double* b) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) b[i] = 2.0 * a[i];
}
extern "C" void unknown(int n, long s, const double* a, double* b) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) b[i * s] = 2.0 * a[i * s];
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the instructions of x86-64")
@pytest.mark.parametrize("loop", ["known", "unknown"])
def test_wide_accesses_are_found_where_the_compiler_knows_the_stride(
    loop: str, tmp_path: Path
) -> None:
    source, library = tmp_path / "loops.cc", tmp_path / "loops.so"
    text = [part for part in _LOOPS.split('extern "C"') if f"void {loop}(" in part]
    source.write_text('extern "C"' + text[0])
    # At -O3 g++ adds a second loop for a stride of 1, where it sees through the loop.
    options = ["-O3", "-fno-version-loops-for-strides", "-fopenmp", "-fPIC", "-shared"]
    command = ["g++", *options, str(source), "-o", str(library)]
    subprocess.run(command, check=True, timeout=60)
    counted = unit_strides.accesses(library)
    assert counted[8] >= 2
    assert (counted.get(16, 0) >= 2) == (loop == "known")


@pytest.mark.parametrize(
    ("instruction", "moved"),
    [
        ("movsd  (%r9,%rax,1),%xmm0", 8),
        ("movhpd %xmm0,(%rcx,%rdi,1)", 8),
        ("vmulsd 0x8(%rax),%xmm1,%xmm2", 8),
        ("vaddpd (%rax){1to4},%ymm1,%ymm2", 8),
        ("vgatherdpd (%rax,%xmm1,8),%ymm0{%k1}", 8),
        ("mulpd  (%rax),%xmm1", 16),
        ("vinsertf128 $0x1,(%rax),%ymm0,%ymm0", 16),
        ("movupd (,%rax,8),%xmm1", 16),
        ("vmovupd %ymm0,0x20(%rbp,%rax,8)", 32),
        ("vfmadd231pd (%rax),%zmm1,%zmm2", 64),
        ("movapd %xmm1,%xmm2", None),
        ("movaps %xmm0,0x10(%rsp)", None),
        ("movsd  0x1f67d(%rip),%xmm5", None),
        ("mov    (%rsp),%rax", None),
    ],
)
def test_an_access_is_as_wide_as_what_it_moves_at_once(
    instruction: str, moved: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"0000 <loop._omp_fn.0>:\n    79b4:\t{instruction}\n"
    printed = subprocess.CompletedProcess([], 0, stdout=text)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: printed)
    assert dict(unit_strides.accesses(Path("any.so"))) == ({} if moved is None else {moved: 1})


def test_the_headers_are_told_of_unit_strides_and_otherwise_as_they_were(tmp_path: Path) -> None:
    gridtools_cpp = pytest.importorskip("gridtools_cpp", reason="GT4Py is not installed")
    own = Path(gridtools_cpp.get_include_dir())
    made = unit_strides.headers_with_unit_strides(tmp_path / "include")
    files = [path.relative_to(own) for path in own.rglob("*.hpp")]
    changed = [path for path in files if (own / path).read_text() != (made / path).read_text()]
    assert [path.name for path in changed] == ["python_sid_adapter.hpp"]
    before, after = ((folder / changed[0]).read_text() for folder in (own, made))
    assert after.replace("UnitStrideDim = 0", "UnitStrideDim = size_t(-1)") == before
