"""Markdown for a comment: golden files, and that nothing a producer said gets out of its code."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from rendering import CASES, CATALOGUE, assert_golden, load_case, report_of, rule_of

from gridbuf_conformance.render import markdown
from hypothesis import given, settings
from hypothesis import strategies as st

_GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_OWN_TAGS = re.compile(r"</?(?:details|summary|b|code)>")


def text_of(name: str) -> str:
    reports, absent = load_case(name)
    return markdown.render(reports, absent, catalogue=CATALOGUE)


def inlines_of(text: str):
    """Every token of the document, the inline ones too."""
    for token in _GITHUB.parse(text):
        yield token
        yield from token.children or ()


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    assert_golden(f"{name}.md", text_of(name))


@pytest.mark.parametrize("name", CASES)
def test_nothing_of_a_producers_is_markup(name):
    """All HTML is the renderer's own; there is no link, no image, no heading but the renderer's."""
    for token in inlines_of(text_of(name)):
        assert token.type not in ("link_open", "image", "heading_close_h1", "s_open"), token
        if token.type in ("html_block", "html_inline"):
            left = _OWN_TAGS.sub("", token.content)
            assert "<" not in left, left
        if token.type == "heading_open":
            assert token.tag in ("h2", "h3")


@pytest.mark.parametrize("name", CASES)
def test_mentions_and_issue_numbers_stand_in_code_only(name):
    for token in inlines_of(text_of(name)):
        if token.type == "text":
            assert "@octocat" not in token.content and "#1" not in token.content
        elif token.type == "html_block":
            outside = re.sub(r"<code>.*?</code>", "", token.content)
            assert "@octocat" not in outside


@pytest.mark.parametrize("name", CASES)
def test_tables_have_as_many_cells_as_columns(name):
    """A pipe in a name would add one."""
    columns = 0
    cells = 0
    for token in inlines_of(text_of(name)):
        if token.type == "table_open":
            columns = 0
        columns += token.type == "th_open"
        cells = 0 if token.type == "tr_open" else cells + (token.type == "td_open")
        if token.type == "tr_close" and cells:
            assert cells == columns
    assert len(re.findall(r"^\| ", text_of(name), re.MULTILINE)) == 0 or columns


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="`a|\n <>&@#[]()!*_~\\\x1b\u202e", max_size=30))
def test_any_text_in_a_span_or_a_block_stays_there(text):
    (paragraph,) = [t for t in _GITHUB.parse(f"x {markdown.span(text)} y") if t.type == "inline"]
    kinds = [child.type for child in paragraph.children]
    assert kinds in (["text"], ["text", "code_inline", "text"])
    tokens = _GITHUB.parse(markdown.block(text, "text"))
    assert [token.type for token in tokens] == ["fence"]


def test_a_comment_has_room_for_it():
    """Two hundred rules with long texts: cut, and the omitted rules are named."""
    (report,), _ = load_case("hostile")
    rule = rule_of(report, "XA-01")
    many = {**report, "rules": [{**rule, "id": f"AI-{n:03}"} for n in range(200)]}
    text = markdown.render([many], catalogue=CATALOGUE)
    assert len(text) < 65_536
    assert "more rules: AI-" in text and "AI-199" in text


def test_the_catalogues_words_are_no_markup():
    report = report_of("survey", "array")
    rule = {**report["rules"][0], "outcome": "FAIL"}
    text = markdown.render([{**report, "rules": [rule]}])
    assert "\\_\\_array\\_interface\\_\\_" in text or "`" in text


def test_no_reports_are_said():
    assert markdown.render([], catalogue=CATALOGUE) == "## Conformance\n\nNo library was judged.\n"
