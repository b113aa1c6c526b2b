"""`explain --format md`: complete, and no markup but its own."""

from __future__ import annotations

import re

import pytest
from command_line import run
from markdown_it import MarkdownIt

from gridbuf_conformance.render import rule_pages
from gridbuf_conformance.rules import catalogue

RULES = list(catalogue.load().values())
_GITHUB = MarkdownIt("commonmark", {"html": True}).enable("table")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_section_says_all_there_is(rule):
    text = rule_pages.sections([rule])
    tokens = _GITHUB.parse(text)
    inlines = [child for token in tokens for child in token.children or ()]
    assert not [t for t in (*tokens, *inlines) if t.type.startswith(("html", "image"))]
    sources = [source for source in (rule.source, rule.consumer_source) if source is not None]
    links = [t.attrGet("href") for t in inlines if t.type == "link_open"]
    assert links == [source.url.replace("docs/spec.md", "../spec.md") for source in sources]
    shown = "".join(
        t.content for t in (*inlines, *tokens) if t.type in ("text", "code_inline", "fence")
    )
    said = [words for s in sources for words in (str(s), s.says, s.verb)]
    for words in (rule.level, rule.requirement, *said, rule.why, rule.fix, rule.example):
        assert words.replace("`", "") in shown.replace("`", ""), words
    for id_ in rule.preconditions:
        assert id_ in shown
    for side in rule.sides:
        assert f"{side}s" in shown


def test_the_page_links_to_its_groups():
    page = rule_pages.page(RULES)
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = set(re.findall(r"\]\(#(.*?)\)", page))
    assert links == anchors and len(links) == len(catalogue.GROUPS)
    assert re.findall(r"^### (\S+)$", page, re.MULTILINE) == sorted(
        (rule.id for rule in RULES), key=lambda id_: [rule.id for rule in RULES].index(id_)
    )


def test_the_command_prints_either(tmp_path):
    one = run("explain", "xa-15", "--format", "md", cwd=tmp_path)
    assert one.returncode == 0 and one.stdout.startswith("## XA-15\n")
    everything = run("explain", "*", "--format", "md", cwd=tmp_path)
    assert everything.stdout == rule_pages.page(RULES)
