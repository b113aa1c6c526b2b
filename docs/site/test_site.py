"""The site that Sphinx makes, without a browser: pages, links, search, and what it asks the network for."""

import json
import pydoc
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import build_site
import pytest


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.ids |= {known[key] for key in ("id", "name") if known.get(key)}
        if tag == "a" and known.get("href"):
            self.links.add(known["href"])
        elif tag in ("script", "img", "source", "iframe") and known.get("src"):
            self.loaded.add(known["src"])
        elif tag == "link" and known.get("rel") == "stylesheet":
            self.loaded.add(known["href"])


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {
        path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }


def test_links_inside_the_site_lead_somewhere(pages):
    dead = []
    for path, page in pages.items():
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                dead.append(f"{path.name}: {link}")
            elif (
                target in pages
                and parts.fragment
                and unquote(parts.fragment) not in pages[target].ids
            ):
                dead.append(f"{path.name}: {link} has no such anchor")
    assert not dead, "\n".join(dead)


def test_no_page_loads_from_the_network(pages):
    foreign = {
        src
        for page in pages.values()
        for src in page.loaded
        if urlsplit(src).scheme in ("http", "https")
    }
    assert not foreign


def test_each_document_has_a_page(site):
    missing = [
        source
        for source, page in build_site.PAGES.items()
        if not (site / page).with_suffix(".html").exists()
    ]
    assert not missing


@pytest.mark.parametrize(
    "page, text",
    [
        ("reference/python/gridbuf", "gridbuf.from_array"),
        ("reference/python/gridbuf.storage", "gridbuf.storage.Storage"),
        ("reference/cpp/layout", "make_plan"),
        ("reference/cpp/c", "gridbuf_storage_access"),
        ("reference/cpp/transfer", "gridbuf.transfer.device"),
        ("reference/cli", "replay"),
        ("reference/rules/dl", "DL-01"),
        ("architecture", "<svg"),
        ("performance", "sizes.svg"),
        ("scoreboard", "scoreboard-matrix.html"),
        ("scoreboard-matrix", 'id="library-numpy"'),
        ("scoreboard-matrix", 'href="badges/numpy.svg"'),
    ],
)
def test_the_reference_has(site, page, text):
    assert text in (site / f"{page}.html").read_text(encoding="utf-8")


def test_libraries_have_badges(site):
    assert "NumPy" in (site / "badges/numpy.svg").read_text(encoding="utf-8")


def test_the_search_knows_words_and_names(site):
    index = json.loads(
        (site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")")
    )
    assert "padding" in index["terms"] or "pad" in index["terms"]
    assert "gridbuf" in index["objects"]


def test_a_module_interface_becomes_a_header():
    interface = "module;\n#include <span>\nexport module a.b;\nexport import a.c;\nimport d;\nexport namespace a {\nexport int f();\n}\n"
    assert (
        build_site.as_header(interface) == "\n#include <span>\n\n\n\nnamespace a {\nint f();\n}\n"
    )
    fields = "struct A {\n  int a = 0;  // bytes\n              // of the row\n  // Reads it.\n  int b;\n};\n"
    assert build_site.as_header(fields) == fields.replace("// bytes", "///< bytes").replace(
        "// of", "///< of"
    )


def test_links_to_files():
    text = "[page](../spec.md#a) [`file`](../../bazelw) `[code](x.md)`\n```\n[code](y.md)\n```\n"
    made = build_site.with_links(text, "docs/how-to/x.md", "how-to/x.md")
    assert made == text.replace("[`file`](../../bazelw)", "`file` (`bazelw`)")


def test_every_public_python_name_has_an_entry_with_a_text(site):
    assert sum(map(len, build_site.public_names().values())) > 200
    assert build_site.undocumented(site) == []


def test_the_index_by_task_has_every_function_class_and_method(site, pages):
    """The other members of the suite's classes are for code that reads plans."""
    anchors = {urlsplit(link).fragment for link in pages[site / "reference/by-task.html"].links}
    names = {
        name
        for module, names in build_site.public_names().items()
        for name in names
        if name.rpartition(".")[0] == module
        or (module != "gridbuf_conformance" and callable(pydoc.locate(name)))
    }
    # It raises a TypeError that names its successor.
    names.remove("gridbuf.storage.Storage.set_device_synchronized")
    assert len(names) > 150 and sorted(names - anchors) == []


def test_the_entries_of_the_index_by_task_are_links(site):
    html = (site / "reference/by-task.html").read_text(encoding="utf-8")
    entries = re.findall(r'(<a [^>]*>)?<code class="xref[^>]*>(.*?)</code>', html)
    assert len(entries) > 250 and [name for link, name in entries if not link] == []


def test_every_exported_cpp_type_and_function_has_a_comment(site):
    assert build_site.undocumented_cpp(site.parent / "doxygen/xml") == []


def test_rules_of_a_docstring_are_links_to_the_specification(site):
    texts = [p.read_text(encoding="utf-8") for p in (site / "reference/python").glob("*.html")]
    assert sum(text.count("spec.html#item-") for text in texts) > 100
    assert not [text for text in texts if re.search(r"docs/spec\.md\s+\d", text)]


def test_a_drawing_is_not_highlighted_as_a_language(site):
    page = (site / "explanation/layout.html").read_text(encoding="utf-8")
    assert "highlight-pycon" in page and "highlight-default" not in page


def test_a_page_has_a_link_to_edit_it_where_the_repository_has_an_address(monkeypatch):
    import conf

    context = {"body": ""}
    conf.edit_link(None, "how-to/use-xarray", "page.html", context, None)
    assert "docs/how-to/use-xarray.md" in context["body"]
    assert not context["theme_source_edit_link"]
    monkeypatch.setenv("GRIDBUF_REPOSITORY", "https://example.org/gridbuf")
    conf.edit_link(None, "how-to/use-xarray", "page.html", context, None)
    assert context["theme_source_edit_link"].endswith("/edit/main/docs/how-to/use-xarray.md")


def test_the_specification_links_to_its_tests(site, pages):
    path = site / "tests/modules/layout/layout_test.cc.html"
    assert "L1" in pages[path].ids
    links = [link for link in pages[site / "spec.html"].links if link.startswith("tests/")]
    assert len(links) > 1000
