"""The badge: golden files, what it says in each case, and that it is self-contained SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from rendering import CASES, assert_golden, load_case

from gridbuf_conformance.render import badge

_SVG = "{http://www.w3.org/2000/svg}"


def report_of(*outcomes: str, plans=("observation",), name="lib") -> dict:
    rules = [
        {"id": f"AI-{n:02}", "level": "MUST", "outcome": outcome, "plans": 1, "failures": []}
        for n, outcome in enumerate(outcomes, 1)
    ]
    target = {"name": name, "version": "1.0", "side": "producer"}
    return {"target": target, "profile": "smoke", "rules": rules, "plans": dict.fromkeys(plans, 1)}


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    assert_golden(f"{name}.badge.svg", badge.render(*load_case(name)))


@pytest.mark.parametrize("name", CASES)
def test_it_is_whole_and_loads_nothing(name):
    text = badge.render(*load_case(name))
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img" and root.get("aria-label").startswith("conformance: ")
    assert "href" not in text and "script" not in text.replace("&lt;script", "")
    assert " id=" not in text, "several badges may stand in one page"
    allowed = {"svg", "title", "rect", "path", "g", "text"}
    assert {element.tag.removeprefix(_SVG) for element in root.iter()} <= allowed
    assert float(root.get("width")) < 320


@pytest.mark.parametrize(
    ("outcomes", "said", "kind"),
    [
        (["PASS"] * 142, "142 rules ✓", "passed"),
        (["PASS", "ADVISORY", "UNSUPPORTED"], "2 rules ✓", "passed"),
        (["PASS"], "1 rule ✓", "passed"),
        (["PASS"] * 139 + ["FAIL"] * 3, "3 of 142 failed", "failed"),
        (["PASS", "CRASH"], "1 of 2 failed, 1 crash", "failed"),
        (["CRASH", "UNSTABLE", "TIMEOUT"], "3 of 3 failed, 2 crashes", "failed"),
        (["PASS", "XPASS"], "1 of 2 failed", "failed"),
        (["PASS", "PASS", "XFAIL"], "2 rules ✓ 1 known", "known"),
        (["PASS", "ERROR"], "suite error", "error"),
        (["UNSUPPORTED"], "nothing judged", "silent"),
        ([], "nothing selected", "silent"),
    ],
)
def test_what_it_says(outcomes, said, kind):
    assert badge.message_of([report_of(*outcomes)]) == (said, kind)


def test_what_it_says_of_several():
    good, bad, nothing = report_of("PASS"), report_of("FAIL", name="b"), report_of(name="c")
    assert badge.message_of([good, good, bad]) == ("2 of 3 conform", "failed")
    assert badge.message_of([good, good]) == ("2 of 2 conform", "passed")
    assert badge.message_of([good, nothing]) == ("1 of 2 conform", "error")
    assert badge.message_of([]) == ("nothing judged", "silent")


def test_white_text_is_readable_on_every_colour():
    def luminance(colour: str) -> float:
        parts = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(v * w for v, w in zip(linear, (0.2126, 0.7152, 0.0722)))

    for colour in [*badge._COLOURS.values(), "#4a4f5a"]:
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, colour
