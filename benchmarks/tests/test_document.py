"""docs/performance.md and its chart are made from the record and the template alone, never edited by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gridbuf_benchmarks import plot, report, results

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS / "performance/results.json"
AGAIN = "run `tools/dev generate`"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return results.read(RECORD)


def test_the_page_is_current(record: dict[str, Any]) -> None:
    page = report.page(record, "performance", report.DOCUMENT_CHARTS)
    assert page == (DOCS / "performance.md").read_text(), AGAIN


def test_the_page_has_the_charts_that_the_record_draws(
    record: dict[str, Any], tmp_path: Path
) -> None:
    drawn = plot.save(record, tmp_path, report.DOCUMENT_CHARTS)
    assert {p.name for p in drawn} == {p.name for p in (DOCS / "performance").glob("*.svg")}
    for path in drawn:
        assert path.read_text() == (DOCS / "performance" / path.name).read_text(), AGAIN
        assert f"](performance/{path.name})" in (DOCS / "performance.md").read_text()


def test_the_record_is_a_summary_of_a_full_run(record: dict[str, Any], tmp_path: Path) -> None:
    assert not record["quick"] and len(record["cases"]) > 500
    assert json.loads(RECORD.read_text())["schema"] == results.SUMMARY_SCHEMA
    results.write_summary(record, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == RECORD.read_text()


def test_the_page_of_the_site_has_all_charts(record: dict[str, Any]) -> None:
    charts = plot.names(record)
    page = report.page(record, "performance", charts)
    assert len(charts) == 5 and all(f"](performance/{name}.svg)" in page for name in charts)
    assert ".csv)" not in page, "a link to a table that the site does not have"
