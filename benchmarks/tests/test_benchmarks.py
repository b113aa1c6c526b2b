"""The whole runner on the real libraries, with budgets too small to mean anything: no time is judged here."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest

from gridbuf_benchmarks import plot, report, results
from gridbuf_benchmarks.__main__ import main
from gridbuf_benchmarks.cases import ALL_CASES, named, select
from gridbuf_benchmarks.libraries import LIBRARIES, MEMORY, PEERS
from gridbuf_benchmarks.promises import PROMISES

_YARDSTICKS = {entry.library for case in ALL_CASES for entry in case.yardsticks}
QUICK = ["run", "--quick", "--repeat", "2", "--min-sample-us", "1"]
Result = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JSON result, the page and the charts of one tiny run of all quick cases."""
    folder = tmp_path_factory.mktemp("quick")
    made = ["--json", str(folder / "run.json"), "--markdown", str(folder / "page.md")]
    assert main([*QUICK, *made]) == 0
    return folder


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    return results.read(folder / "run.json")


def _present(result: Result) -> set[str]:
    return {key for key, info in result["libraries"].items() if info["state"] == "present"}


def test_every_quick_case_is_reported(result: Result) -> None:
    present = _present(result)
    cases = [case for case in select([], quick=True) if case.consumer in (None, *present)]
    assert [case["id"] for case in result["cases"]] == [case.id for case in cases]
    for stated, case in zip(cases, result["cases"]):
        rounds = 2 * max(stated.processes, 1)
        assert case["rounds"] == rounds
        for entry in case["contenders"]:
            assert len(entry["samples_nanoseconds"]) == rounds
            assert entry["rounds"] == [*range(rounds)], "each round has a sample of each"
            assert entry["page_faults_per_call"] >= 0


def test_every_present_peer_has_its_ratio(result: Result) -> None:
    present = _present(result)
    assert {"gridbuf", "numpy"} <= present
    for case in result["cases"]:
        stated = named(case["id"])
        libraries = {entry.library for entry in stated.entries + stated.yardsticks}
        memory = {MEMORY} if stated.yardsticks else set()
        assert set(case["ratios"]) == (libraries & present & {*PEERS}) | memory
        for ratio in case["ratios"].values():
            assert 0 < ratio["lower_quartile"] <= ratio["median"] <= ratio["upper_quartile"]


def test_the_memory_is_the_fastest_yardstick(result: Result) -> None:
    """The ratio to the memory is that to the yardstick with the smallest median, round by round."""
    cases = [case for case in result["cases"] if case["yardstick"]]
    assert len(cases) > 10
    for case in cases:
        of = {entry["library"]: entry for entry in case["contenders"]}
        medians = {key: of[key]["nanoseconds"]["median"] for key in {*of} & _YARDSTICKS}
        assert medians[case["yardstick"]] == min(medians.values())
        own, other = (of[key]["samples_nanoseconds"] for key in ("gridbuf", case["yardstick"]))
        median = float(np.median(np.divide(own, other)))
        assert case["ratios"][MEMORY]["median"] == pytest.approx(median, rel=1e-3, abs=1e-3)


def test_copies_are_between_the_same_touched_blocks(result: Result) -> None:
    shared = [case for case in result["cases"] if case["memory"]]
    assert {case["id"].partition("/")[0] for case in shared} >= {"copy", "cast", "fill", "sizes"}
    assert not any(case["id"].startswith("allocate/") for case in shared)
    for case in shared:
        assert case["memory"]["block_bytes"] >= case["work"]["array_bytes"]
        assert case["memory"]["page_bytes"] in (4096, 2 << 20)
        assert 0 <= case["memory"]["huge_page_fraction"] <= 1


