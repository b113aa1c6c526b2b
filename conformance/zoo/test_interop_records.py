"""The records of the scoreboard belong to the settings, and show the defects of trackers as noted."""

from __future__ import annotations

import interop

from gridbuf_conformance.interop import ARRAYS, load, page

KNOWN_UNMET: set[tuple[str, str]] = set()
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
