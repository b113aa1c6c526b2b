"""Figures of speed on the pages: those of the record are the record's, and others name their measurement.

A figure of the record is generated: `<!-- record: EXPRESSION -->0.97<!-- end -->`, see benchmarks/gridbuf_benchmarks/report.py. Another
measurement has its date and its command before it: `<!-- measured: DATE, COMMAND -->`. It covers the rest of its section.
"""

import re
from pathlib import Path

import pytest
from gridbuf_benchmarks import report, results

ROOT = Path(__file__).resolve().parents[1]
# Made by other means, or a history: a decision has the figures of its day.
LEFT_OUT = re.compile(r"docs/(adr|upstream)/|docs/(performance|spec)\.md")
PAGES = [
    page
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("modules/*/README.md"))
    if not LEFT_OUT.search(page.relative_to(ROOT).as_posix())
]
NUMBER = r"\d[\d.,]*(?: (?:to|and) \d[\d.,]*)?"
FIGURE = re.compile(
    rf"\b{NUMBER} (?:ns|µs|ms|GB/s|GiB/s|ms per \w+)\b"
    rf"|\b{NUMBER} (?:×(?!\s?\d)|times as (?:fast|long)|(?:or more )?of (?:(?:the|its|their|that|memcpy's|NumPy's|GT4Py's)\s)+(?:speed|time|fastest))"
)
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
MEASURED = re.compile(r"<!-- measured: \d{4}-\d\d(?:-\d\d)?, (.+?) -->", re.DOTALL)


def hand_written(text: str) -> list[str]:
    text = report.FIGURE.sub("", CODE.sub("", text))
    sections = re.split(r"^#+ ", text, flags=re.MULTILINE)
    return [figure for section in sections for figure in FIGURE.findall(MEASURED.split(section)[0])]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_figure_is_written_by_hand(page: Path) -> None:
    assert not hand_written(page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_begins_with_a_comment_of_a_figure(page: Path) -> None:
    """Markdown ends the paragraph before such a line."""
    assert not re.findall(r"^ *<!-- record: .*", page.read_text("utf-8"), re.MULTILINE)


def test_figures_written_by_hand_are_found() -> None:
    assert hand_written(
        "It runs at 0.29 to 0.92 of the speed of memcpy, in 15 µs, 2.8 times as fast."
    )
    assert not hand_written('It takes <!-- record: time("x") -->15 µs<!-- end -->.')
    assert hand_written("# A\n<!-- measured: 2026-11-25, a run -->\n1 ms\n# B\n1 ms") == ["1 ms"]


def test_figures_of_the_record_are_current() -> None:
    record = results.read(ROOT / "docs/performance/results.json")
    pages = {page: page.read_text("utf-8") for page in PAGES}
    old = [page for page, text in pages.items() if report.with_figures(text, record) != text]
    assert not old, "tools/dev generate"
    assert sum(len(report.FIGURE.findall(text)) for text in pages.values()) > 20
