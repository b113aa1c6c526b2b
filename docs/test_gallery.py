"""The gallery: the committed pictures are those that its programs compute, and a telephone shows them whole."""

import html
import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "images"))

import gallery  # noqa: E402

PAGE = (DOCS / "gallery.md").read_text("utf-8")
ENTRIES = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
NARROW_PX = 400


@pytest.mark.parametrize("name", gallery.PICTURES)
def test_the_picture_is_what_the_program_computes(name: str) -> None:
    if name == "gallery-cells.svg":
        pytest.importorskip("gt4py", reason="NOT tested: no GT4Py; ./bazelw --peers")
    committed = (DOCS / "images" / name).read_text("utf-8")
    drawn = gallery.PICTURES[name]()
    assert committed == drawn.svg(), "run python docs/images/gallery.py"
    assert drawn.width <= NARROW_PX and len(committed) < 200_000


def test_the_program_counts_the_findings_of_the_chart() -> None:
    """A chart that is older than a finding is right, one that counts more is not."""
    numbers = gallery.computed("zoo")["numbers"]
    chart = html.unescape((DOCS / "images/zoo.svg").read_text("utf-8"))
    shown = json.loads(re.search(r"<dc:description>(.*?)</dc:description>", chart)[1])
    flat = {(i, s): n for i, row in shown.items() for s, n in row.items() if n}
    assert flat and all(numbers[key] >= number for key, number in flat.items())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.split("\n")[0])
def test_an_entry_is_short(entry: str) -> None:
    words, picture, rest = re.split(r"^(!\[.*\))$", entry, flags=re.MULTILINE)
    assert len(re.findall(r"[.!?](?=\s)", words)) <= 3
    assert picture and "<!-- snippet: examples/python/gallery_" in rest
    assert len(rest.split("```")[1].splitlines()) <= 28
