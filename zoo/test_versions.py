"""Bisection over releases: on lists, and on wheels of a small package, whose second to fourth
release have a defect.
"""

from __future__ import annotations

import re
import sys
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import records
import scripts
import venvs
import versions
from packaging.version import Version
from records import Environment, Finding

PACKAGE = "gridbuf_zoo_example"
HEADER = """# /// script
# dependencies = []
#
# [tool.gridbuf-finding]
# library = "Example"
# ///
"""
SCRIPT = f"""import sys
import {PACKAGE}
if {PACKAGE}.BROKEN:
    sys.exit("defect: it is broken")
"""


# Three minor series of three releases. In each, the defect is fixed or returns at most once.
NAMES = [f"1.{minor}.{patch}" for minor in range(3) for patch in range(3)]
SERIES = ["SSS", "GGG", "SSG", "SGG", "GSS", "GGS"]


@pytest.mark.parametrize("states", ["".join(each) for each in product(SERIES, repeat=3)])
def test_a_defect_that_returns_is_found(states: str) -> None:
    """Each change is found, except one that its minor series reverses before its newest release."""
    there = {name: state == "S" for name, state in zip(NAMES, states)}
    for recorded in (name for name in NAMES if there[name]):
        asked: list[str] = []

        def state_of(name: str) -> str:
            asked.append(name)
            return scripts.SHOWN if there[name] else scripts.GONE

        known = {recorded: scripts.SHOWN}
        record = _record(versions.bisected(NAMES, known, state_of))
        assert len(asked) == len({*asked}) and recorded not in asked
        seen = [(name, there[name]) for name in (NAMES[0], *versions.series(NAMES), recorded)]
        tried = versions.tried(record)
        assert all(tried[name] == (scripts.SHOWN if is_ else scripts.GONE) for name, is_ in seen)
        for first, last in versions.intervals(record):
            before, after = NAMES.index(first) - 1, NAMES.index(last) + 1
            assert before < 0 or tried[NAMES[before]] == scripts.GONE
            assert after == len(NAMES) or tried[NAMES[after]] == scripts.GONE


def test_a_range_is_a_list_of_intervals() -> None:
    told = _told(v1=scripts.SHOWN, v2=scripts.GONE, v3=scripts.SHOWN, v4=scripts.GONE)
    assert told == (
        "since 1 (the oldest that runs), until 1 (not in 2), and since 3 (not in 2), "
        "until 3 (not in 4); tried 4 of 9 releases of demo: 1 ✗, 2 ✓, 3 ✗, 4 ✓"
    )
    record = _record({"1": scripts.SHOWN, "2": scripts.GONE, "3": scripts.SHOWN, "4": scripts.GONE})
    assert (versions.last(record), versions.fixed_in(record)) == ("3", "4")


def test_releases_that_do_not_run_are_not_tried_in_each_series() -> None:
    """Old releases have no wheels for the Python."""
    names = [f"{major}.{minor}" for major in range(10) for minor in range(10)]
    asked: list[str] = []

    def state_of(name: str) -> str:
        asked.append(name)
        return versions.CANNOT_RUN if Version(name) < Version("9.8") else scripts.SHOWN

    tried = versions.bisected(names, {"9.9": scripts.SHOWN}, state_of)
    assert tried["9.7"] == versions.CANNOT_RUN and tried["9.8"] == scripts.SHOWN
    assert len(asked) < 10


def _record(tried: dict[str, str]) -> dict[str, object]:
    by_state = {state: [v for v in tried if tried[v] == state] for state in tried.values()}
    return {**by_state, "listed": 9, "package": "demo"}


def _told(**tried: str) -> str:
    return versions.told(
        _record({name.strip("v").replace("_", "."): state for name, state in tried.items()})
    )


def test_releases_that_do_not_run_say_nothing() -> None:
    told = _told(v1=versions.CANNOT_RUN, v2=scripts.SHOWN, v3=versions.CANNOT_RUN)
    assert told == (
        "since 2 (the oldest that runs), until 2 (the newest that runs); "
        "tried 3 of 9 releases of demo: 1 –, 2 ✗, 3 –"
    )


def test_releases_are_told_from_the_oldest_on() -> None:
    """By PEP 440, whatever their order in the file is."""
    told = _told(v1_10_0=scripts.SHOWN, v1_9_0=scripts.GONE, v1_9_0_post2=scripts.GONE)
    assert told == (
        "since 1.10.0 (not in 1.9.0.post2), until 1.10.0 (the newest); "
        "tried 3 of 9 releases of demo: 1.9.0 ✓, 1.9.0.post2 ✓, 1.10.0 ✗"
    )


def test_releases_that_were_tried_are_in_the_order_of_versions() -> None:
    record = {"shown": ["1.10", "0.12.0.1", "0.5.1"], "gone": ["1.9.post2", "1.9"]}
    assert list(versions.tried(record)) == ["0.5.1", "0.12.0.1", "1.9", "1.9.post2", "1.10"]


# The ranges that are on record
# ------------------------------------------------------------------------------

