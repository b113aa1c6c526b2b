"""The HTML page: golden files of its structure, and its promises: one file, no network, nothing
forged.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from rendering import CASES, CATALOGUE, assert_golden, load_case

from gridbuf_conformance.render import html

_VOID = {"meta", "link", "input", "wbr"}


def page_of(name: str) -> str:
    reports, absent = load_case(name)
    return html.render(reports, absent, catalogue=CATALOGUE)


def without_assets(page: str) -> str:
    """The page without style sheet, script, drawings and indentation, which other tests look at."""
    page = re.sub(r"<style>.*?</style>", "<style>…</style>", page, flags=re.DOTALL)
    page = re.sub(r"<script>\n.*?</script>", "<script>…</script>", page, flags=re.DOTALL)
    page = re.sub(r'<svg class="drawing".*?</svg>', "<svg>…</svg>", page, flags=re.DOTALL)
    return re.sub(r"\n\s*", "\n", page)


class _Structure(HTMLParser):
    """Checks that tags nest, and collects what the tests ask about."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values[key] for key in ("src", "href") if key in values]
        self.scripts += tag == "script"
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def structure_of(page: str) -> _Structure:
    parser = _Structure()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    assert_golden(f"{name}.html", without_assets(page_of(name)))


@pytest.mark.parametrize("name", CASES)
def test_the_page_is_whole_and_loads_nothing(name):
    found = structure_of(page_of(name))
    assert len(found.ids) == len(set(found.ids)), "an id is there twice"
    sources = {rule.source.url for rule in CATALOGUE.values()}
    followed = {link for link in found.links if link not in sources}
    assert all(link.startswith("#") or link == "data:," for link in followed)
    assert found.scripts == 2, "only the page's own scripts"


@pytest.mark.parametrize("name", CASES)
def test_same_reports_same_page(name):
    assert page_of(name) == page_of(name)


def test_a_producer_cannot_add_markup():
    page = page_of("hostile")
    assert "<script>alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    page.encode("utf-8")


def test_every_rule_has_an_anchor_and_its_explanation():
    page = page_of("survey")
    reports, _ = load_case("survey")
    for rule_id in {rule["id"] for report in reports for rule in report["rules"]}:
        assert f'id="{rule_id}"' in page
    assert "Consumers catch BufferError to try the next, humbler request." in page


def test_a_very_long_value_is_cut_and_says_so():
    page = page_of("hostile")
    assert "characters left out" in page
    assert len(page) < 200_000


def test_a_survey_of_nothing_is_a_page():
    page = html.render([], [], catalogue=CATALOGUE)
    structure_of(page)
    assert "<h1>Survey of array libraries</h1>" in page
    assert "Nothing was selected, so nothing is known." in page
    assert "No rule was selected. Run <code>gridbuf-conformance list rules</code>" in page
