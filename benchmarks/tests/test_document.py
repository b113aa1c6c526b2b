"""docs/performance.md is made from its result and the template alone: nobody edits it by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridbuf_benchmarks import markdown, results

DOCS = Path(__file__).parents[2] / "docs"
RECORD = "./bazelw run //benchmarks -- --json docs/performance.json --plot docs/performance.png --markdown docs/performance.md"


def test_the_document_is_current(tmp_path: Path) -> None:
    if not (DOCS / "performance.json").exists():
        pytest.skip(f"no result is recorded; `{RECORD}` records one")
    written = tmp_path / "performance.md"
    result = results.read(DOCS / "performance.json")
    markdown.write(result, written, tmp_path / "performance.png")
    again = RECORD.replace("--json", "--load")
    assert written.read_text() == (DOCS / "performance.md").read_text(), (
        f"docs/performance.md is not what the template and docs/performance.json make; `{again}` makes it"
    )


def test_the_record_has_its_pictures() -> None:
    if not (DOCS / "performance.json").exists():
        pytest.skip(f"no result is recorded; `{RECORD}` records one")
    for name in ("performance.png", "performance-copies.png", "performance-sizes.png"):
        assert (DOCS / name).exists()
        assert f"]({name})" in (DOCS / "performance.md").read_text()