ZOO = records.load()
RANGES = [f for f in ZOO.findings if "listed" in f.releases]
LARGE = {"PyTorch", "TensorFlow"}
PATTERN = re.compile(
    r"since (?P<first>\S+) \((?:not in (?P<before>\S+)|the oldest that runs)\), "
    r"until (?P<last>\S+) \((?:not in (?P<after>\S+)|the newest(?: that runs)?)\)"
)


@pytest.mark.parametrize("finding", RANGES, ids=lambda f: f.id)
def test_a_range_is_possible_and_is_that_of_its_record(finding: Finding) -> None:
    tried = versions.tried(finding.releases)
    ranges = [*PATTERN.finditer(versions.told(finding.releases))]
    keys = ("before", "first", "last", "after")
    ends = [Version(told[key]) for told in ranges for key in keys if told[key]]
    assert ends == sorted(ends) and ranges
    inside = [(Version(told["first"]), Version(told["last"])) for told in ranges]
    for name, state in tried.items():
        if state != versions.CANNOT_RUN:
            is_in = any(first <= Version(name) <= last for first, last in inside)
            assert (state == scripts.SHOWN) is is_in, name


@pytest.mark.parametrize("finding", RANGES, ids=lambda f: f.id)
def test_a_fix_was_tried_on_both_sides(finding: Finding) -> None:
    """`series` is the number of minor series, each with a release. A fixed finding needs it, unless
    its fix is in the newest series that runs. Releases of PyTorch and TensorFlow are large, so four
    series after a fix are enough.
    """
    ran = [n for n, s in versions.tried(finding.releases).items() if s != versions.CANNOT_RUN]
    if "series" in finding.releases:
        tried = [*versions.tried(finding.releases)]
        assert len(versions.series(tried[tried.index(ran[0]) :])) == finding.releases["series"]
    elif fixed_in := versions.fixed_in(finding.releases):
        later = versions.series(ran[ran.index(fixed_in) :])
        assert len(later) == 1 or (finding.library in LARGE and len(later) >= 4)


@pytest.mark.parametrize("finding", RANGES, ids=lambda f: f.id)
def test_the_recorded_versions_are_in_the_range(finding: Finding) -> None:
    record, tried = finding.releases, versions.tried(finding.releases)
    own = [ZOO.environments[name] for name in finding.environments]
    for environment in own:
        if record["package"] not in environment.carrier:
            state = tried.get(environment.version, scripts.SHOWN)
            assert state == scripts.SHOWN or environment.python != record["python"]


@pytest.mark.parametrize("finding", RANGES, ids=lambda f: f.id)
def test_fixed_in_is_the_first_release_without_the_defect(finding: Finding) -> None:
    """A fix that no release has is "the trunk"."""
    fixed_in = versions.fixed_in(finding.releases)
    assert finding.fixed_in == fixed_in or (not fixed_in and finding.fixed_in == "the trunk")
    assert (finding.status == "fixed") is bool(finding.fixed_in)


def test_releases_are_installed_and_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for number in range(1, 7):
        _write_wheel(wheels, f"1.{number}", broken=2 <= number <= 4)
    _write_wheel(wheels, "2.0rc1", broken=True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    script = tmp_path / "example.py"
    script.write_text(HEADER + SCRIPT)
    python = ".".join(map(str, sys.version_info[:2]))
    environment = Environment(
        "example", "Example", "1.3", python, (f"{PACKAGE}==1.3",), producers=("example",)
    )
    keys = "library side target rule plan affected title severity expected impact fix status"
    finding = Finding(**dict.fromkeys(keys.split(), ""), id="example", script=script)
    told: list[str] = []
    try:
        venvs.interpreter(python)
    except venvs.CannotMake as error:
        pytest.skip(str(error))
    versions.bisect(environment, [finding], tmp_path / "environments", told.append)
    record = _releases_of(script)
    assert record["listed"] == 6
    assert record["gone"] == ["1.1", "1.5", "1.6"]
    assert record["shown"] == ["1.2", "1.3", "1.4"]
    assert len(told) == 5, "the recorded release was known"
    finding = replace(finding, releases=record)
    versions.bisect(environment, [finding], tmp_path / "environments", told.append)
    assert len(told) == 5, "nothing is tried twice"


def test_what_is_compiled_for_the_zoo_has_no_releases() -> None:
    interpreter = Environment("cpython-3.13.0", "CPython", "3.13.0", "3.13.0", ())
    with pytest.raises(venvs.CannotMake, match="of wheels only"):
        versions.releases(interpreter, Path(sys.executable))


def _releases_of(script: Path) -> dict[str, Any]:
    lines = script.read_text().partition("# /// script\n")[2].partition("# ///\n")[0]
    header = records.tomllib.loads(records._uncommented(lines))
    return dict(header["tool"]["gridbuf-finding"]["releases"])


def _write_wheel(folder: Path, version: str, *, broken: bool) -> None:
    info = f"{PACKAGE}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{PACKAGE}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{PACKAGE}.py", f"BROKEN = {broken}\n")
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
