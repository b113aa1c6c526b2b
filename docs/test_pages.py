"""Pages and pictures: the committed pictures are those that docs/images/make.py draws, and all pages and rules can be found."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PAGES = [p for p in DOCS.rglob("*.md") if "site" not in p.relative_to(DOCS).parts]
IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


def load_make():
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "images/make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    return make


MAKE = load_make()


@pytest.mark.parametrize("name", MAKE.PICTURES)
def test_the_picture_is_the_one_that_the_script_draws(name: str) -> None:
    committed = (DOCS / "images" / name).read_text("utf-8")
    assert committed == MAKE.PICTURES[name]().svg(), "run python docs/images/make.py"


def test_each_picture_is_on_a_page_and_has_an_alternative_text() -> None:
    shown = {
        (page.parent / path).resolve(): words
        for page in [ROOT / "README.md", *PAGES]
        for words, path in IMAGE.findall(page.read_text("utf-8"))
    }
    assert not [path for path, words in shown.items() if len(words) < 20]
    pictures = {p for suffix in ("svg", "png") for p in DOCS.rglob(f"*.{suffix}")}
    pictures = {p for p in pictures if "site" not in p.relative_to(DOCS).parts}
    assert pictures and not pictures - set(shown), "a picture that no page shows"


def test_each_page_is_in_an_index() -> None:
    indexes = [DOCS / name for name in ("README.md", "index.md", "adr/README.md")]
    linked = {
        (index.parent / target).resolve()
        for index in indexes
        for target in LINK.findall(index.read_text("utf-8"))
    }
    missing = {str(p.relative_to(ROOT)) for p in set(PAGES) - linked - set(indexes[:2])}
    assert not missing, "link them from docs/README.md"


def test_each_link_to_a_rule_names_a_rule() -> None:
    """The site has a section for each rule, made from these files; reference/rules.md says where they are."""
    tables = (ROOT / "conformance/gridbuf_conformance").rglob("rules.toml")
    rules = {id_.lower() for path in tables for id_ in tomllib.loads(path.read_text("utf-8"))}
    links = {
        (page.name, link)
        for page in PAGES
        for link in re.findall(r"rules\.md#([\w-]+)", page.read_text("utf-8"))
    }
    assert len(rules) > 200 and links
    assert not {link for link in links if link[1] not in rules}
