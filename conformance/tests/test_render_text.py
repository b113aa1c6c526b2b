"""Cleaning of producers' words, plans in one line, and the layout drawing."""

from __future__ import annotations

import unicodedata
from xml.etree import ElementTree

import pytest
from rendering import assert_golden

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.render.drawing import Scene, to_svg, to_text
from gridbuf_conformance.text import clean, describe_plan, plural, shorten
from hypothesis import given
from hypothesis import strategies as st

DRAWINGS = {
    "outside": {
        "kind": "layout",
        "shape": [6],
        "strides": [8],
        "itemsize": 8,
        "offset": 0,
        "hull": [0, 48],
        "block": [0, 32],
        "marks": [{"index": [4], "offset": 32, "label": "first element outside the block"}],
    },
    "before": {
        "kind": "layout",
        "shape": [2, 3],
        "strides": [24, -8],
        "itemsize": 8,
        "offset": 0,
        "hull": [-16, 32],
        "block": [0, 48],
        "marks": [{"index": [0, 2], "offset": -16, "label": ""}],
    },
    "alignment": {
        "kind": "layout",
        "shape": [5, 5],
        "strides": [40, 8],
        "itemsize": 8,
        "offset": 8,
        "hull": [8, 208],
        "block": [0, 256],
        "marks": [{"index": [0, 0], "offset": 8, "label": "8 bytes past a multiple of 64"}],
    },
    "wrapped": {
        "kind": "layout",
        "shape": [46341, 46341],
        "strides": [92682, 2],
        "itemsize": 2,
        "offset": 0,
        "hull": [0, 4294976562],
        "block": [0, 9266],
        "marks": [{"index": [0, 4633], "offset": 9266, "label": "first byte past the block"}],
    },
    "empty": {
        "kind": "layout",
        "shape": [0, 3],
        "strides": [24, 8],
        "itemsize": 8,
        "offset": 0,
        "hull": [0, 0],
        "block": None,
        "marks": [],
    },
}


@given(st.text(st.characters()))
def test_clean_text_is_safe_everywhere(text):
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in cleaned.replace("\n", ""))
    ElementTree.fromstring(f"<a>{cleaned.replace('&', '').replace('<', '').replace('>', '')}</a>")
    assert clean(cleaned) == cleaned


def test_clean_keeps_honest_text():
    assert clean("größe ≤ 2^20 — 日本語 📐\nnext") == "größe ≤ 2^20 — 日本語 📐\nnext"


@given(st.text(), st.integers(4, 60))
def test_shorten_keeps_both_ends(text, limit):
    short = shorten(text, limit)
    if len(text) <= limit:
        assert short == text
    else:
        assert len(short) <= limit + 40
        assert short.startswith(text[: limit // 2])
        assert short.endswith(text[-(limit // 5) :] if limit >= 5 else "")


def test_plural():
    assert [plural(n, "plan") for n in (0, 1, 1200)] == ["0 plans", "1 plan", "1,200 plans"]


def test_a_plan_shows_what_differs_from_the_default():
    plan = Plan(shape=(2, 3), layout=(1, 0), alignment_size=64).to_dict()
    assert (
        describe_plan(plan, Plan())
        == 'shape=[2, 3] dtype="float64" layout=[1, 0] alignment_size=64'
    )


@pytest.mark.parametrize("name", DRAWINGS)
def test_golden_drawing(name):
    drawing = DRAWINGS[name]
    assert_golden(f"drawing-{name}.txt", "\n".join(to_text(drawing)) + "\n")
    assert_golden(f"drawing-{name}.svg", to_svg(drawing) + "\n")


def test_the_part_outside_the_block():
    assert Scene.of(DRAWINGS["outside"]).outside == ((32, 48),)
    assert Scene.of(DRAWINGS["before"]).outside == ((-16, 0),)
    assert Scene.of(DRAWINGS["empty"]).outside == ()
    assert Scene.of(DRAWINGS["alignment"]).outside == ()


@st.composite
def drawings(draw):
    rank = draw(st.integers(0, 4))
    numbers = st.integers(-(2**70), 2**70)
    ends = st.tuples(numbers, numbers).map(sorted)
    return {
        "kind": "layout",
        "shape": draw(st.lists(st.integers(0, 9), min_size=rank, max_size=rank)),
        "strides": draw(st.lists(numbers, min_size=rank, max_size=rank)),
        "itemsize": draw(st.integers(0, 64)),
        "offset": draw(numbers),
        "hull": draw(ends),
        "block": draw(st.none() | ends),
        "marks": draw(
            st.lists(
                st.fixed_dictionaries(
                    {"index": st.none() | st.just([1]), "offset": numbers, "label": st.text()}
                ),
                max_size=9,
            )
        ),
    }


@given(drawings(), st.integers(24, 100))
def test_any_drawing_can_be_drawn(drawing, width):
    """Whatever a broken layout makes of it, the picture stays well-formed and inside its width."""
    for line in to_text(drawing, width):
        label = line[9:].split("  ")[0]
        assert "bytes" in line or "▲" in line or "mark" in line or len(label) <= width + 30
    picture = ElementTree.fromstring(to_svg(drawing))
    for rect in picture.iter("rect"):
        assert 0 <= float(rect.get("x")) <= 800
        assert 0 < float(rect.get("width")) <= 800
