"""docs/performance.md is made from its result and the template alone, never edited by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridbuf_benchmarks import report, results

DOCS = Path(__file__).parents[2] / "docs"
FILES = "docs/performance.json --plot docs/performance.png --markdown docs/performance.md"
RECORD = f"./bazelw run //benchmarks -- run --json {FILES}"


def test_the_document_is_current() -> None:
    if not (DOCS / "performance.json").exists():
        pytest.skip(f"no result is recorded; `{RECORD}` records one")
    result = results.read(DOCS / "performance.json")
    document = DOCS / "performance.md"
    text = report.document(result, document, DOCS / "performance.png")
    again = RECORD.replace("run --json", "report")
    assert text == document.read_text(), (
        f"docs/performance.md is not what the template and docs/performance.json make; `{again}` makes it"
    )


def test_the_record_has_its_pictures() -> None:
    if not (DOCS / "performance.json").exists():
        pytest.skip(f"no result is recorded; `{RECORD}` records one")
    for name in ("performance.png", "performance-copies.png", "performance-sizes.png"):
        assert (DOCS / name).exists()
        assert f"]({name})" in (DOCS / "performance.md").read_text()
