"""Runs cases and turns them into the JSON result: the one record that table, plot and comparison read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from functools import partial
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from gridbuf_benchmarks import machine, memory
from gridbuf_benchmarks.apart import measure_apart
from gridbuf_benchmarks.case import Case, Entry
from gridbuf_benchmarks.fresh import measure_fresh
from gridbuf_benchmarks.ranks import launcher, measure_on_ranks
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY, Loaded, Missing
from gridbuf_benchmarks.promises import judge, judged_case
from gridbuf_benchmarks.timing import (
    Budget,
    Contender,
    Samples,
    measure,
    page_faults,
    ratio_of,
    settle,
    spread_of,
)
from gridbuf_benchmarks.work import Done, check_work, check_yardstick

__all__ = ["SCHEMA", "SCHEMA_VERSION", "read", "run", "run_case", "schema", "write"]

SCHEMA = "gridbuf.benchmarks"
SCHEMA_VERSION = 2
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
    left_out = _left_out(cases, loaded)
    started = time.perf_counter()
    done = []
    for case in cases:
        if case.id in left_out:
            continue
        if case.work.target is None:
            memory.release()  # so that what allocates finds the memory that its users would
        done.append(run_case(case, loaded, budget, progress))
    memory.release()
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - started, 1),
        "quick": quick,
        "budget": {key: value for key, value in asdict(budget).items() if value != float("inf")},
        "machine": facts,
        "libraries": {key: _library(key, loaded, missing) for key in LIBRARIES},
        "warnings": machine.disturbances(facts) + _build_warnings(loaded) + list(left_out.values()),
        "promises": judge(done),
        "cases": done,
    }


def _left_out(cases: Sequence[Case], loaded: Mapping[str, Loaded]) -> dict[str, str]:
    """The cases that cannot be run here, by id, each with the reason."""
    available = memory.available_bytes()
    reasons = {}
    for case in cases:
        if case.consumer not in (None, *loaded):
            reasons[case.id] = f"{case.title} was not run: it needs {case.consumer}"
        elif case.ranks > 1 and launcher() is None:
            reasons[case.id] = f"{case.title} was not run: it needs an mpiexec; ./bazelw --peers"
        elif case.memory_bytes > available:
            wanted, there = case.memory_bytes / 2**30, available / 2**30
            reasons[case.id] = (
                f"{case.title} was not run: it needs {wanted:.1f} GiB of memory, {there:.1f} GiB are available"
            )
    return reasons


def run_case(
    case: Case,
    loaded: Mapping[str, Loaded],
    budget: Budget,
    progress: Progress = lambda case, done, wanted: None,
) -> dict[str, Any]:
    """Checks the work of every entry whose library is here, then times them against each other."""
    entries = {entry.library: entry for entry in case.entries if entry.library in loaded}
    on_round = partial(progress, case)
    if case.ranks > 1:
        samples, did = measure_on_ranks(case, list(entries), budget, on_round)
        return _result(case, entries, {}, samples, did)
    yardsticks = {entry.library: entry for entry in case.yardsticks if entry.library in loaded}
    prepared = {
        key: _prepare(case, entry, loaded[key].module, yardstick=key in yardsticks)
        for key, entry in {**entries, **yardsticks}.items()
    }
    did = {key: done.to_json() for key, (_, done) in prepared.items()}
    if case.consumer is not None:
        # All run the same code of the consumer, and are told apart by per cents: each has its share of the whole time.
        budget = replace(budget, contender_seconds=budget.case_seconds / len(prepared))
    if case.fresh_process:
        samples = measure_fresh(case, list(entries), budget, on_round)
    elif case.processes:
        libraries = list(prepared)
        prepared.clear()  # and with it the arrays that were checked
        samples = measure_apart(case, libraries, budget, on_round)
    else:
        contenders = {key: contender for key, (contender, _) in prepared.items()}
        samples = measure(contenders, budget, on_round)
    return _result(case, entries, yardsticks, samples, did)


def _result(
    case: Case,
    entries: Mapping[str, Entry],
    yardsticks: Mapping[str, Entry],
    samples: Mapping[str, Samples],
    did: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """What a case says in the result, from its samples and what each entry did."""
    fastest = _fastest(yardsticks, samples)
    ratios = {
        name: _rounded(asdict(ratio_of(samples[BASELINE], samples[key])))
        for name, key in {**{key: key for key in entries}, MEMORY: fastest}.items()
        if key is not None and name != BASELINE
    }
    return {
        "id": case.id,
        "group": case.group,
        "title": case.title,
        "note": case.note,
        "work": case.work.to_json(),
        "memory": None if case.work.target is None else memory.facts(),
        "rounds": len(samples[BASELINE].nanoseconds),
        "contenders": [
            _contender(entry, did[key], samples[key])
            for key, entry in {**entries, **yardsticks}.items()
        ],
        "yardstick": fastest,
        "ratios": ratios,
        "targets": judged_case(case.promises, ratios),
    }


def _fastest(yardsticks: Mapping[str, Entry], samples: Mapping[str, Samples]) -> str | None:
    """The yardstick with the smallest median; None without any."""
    if not yardsticks:
        return None
    return min(yardsticks, key=lambda key: spread_of(samples[key].nanoseconds).median)


def _prepare(
    case: Case, entry: Entry, module: ModuleType, *, yardstick: bool
) -> tuple[Contender, Done]:
    """Has the entry do its work once, and judges it."""
    names = dict(entry.names(module))
    if case.work.target is not None:
        memory.poison(case.work.target.span_bytes(case.work.shape))
    settle()
    faults, begun = page_faults(), time.perf_counter()
    # An entry is a line of this package's own source, evaluated as `timeit` will.
    result = eval(entry.statement, names)
    seconds, faults = time.perf_counter() - begun, page_faults() - faults
    if entry.result:
        result = eval(entry.result, names)
    done = (check_yardstick if yardstick else check_work)(case, entry, result)
    contender = Contender(entry.statement, names, entry.setup, seconds, faults, essential=yardstick)
    return contender, done


def _contender(entry: Entry, did: Mapping[str, Any], samples: Samples) -> dict[str, Any]:
    faults = [count / samples.loops for count in samples.page_faults]
    return {
        "library": entry.library,
        "statement": entry.statement,
        "note": entry.note,
        "done": did,
        "loops_per_sample": samples.loops,
        "nanoseconds": _rounded(asdict(spread_of(samples.nanoseconds))),
        "samples_nanoseconds": [float(f"{value:.5g}") for value in samples.nanoseconds],
        "rounds": list(samples.rounds) or list(range(len(samples.nanoseconds))),
        "page_faults_per_call": round(spread_of(faults).median, 3) if faults else None,
    }


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


def _rounded(spread: Mapping[str, float]) -> dict[str, float]:
    """Five digits: more than any clock here has."""
    return {name: float(f"{value:.5g}") for name, value in spread.items()}


def write(result: Mapping[str, Any], path: Path) -> None:
    """Writes a result as JSON, a case a line, so that two results can be compared line by line."""
    head = {key: value for key, value in result.items() if key != "cases"}
    lines = ",\n  ".join(json.dumps(case, ensure_ascii=False) for case in result["cases"])
    text = json.dumps(head, indent=1, ensure_ascii=False)
    path.write_text(f'{text[:-2]},\n "cases": [\n  {lines}\n ]\n}}\n')


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
