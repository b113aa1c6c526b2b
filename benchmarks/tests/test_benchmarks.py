"""The whole runner on the real libraries, with budgets too small to mean anything: no time is judged here."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

from gridbuf_benchmarks import cli, markdown, plot, results
from gridbuf_benchmarks.cases import ALL_CASES, select
from gridbuf_benchmarks.libraries import LIBRARIES

QUICK = ["--quick", "--repeat", "2", "--min-sample-us", "1"]


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """One tiny run of all quick cases, with its JSON result and the folder of its plots."""
    folder = tmp_path_factory.mktemp("quick")
    assert (
        cli.main([*QUICK, "--json", str(folder / "run.json"), "--plot", str(folder / "run")]) == 0
    )
    return results.read(folder / "run.json"), folder


def test_result_follows_its_schema(quick_run: tuple[dict[str, Any], Path]) -> None:
    result, _ = quick_run
    jsonschema.Draft202012Validator.check_schema(results.schema())
    jsonschema.validate(result, results.schema())


def test_every_quick_case_is_reported(quick_run: tuple[dict[str, Any], Path]) -> None:
    result, _ = quick_run
    present = {key for key, facts in result["libraries"].items() if facts["state"] == "present"}
    cases = [case for case in select([], quick=True) if case.consumer in (None, *present)]
    assert [case["id"] for case in result["cases"]] == [case.id for case in cases]
    for case in result["cases"]:
        assert case["rounds"] == 2
        assert all(len(entry["samples_nanoseconds"]) == 2 for entry in case["contenders"])


def test_every_present_peer_has_its_ratio(quick_run: tuple[dict[str, Any], Path]) -> None:
    result, _ = quick_run
    present = {key for key, facts in result["libraries"].items() if facts["state"] == "present"}
    assert {"gridbuf", "numpy"} <= present
    wanted = {case.id: {entry.library for entry in case.entries} & present for case in ALL_CASES}
    for case in result["cases"]:
        assert set(case["ratios"]) == wanted[case["id"]] - {"gridbuf"}


def test_ratios_are_positive_and_ordered(quick_run: tuple[dict[str, Any], Path]) -> None:
    result, _ = quick_run
    for case in result["cases"]:
        for ratio in case["ratios"].values():
            assert 0 < ratio["lower_quartile"] <= ratio["median"] <= ratio["upper_quartile"]


def test_contenders_did_the_same_work(quick_run: tuple[dict[str, Any], Path]) -> None:
    """Judged from the result file alone: all contenders of a case agree with each other and with the case."""
    result, _ = quick_run
    for case in result["cases"]:
        for entry in case["contenders"]:
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


def test_target_of_the_small_allocation_is_judged(quick_run: tuple[dict[str, Any], Path]) -> None:
    result, _ = quick_run
    targets = {case["id"]: case["target"] for case in result["cases"] if case["target"]}
    assert {case for case in targets if not case.startswith("storage/")} == {
        "allocate/small/empty",
        "exchange/asarray",
        "exchange/from_dlpack",
        "exchange/as_buffer",
        "exchange/c_table",
    }
    target = targets["allocate/small/empty"]
    assert (target["peer"], target["ratio"]) == ("numpy", 1.5)
    assert target["met"] == (target["reached"] <= 1.5)
    assert targets["exchange/c_table"]["peer"] == "gridbuf_dlpack"


def test_an_unoptimised_build_is_called_one(quick_run: tuple[dict[str, Any], Path]) -> None:
    result, _ = quick_run
    debugging = result["libraries"]["gridbuf"]["build"]["assertions"] == "on"
    assert any("unoptimised" in warning for warning in result["warnings"]) == debugging


def test_plots_are_written(quick_run: tuple[dict[str, Any], Path]) -> None:
    result, folder = quick_run
    assert (folder / "run.png").read_bytes().startswith(b"\x89PNG")
    picture = (folder / "run.svg").read_text()
    for case in result["cases"]:
        assert case["title"].replace("&", "&amp;") in picture
    assert plot.save(result, folder / "one.svg") == [folder / "one.svg"]
    assert not (folder / "one.png").exists()


@pytest.mark.parametrize("key", [key for key in LIBRARIES if key not in ("gridbuf", "numpy")])
def test_peer_takes_part(quick_run: tuple[dict[str, Any], Path], key: str) -> None:
    library = LIBRARIES[key]
    if importlib.util.find_spec(library.distribution) is None:
        pytest.skip(
            f"{library.title} is not installed, so nothing was compared with it; {library.install}"
        )
    result, _ = quick_run
    assert result["libraries"][key]["state"] == "present"
    assert any(key in case["ratios"] for case in result["cases"])


def test_absent_peer_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(
        sys.modules, "torch", None
    )  # what the import system itself takes for "not there"
    path = tmp_path / "run.json"
    assert cli.main([*QUICK, "--filter", "small/empty", "--json", str(path)]) == 0
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
    assert cli.main([*QUICK, "--filter", "exchange/*from_dlpack", "--json", str(path)]) == 0
    result = results.read(path)
    assert [case["id"] for case in result["cases"]] == ["exchange/from_dlpack"]
    assert "torch.from_dlpack(x) was not run: it needs torch" in result["warnings"]


def test_without_gridbuf_there_is_nothing_to_measure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gridbuf", None)
    with pytest.raises(SystemExit) as stop:
        cli.main([*QUICK, "--filter", "small/empty"])
    assert stop.value.code == 2
    assert "./bazelw run //benchmarks" in capsys.readouterr().err


def test_table_names_target_and_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*QUICK, "--filter", "small/empty", "--filter", "preset/small"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "target: empty 8×8×8 at most 1.5 × NumPy" in printed
    assert "so gridbuf does more here" in printed


def test_comparison_with_an_old_result(
    quick_run: tuple[dict[str, Any], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An old result whose ratios are a thousand times today's: everything common got faster."""
    result, _ = quick_run
    old = json.loads(json.dumps(result))
    for case in old["cases"]:
        case["ratios"] = {key: _scaled(ratio, 1000) for key, ratio in case["ratios"].items()}
    results.write(old, tmp_path / "old.json")
    assert (
        cli.main([*QUICK, "--filter", "small/zeros", "--compare", str(tmp_path / "old.json")]) == 0
    )
    printed = capsys.readouterr().out
    assert printed.count("faster") >= 1 + len(result["cases"][0]["ratios"])
    assert "-100%" in printed


def _scaled(spread: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: value * factor for name, value in spread.items()}


def test_result_is_recorded_between_the_markers(
    quick_run: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    result, _ = quick_run
    document = tmp_path / "performance.md"
    document.write_text(f"above\n{markdown.BEGIN}\nold\n{markdown.END}\nbelow\n")
    markdown.record(result, document)
    first = document.read_text()
    assert first.startswith("above\n") and first.endswith("\nbelow\n")
    assert "old" not in first.splitlines()
    rows = [line for line in first.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(result["cases"])
    assert len({row.count("|") for row in rows}) == 1
    markdown.record(result, document)
    assert document.read_text() == first, "recording again replaces"
    document.write_text("no markers")
    with pytest.raises(ValueError, match="performance.md has no lines"):
        markdown.record(result, document)
