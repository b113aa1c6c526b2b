"""Runs cases and records them in the JSON result, which report, plots and comparison read.

`write` keeps every sample. `write_summary` keeps what the three read, in a tenth of the size: the form of a record that is
committed. `read` takes both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

from gridbuf_benchmarks import machine, memory
from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY, PEERS, version
from gridbuf_benchmarks.promises import PROMISES, judge, judged_case
from gridbuf_benchmarks.runner import Measured, measure_case, mpiexec
from gridbuf_benchmarks.timing import Budget, ratio_of, spread_of

SCHEMA = "gridbuf.benchmarks"
SCHEMA_VERSION = 2
"""The version of the format: one more when a field changes its meaning or is removed, not for new fields."""

SUMMARY_SCHEMA = "gridbuf.benchmarks.summary"
SUMMARY_VERSION = 1
_WORK = ("shape", "dtype", "layout", "array_bytes", "bytes_moved")
_SPREAD = ("median", "lower_quartile", "upper_quartile", "count")
_COLUMNS = (
    "id",
    "title",
    "note",
    *_WORK,
    "rounds",
    "yardstick",
    "promises",
    "contenders",
    "ratios",
)


def run(
    cases: Sequence[Case],
    modules: Mapping[str, ModuleType],
    missing: Mapping[str, str],
    budget: Budget,
    *,
    quick: bool,
    progress: Callable[[Case], None] = lambda case: None,
) -> dict[str, Any]:
    """Runs the cases in order and returns the whole result, as it is written to a file.

    Raises:
      WrongWork, RuntimeError: see `measure_case`.
    """
    info = machine.describe()
    left_out = _left_out(cases, modules)
    started = time.perf_counter()
    done = []
    for case in cases:
        if case.id not in left_out:
            if case.work.target is None:
                memory.release()  # allocations find the memory that a user's would
            progress(case)
            done.append(_case(case, measure_case(case, modules, budget)))
    memory.release()
    warnings = machine.disturbances(info) + list(left_out.values())
    if modules[BASELINE].show_config("dict")["build"].get("assertions") != "off":
        warnings.append(
            "gridbuf's extension is an unoptimised build (its assertions are on): its times mean nothing; "
            "`./bazelw run //benchmarks` and a wheel are optimised"
        )
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - started, 1),
        "quick": quick,
        "budget": {key: value for key, value in asdict(budget).items() if value != float("inf")},
        "machine": info,
        "libraries": {key: _library(key, modules, missing) for key in LIBRARIES},
        "warnings": warnings,
        "promises": judge(done),
        "cases": done,
    }


def _left_out(cases: Sequence[Case], modules: Mapping[str, ModuleType]) -> dict[str, str]:
    """The cases that cannot run here, by id, each with the reason."""
    available = memory.available_bytes()
    reasons = {}
    for case in cases:
        if case.consumer not in (None, *modules):
            reasons[case.id] = f"{case.title} was not run: it needs {case.consumer}"
        elif case.ranks > 1 and mpiexec() is None:
            reasons[case.id] = f"{case.title} was not run: it needs an mpiexec; ./bazelw --peers"
        elif case.memory_bytes > available:
            wanted, there = case.memory_bytes / 2**30, available / 2**30
            reasons[case.id] = (
                f"{case.title} was not run: it needs {wanted:.1f} GiB of memory, {there:.1f} GiB are available"
            )
    return reasons


def _case(case: Case, measured: Measured) -> dict[str, Any]:
    """A case in the result, from its samples and what each entry did."""
    samples, did = measured
    times = {key: _rounded(spread_of(one.nanoseconds)) for key, one in samples.items()}
    entries = [entry for entry in case.entries + case.yardsticks if entry.library in samples]
    sticks = [entry.library for entry in case.yardsticks if entry in entries]
    fastest = min(sticks, key=lambda key: times[key]["median"], default=None)
    peers = {entry.library: entry.library for entry in entries if entry.library in PEERS}
    if fastest is not None:
        peers[MEMORY] = fastest
    ratios = {
        name: _rounded(ratio_of(samples[BASELINE], samples[key])) for name, key in peers.items()
    }
    return {
        "id": case.id,
        "group": case.group,
        "title": case.title,
        "note": case.note,
        "work": case.work.to_json(),
        "memory": None if case.work.target is None else memory.info(),
        "rounds": len(samples[BASELINE].rounds),
        "contenders": [
            {
                "library": entry.library,
                "statement": entry.statement,
                "note": entry.note,
                "done": did[entry.library],
                "loops_per_sample": one.loops,
                "nanoseconds": times[entry.library],
                "samples_nanoseconds": [float(f"{value:.5g}") for value in one.nanoseconds],
                "rounds": one.rounds,
                "page_faults_per_call": round(spread_of(one.page_faults)["median"] / one.loops, 3),
            }
            for entry in entries
            for one in [samples[entry.library]]
        ],
        "yardstick": fastest,
        "ratios": ratios,
        "targets": judged_case(case.promises, ratios),
    }


def _library(
    key: str, modules: Mapping[str, ModuleType], missing: Mapping[str, str]
) -> dict[str, Any]:
    info: dict[str, Any] = {"title": LIBRARIES[key].title, "state": "not needed", "version": None}
    if key in modules:
        info |= {"state": "present", "version": version(key)}
        if key == BASELINE:
            info["build"] = dict(modules[key].show_config("dict")["build"])
        if key == "torch":
            info["threads"] = modules[key].get_num_threads()
    elif key in missing:
        info |= {"state": "absent", "reason": missing[key], "install": LIBRARIES[key].install}
    return info


def _rounded(spread: Mapping[str, float]) -> dict[str, float]:
    """Five digits: more than any clock here has."""
    return {name: float(f"{value:.5g}") for name, value in spread.items()}


def write(result: Mapping[str, Any], path: Path) -> None:
    """Writes a result as JSON, a case a line: two results can be compared line by line."""
    head = {key: value for key, value in result.items() if key != "cases"}
    _write(head, [json.dumps(case, ensure_ascii=False) for case in result["cases"]], path)


def write_summary(result: Mapping[str, Any], path: Path) -> None:
    """Writes medians and quartiles without the samples, a case a line. Notes, statements and promises are in `texts`."""
    texts: dict[str, int] = {}
    lines = []
    for case in result["cases"]:
        row = {
            **{key: case[key] for key in ("id", "title", "rounds", "yardstick")},
            **{key: case["work"][key] for key in _WORK},
            "note": texts.setdefault(case["note"], len(texts)),
            "promises": [
                texts.setdefault(target["promise"], len(texts)) for target in case["targets"]
            ],
            "contenders": {
                one["library"]: [
                    texts.setdefault(one["statement"], len(texts)),
                    *_figures(one["nanoseconds"], _SPREAD[:3]),
                ]
                for one in case["contenders"]
            },
            "ratios": {peer: _figures(ratio, _SPREAD) for peer, ratio in case["ratios"].items()},
        }
        values = [row[key] for key in _COLUMNS]
        lines.append(json.dumps(values, ensure_ascii=False, separators=(",", ":")))
    head = {key: value for key, value in result.items() if key != "cases"}
    head |= {"schema": SUMMARY_SCHEMA, "schema_version": SUMMARY_VERSION}
    _write({**head, "texts": [*texts], "columns": _COLUMNS}, lines, path)


def _figures(spread: Mapping[str, float], keys: Sequence[str]) -> list[float]:
    return [int(spread[key]) if spread[key] % 1 == 0 else spread[key] for key in keys]


def _spread(figures: Sequence[float]) -> dict[str, float]:
    return dict(zip(_SPREAD, map(float, figures)))


def _write(head: Mapping[str, Any], cases: Sequence[str], path: Path) -> None:
    text = json.dumps(head, indent=1, ensure_ascii=False)
    lines = ",\n  ".join(cases)
    path.write_text(f'{text[:-2]},\n "cases": [\n  {lines}\n ]\n}}\n')


def read(path: Path) -> dict[str, Any]:
    """Reads a result that `write` or `write_summary` made; the second has no samples.

    Raises:
      ValueError: when the file is not such a result, or of another schema version.
    """
    try:
        result = dict(json.loads(path.read_text()))
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"{path} is not a JSON object: {error}") from error
    found = (result.get("schema"), result.get("schema_version"))
    if found == (SUMMARY_SCHEMA, SUMMARY_VERSION):
        return _from_summary(result)
    if found != (SCHEMA, SCHEMA_VERSION):
        raise ValueError(
            f"{path} has schema and version {found}; this program reads {(SCHEMA, SCHEMA_VERSION)} and "
            f"{(SUMMARY_SCHEMA, SUMMARY_VERSION)}; make it again with `run --json`"
        )
    return result


def _from_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a summary; a promise that is not made any more is left out."""
    texts, cases = summary["texts"], []
    for row in (dict(zip(summary["columns"], values)) for values in summary["cases"]):
        ratios = {peer: _spread(figures) for peer, figures in row["ratios"].items()}
        promises = [texts[text] for text in row.pop("promises") if texts[text] in PROMISES]
        work = {key: row.pop(key) for key in _WORK}
        cases.append(
            {
                **row,
                "group": row["id"].rpartition("/")[0],
                "note": texts[row["note"]],
                "work": work,
                "contenders": [
                    {
                        "library": library,
                        "statement": texts[text],
                        "nanoseconds": _spread(figures),
                    }
                    for library, (text, *figures) in row["contenders"].items()
                ],
                "ratios": ratios,
                "targets": judged_case(promises, ratios),
            }
        )
    head = {key: value for key, value in summary.items() if key not in ("texts", "columns")}
    return {**head, "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "cases": cases}