def test_contenders_did_the_same_work(result: Result) -> None:
    """Judged from the result file alone: all contenders of a case agree with each other and with the case."""

    def ranks(strides_bytes: list[int]) -> list[int]:
        return [int(rank) for rank in np.argsort(np.argsort([-stride for stride in strides_bytes]))]

    for case in result["cases"]:
        work, first = case["work"], case["contenders"][0]["done"]
        for entry in case["contenders"]:
            if entry["library"] in _YARDSTICKS:
                continue  # moves as many bytes, in no layout
            done, context = entry["done"], f"{case['id']}, {entry['library']}"
            assert (done["shape"], done["dtype"]) == (work["shape"], work["dtype"]), context
            assert done["values_crc32"] == first["values_crc32"], context
            assert (done["values_crc32"] is None) == (work["values"] is None), context
            assert done["alignment_bytes"] >= work["alignment_bytes"], context
            layout = work["layout"] or ranks(first["strides_bytes"])
            assert ranks(done["strides_bytes"]) == layout, context


def test_promises_are_judged_by_their_worst_case(result: Result) -> None:
    judged = {promise["id"]: promise for promise in result["promises"]}
    assert set(judged) == {*PROMISES, "linear"}
    for promise in PROMISES.values():
        reached = [
            case["ratios"][promise.peer]["median"]
            for case in result["cases"]
            if promise.id in {target["promise"] for target in case["targets"]}
        ]
        found = judged[promise.id]
        assert found["cases"] == len(reached)
        counted = sorted(reached)[: math.ceil(promise.share * len(reached))]
        assert found["met"] == (max(counted) <= promise.limit if reached else None)
        if reached:
            assert found["worst"] == pytest.approx(promise.figure(max(counted)), abs=1e-3)
    assert judged["create-numpy"]["words"] == "at most 4 × the time of NumPy"
    assert judged["moved-8"]["words"] == "at least 0.5 of the speed of memcpy or memset"
    assert judged["moved-torch-most"]["words"].endswith("PyTorch, in 90% of the cases")
    assert judged["zeros-large"]["met"] is None, "not among the quick cases"


def test_an_unoptimised_build_is_called_one(result: Result) -> None:
    debugging = result["libraries"]["gridbuf"]["build"]["assertions"] == "on"
    assert any("unoptimised" in warning for warning in result["warnings"]) == debugging


@pytest.mark.parametrize("key", ["gridbuf_dlpack", "torch", "gt4py"])
def test_peer_takes_part(result: Result, key: str) -> None:
    library = LIBRARIES[key]
    if importlib.util.find_spec(library.module.partition(".")[0]) is None:
        pytest.skip(f"{library.title} is not installed, so not compared; {library.install}")
    assert result["libraries"][key]["state"] == "present"
    assert any(key in case["ratios"] for case in result["cases"])


# What is absent


