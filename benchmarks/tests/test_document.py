"""docs/performance.md and its tables are made from the recorded result and the template alone, never edited by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gridbuf_benchmarks import plot, report, results

DOCS = Path(__file__).parents[2] / "docs"
AGAIN = "./bazelw run //benchmarks -- report docs/performance/results.json --markdown docs/performance.md"


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return results.read(DOCS / "performance/results.json")


def test_the_page_and_its_tables_are_current(result: dict[str, Any]) -> None:
    made = {"../performance.md": report.page(result, "performance"), **report.tables(result)}
    for name, text in made.items():
        assert text == (DOCS / "performance" / name).read_text(), f"{name} is old; `{AGAIN}`"


def test_the_page_shows_every_chart(result: dict[str, Any]) -> None:
    page = (DOCS / "performance.md").read_text()
    drawn = {path.stem for path in (DOCS / "performance").glob("*.svg")}
    assert drawn == {*plot.names(result)}, f"`{AGAIN}` draws them"
    assert all(f"](performance/{name}.svg)" in page for name in drawn)
