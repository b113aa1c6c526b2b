"""The records of the scoreboard belong to the settings, and show the defects of trackers as noted."""

from __future__ import annotations

import re

import interop
import venvs

from gridbuf_conformance.interop import ARRAYS, load, page

_GITHUB = "https://github.com"
_JAX = f"{_GITHUB}/jax-ml/jax/issues"
_TENSORFLOW = f"{_GITHUB}/tensorflow/tensorflow"
KNOWN_UNMET: set[tuple[str, str]] = {
    # JAX 0.4.18 is right, and 0.6.2 is wrong: aligned Fortran arrays broke between them.
    (f"{_JAX}/17784", "interop-2023"),
    (f"{_JAX}/17784", "interop-2025"),
    (f"{_JAX}/7657", "interop-2023"),
    (f"{_JAX}/4719", "interop-2023"),  # of 2020, and already right in 0.4.18
    (f"{_JAX}/40789", "interop-2026-py312"),  # of September 2026, and right in 0.12.0.1
    (f"{_TENSORFLOW}/pull/61184", "interop-2022"),  # 2.11 takes this array
    (f"{_TENSORFLOW}/issues/61769", "interop-2025"),  # 2.19.1 has no __dlpack__; 2.21.0 has
}
"""(tracker, setting) where the record does not show what was expected before the run: the expectation was wrong."""


def test_each_record_is_of_a_setting_and_its_pinned_versions():
    settings = interop.settings()
    paths = sorted(interop.RECORDS.glob("*.json"))
    assert paths
    for path in paths:
        record = load(path)
        requirements = dict(r.split("==") for r in settings[path.stem][0].requirements if "==" in r)
        for name, version in record.libraries.items():
            assert version.partition("+")[0] == requirements.get(name, version.partition("+")[0])
        assert record.cells and all(len(cell.outcomes) == len(ARRAYS) for cell in record.cells)


def test_each_setting_has_a_lock_file_with_hashes():
    for name, (environment, *_) in interop.settings().items():
        lines = (venvs.LOCKS / f"{name}.txt").read_text().splitlines()
        assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
        locked = {line.split("==")[0].replace("_", "-"): line.split()[0] for line in lines}
        for requirement in environment.requirements:
            wanted = requirement.partition("[")[0] + requirement.partition("]")[2]
            package, _, version = wanted.partition("==")
            found = locked[package.lower().replace("_", "-")].split("==")[1]
            assert found.partition("+")[0] == (version or found.partition("+")[0])


def test_defects_of_trackers_are_found_where_they_are_and_absent_elsewhere():
    done = {path.stem for path in interop.RECORDS.glob("*.json")}
    unmet = {
        (row["tracker"], name)
        for row, name, expected, outcome in interop.compared()
        if name in done and (outcome == row["outcome"]) != (expected == "found")
    }
    assert unmet == KNOWN_UNMET


def test_the_page_of_all_records_is_the_same_twice():
    records = [load(path) for path in sorted(interop.RECORDS.glob("*.json"))]
    assert page.render(records) == page.render(records)
