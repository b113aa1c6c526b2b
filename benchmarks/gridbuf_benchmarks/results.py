"""Runs cases and turns them into the JSON result: the one record that table, plot and comparison read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from gridbuf_benchmarks import machine
from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.fresh import measure_fresh
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, Loaded, Missing
from gridbuf_benchmarks.timing import Budget, Samples, measure, ratio_of, spread_of
from gridbuf_benchmarks.work import Done, check_work

__all__ = ["SCHEMA", "SCHEMA_VERSION", "read", "run", "run_case", "schema", "write"]

SCHEMA = "gridbuf.benchmarks"
SCHEMA_VERSION = 1
"""Raised by one when a field changes its meaning or goes; new fields do not raise it."""

Progress = Callable[[Case, int, int], None]
"""Called with the case, the rounds done and the rounds wished for."""


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a result."""
    text = resources.files("gridbuf_benchmarks").joinpath("result.schema.json").read_text()
    return dict(json.loads(text))


def run(
    cases: Sequence[Case],
    loaded: Mapping[str, Loaded],
    missing: Mapping[str, Missing],
    budget: Budget,
    *,
    quick: bool,
    progress: Progress = lambda case, done, wanted: None,
) -> dict[str, Any]:
    """Runs the cases in order and returns the whole result, as it is written to a file.

    Raises:
      WrongWork: when an entry does not do the work of its case.
    """
    facts = machine.describe()
    needy = [case for case in cases if case.consumer not in (None, *loaded)]
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "quick": quick,
        "budget": asdict(budget),
        "machine": facts,
        "libraries": {key: _library(key, loaded, missing) for key in LIBRARIES},
        "warnings": machine.disturbances(facts)
        + _build_warnings(loaded)
        + [f"{case.title} was not run: it needs {case.consumer}" for case in needy],
        "cases": [run_case(case, loaded, budget, progress) for case in cases if case not in needy],
    }


def run_case(
    case: Case,
    loaded: Mapping[str, Loaded],
    budget: Budget,
    progress: Progress = lambda case, done, wanted: None,
) -> dict[str, Any]:
    """Checks the work of every entry whose library is here, then times them against each other."""
    entries = {entry.library: entry for entry in case.entries if entry.library in loaded}
    names = {key: dict(entry.names(loaded[key].module)) for key, entry in entries.items()}
    done = {
        # An entry is a line of this package's own source, evaluated as `timeit` will.
        key: check_work(case, entry, eval(entry.statement, names[key]))
        for key, entry in entries.items()
    }
    on_round = partial(progress, case)
    if case.fresh_process:
        samples = measure_fresh(case, list(entries), budget, on_round)
    else:
        statements = {key: (entry.statement, names[key]) for key, entry in entries.items()}
        samples = measure(statements, budget, on_round)
    ratios = {
        key: _rounded(asdict(ratio_of(samples[BASELINE], samples[key])), 4)
        for key in entries
        if key != BASELINE
    }
    return {
        "id": case.id,
        "group": case.group,
        "title": case.title,
        "note": case.note,
        "work": case.work.to_json(),
        "rounds": len(samples[BASELINE].nanoseconds),
        "contenders": [
            _contender(entry.library, entry.statement, entry.note, done[key], samples[key])
            for key, entry in entries.items()
        ],
        "ratios": ratios,
        "target": _judged(case, ratios),
    }


def _contender(
    library: str, statement: str, note: str, done: Done, samples: Samples
) -> dict[str, Any]:
    return {
        "library": library,
        "statement": statement,
        "note": note,
        "done": done.to_json(),
        "loops_per_sample": samples.loops,
        "nanoseconds": _rounded(asdict(spread_of(samples.nanoseconds)), 2),
        "samples_nanoseconds": [round(value, 2) for value in samples.nanoseconds],
    }


def _judged(case: Case, ratios: Mapping[str, Mapping[str, float]]) -> dict[str, Any] | None:
    """The case's target with the ratio reached; None without a target or without its peer."""
    target = case.target
    if target is None or target.peer not in ratios:
        return None
    reached = ratios[target.peer]["median"]
    return {**asdict(target), "reached": reached, "met": reached <= target.ratio}


def _library(
    key: str, loaded: Mapping[str, Loaded], missing: Mapping[str, Missing]
) -> dict[str, Any]:
    library = LIBRARIES[key]
    facts: dict[str, Any] = {"title": library.title, "state": "not needed", "version": None}
    if key in loaded:
        facts |= {"state": "present", "version": loaded[key].version}
        if key == BASELINE:
            facts["build"] = _build_facts(loaded)
        if key == "torch":
            facts["threads"] = loaded[key].module.get_num_threads()
    elif key in missing:
        facts |= {"state": "absent", "reason": missing[key].reason, "install": library.install}
    return facts


def _build_warnings(loaded: Mapping[str, Loaded]) -> list[str]:
    """Says so when gridbuf's extension is a debugging build, whose times mean nothing."""
    if _build_facts(loaded).get("assertions") == "off":
        return []
    return [
        "gridbuf's extension is an unoptimised build (its assertions are on): these times say nothing; "
        "`./bazelw run //benchmarks` and a wheel are optimised"
    ]


def _build_facts(loaded: Mapping[str, Loaded]) -> dict[str, str]:
    return dict(loaded[BASELINE].module.show_config("dict")["build"])


def _rounded(spread: Mapping[str, float], digits: int) -> dict[str, float]:
    return {name: round(value, digits) for name, value in spread.items()}


def write(result: Mapping[str, Any], path: Path) -> None:
    """Writes a result as indented JSON."""
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> dict[str, Any]:
    """Reads a result that `write` made.

    Raises:
      ValueError: when the file is no such result, or of another schema version.
    """
    try:
        result = dict(json.loads(path.read_text()))
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"{path} is no JSON object: {error}") from error
    found = (result.get("schema"), result.get("schema_version"))
    if found != (SCHEMA, SCHEMA_VERSION):
        raise ValueError(
            f"{path} has schema and version {found}; this program reads {(SCHEMA, SCHEMA_VERSION)}; "
            "make it again with --json"
        )
    return result
