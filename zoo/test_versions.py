"""Bisection over releases: on lists, and on wheels of a small package, whose second to fourth
release have a defect.
"""

from __future__ import annotations

import re
import sys
import zipfile
from dataclasses import replace
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


@pytest.mark.parametrize("first, last", [(a, b) for b in range(9) for a in range(b + 1)])
def test_the_first_and_the_last_release_with_a_defect_are_found(first: int, last: int) -> None:
    names = [f"1.{number}" for number in range(9)]
    for recorded in range(first, last + 1):
        asked = []

        def state_of(name: str) -> str:
            asked.append(name)
            return scripts.SHOWN if first <= names.index(name) <= last else scripts.GONE

        tried = versions.bisected(names, names[recorded], state_of)
        shown = [name for name in names if tried.get(name) == scripts.SHOWN]
        assert (shown[0], shown[-1]) == (names[first], names[last])
        assert len(asked) == len({*asked}) <= 8
        told = versions.told(_record(tried))
        before = f"not in {names[first - 1]}" if first else "the oldest that runs"
        after = f"not in {names[last + 1]}" if last < 8 else "the newest"
        assert f"since {names[first]} ({before}), until {names[last]} ({after});" in told


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
PATTERN = re.compile(
    r"since (?P<first>\S+) \((?:not in (?P<before>\S+)|the oldest that runs)\), "
    r"until (?P<last>\S+) \((?:not in (?P<after>\S+)|the newest(?: that runs)?)\); "
)


@pytest.mark.parametrize("finding", RANGES, ids=lambda f: f.id)
def test_a_range_is_possible_and_is_that_of_its_record(finding: Finding) -> None:
    tried = versions.tried(finding.releases)
    told = PATTERN.match(versions.told(finding.releases))
    assert told is not None
    ends = [Version(told[key]) for key in ("before", "first", "last", "after") if told[key]]
    assert ends == sorted(ends)
    first, last = Version(told["first"]), Version(told["last"])
    for name, state in tried.items():
        if state != versions.CANNOT_RUN:
            assert (state == scripts.SHOWN) is (first <= Version(name) <= last), name


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
        "example", "Example", "1.3", python, (f"{PACKAGE}==1.3",), "old", producers=("example",)
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
    interpreter = Environment("cpython-3.13.0", "CPython", "3.13.0", "3.13.0", (), "old")
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