def test_absent_peer_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # None is what the import system itself takes for "not there".
    monkeypatch.setitem(sys.modules, "torch", None)
    chosen = ["--filter", "small/empty", "--filter", "preset/small", "--filter", "*from_dlpack"]
    assert main([*QUICK, *chosen, "--only", "allocate,exchange", "--json", f"{tmp_path}/r"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (
        "not compared: PyTorch",
        "./bazelw --peers",
        "torch.from_dlpack(x) was not run: it needs torch",
        "empty: a small array",
        "at most 4 × the time of NumPy",
        "so gridbuf does more here",
    ):
        assert text in printed
    result = results.read(tmp_path / "r")
    assert result["libraries"]["torch"]["state"] == "absent"
    assert not any("torch" in case["ratios"] for case in result["cases"])
    assert "exchange/torch.from_dlpack" not in {case["id"] for case in result["cases"]}


def test_without_gridbuf_there_is_nothing_to_measure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gridbuf", None)
    with pytest.raises(SystemExit) as stop:
        main([*QUICK, "--filter", "small/empty"])
    assert stop.value.code == 2
    assert "./bazelw run //benchmarks" in capsys.readouterr().err


# What is made from a result


@pytest.mark.parametrize(
    ("factor", "asked", "code"),
    [(1000, [], 0), (1e-3, [], 0), (1e-3, ["--fail-on-regression"], 3)],
)
def test_comparison_with_an_old_result(
    result: Result,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    asked: list[str],
    code: int,
) -> None:
    """The ratios of the old result are a thousand times today's, or a thousandth."""
    old = json.loads(json.dumps(result))
    for case in old["cases"]:
        case["ratios"] = {key: _scaled(ratio, factor) for key, ratio in case["ratios"].items()}
    results.write(old, folder / "old.json")
    assert main(["compare", str(folder / "old.json"), str(folder / "run.json"), *asked]) == code
    printed = capsys.readouterr().out
    if factor > 1:
        assert printed.count("faster") == sum(len(case["ratios"]) for case in result["cases"])
        assert "-100%" in printed
    assert ("no case became slower" in printed) == (factor > 1)


def _scaled(spread: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: value if name == "count" else value * factor for name, value in spread.items()}


def test_page_charts_and_tables_are_made_from_a_result(result: Result, folder: Path) -> None:
    charts = {name: (folder / f"page/{name}.svg").read_text() for name in plot.names(result)}
    assert {"small", "layouts", "sizes", "large"} <= {*charts}
    page = (folder / "page.md").read_text()
    assert "{{" not in page and "{%" not in page
    for text in (
        result["machine"]["cpu_model"],
        *(f"](page/{name}.svg)" for name in charts),
        *(f"| {report.plain(promise['text'])} |" for promise in result["promises"]),
    ):
        assert text in page
    for title in ("np.asarray(x)", "limit of a promise", "÷ NumPy"):
        assert title in charts["small"]
    for name, count in (
        ("results", sum(len(case["contenders"]) for case in result["cases"])),
        ("cases", len(result["cases"])),
    ):
        with (folder / f"page/{name}.csv").open() as file:
            assert len([*csv.DictReader(file)]) == count
    before = {path: path.read_bytes() for path in folder.rglob("page/*")}
    assert main(["report", str(folder / "run.json"), "--markdown", str(folder / "page.md")]) == 0
    assert (folder / "page.md").read_text() == page
    assert all(path.read_bytes() == content for path, content in before.items())


def test_a_summary_has_what_reports_charts_and_comparisons_read(
    result: Result, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, summary = folder / "run.json", folder / "summary.json"
    assert main(["report", str(whole), "--summary", str(summary)]) == 0
    printed = capsys.readouterr().out
    assert summary.stat().st_size < whole.stat().st_size / 2
    short = results.read(summary)
    assert report.page(short, "page") == report.page(result, "page")
    assert report.tables(short) == report.tables(result)
    for charts, of in (("of-whole", result), ("of-summary", short)):
        plot.save(of, folder / charts)
    for path in (folder / "of-whole").iterdir():
        assert path.read_bytes() == (folder / "of-summary" / path.name).read_bytes()
    assert main(["report", str(summary)]) == 0
    assert capsys.readouterr().out == printed
    assert main(["compare", str(whole), str(summary), "--fail-on-regression"]) == 0
    assert "no case became slower" in capsys.readouterr().out


def test_a_chart_without_cases_is_not_drawn(result: Result, tmp_path: Path) -> None:
    some = {**result, "cases": [case for case in result["cases"] if case["id"] == "tiny/row"]}
    assert plot.save(some, tmp_path) == [tmp_path / "small.svg"]
    assert "sizes.svg" not in report.page(some, "page")


def test_a_gap_that_nothing_fills_is_an_error(result: Result) -> None:
    environment = report.template().environment
    for gap in ("{{ nonsense }}", "{{ ratio('tiny/row') }}"):
        with pytest.raises((jinja2.UndefinedError, TypeError)):
            environment.from_string(gap).render(report.gaps(result))
    text = "{{ ratio('tiny/.*', 'numpy') }}, {{ ratio('no/such', 'numpy') }}"
    low, high = (
        environment.from_string(text).render(report.gaps(result)).split(", ")[0].split(" to ")
    )
    assert float(low) < float(high)
    assert environment.from_string(text).render(report.gaps(result)).endswith(", –")
