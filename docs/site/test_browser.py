"""The site in a real browser. It fails where there is none: nothing here is skipped."""

import time
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from browser import HOW_TO_INSTALL, find_chromium, open_page

NARROW_PX, WIDE_PX = 400, 1280
CONTRAST = """(() => {
  const style = getComputedStyle(document.body);
  const luminance = (css) => css.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const [text, page] = [luminance(style.color), luminance(style.backgroundColor)];
  return {dark: page < text, ratio: (Math.max(text, page) + .05) / (Math.min(text, page) + .05)};
})()"""
SETTLED = "new Promise((done) => setTimeout(done, 50))"


class Address(str):
    """What `Page.load` asks of a path."""

    def as_uri(self) -> str:
        return str(self)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Address(f"http://127.0.0.1:{server.server_port}/")
        server.shutdown()


@pytest.fixture(scope="module")
def page():
    chromium = find_chromium()
    assert chromium, f"there is no Chromium, so the site is not tested; {HOW_TO_INSTALL}"
    with open_page(chromium) as page:
        yield page


@pytest.mark.parametrize(
    "scheme, window_px", [("light", NARROW_PX), ("dark", NARROW_PX), ("light", WIDE_PX)]
)
def test_every_page_is_readable_and_fits_the_window(site, address, page, scheme, window_px):
    page.prefer(scheme)
    page.resize(window_px)
    problems = []
    for path in sorted(site.rglob("*.html")):
        name = str(path.relative_to(site))
        if name.startswith("_static"):
            continue
        page.load(Address(address + name))
        page.run(SETTLED)
        problems += [f"{name}: {error}" for error in page.errors]
        problems += [
            f"{name}: asks for {url}"
            for url in page.requests
            if not url.startswith((address, "data:"))
        ]
        width = page.run(
            "Math.max(document.body.scrollWidth, document.documentElement.scrollWidth)"
        )
        if width > window_px:
            problems.append(f"{name}: {width} px wide in a window of {window_px} px")
        contrast = page.run(CONTRAST)
        if contrast["ratio"] < 7 or contrast["dark"] != (scheme == "dark"):
            problems.append(f"{name}: {scheme} theme, contrast {contrast}")
    assert not problems, "\n".join(problems)


def test_the_search_finds_a_function(address, page):
    page.load(Address(address + "search.html?q=from_array"))
    found = """new Promise((done) => {
      const look = () => document.querySelector("#search-results li a") ? done(document.querySelector("#search-results").innerText) : setTimeout(look, 50);
      look();
    })"""
    assert "from_array" in page.run(found)
    assert not page.errors


GUIDES = ("get-started", "tutorial", "guide/", "how-to/", "explanation/")


@pytest.mark.parametrize(
    "words, member",
    [("domain_view", "Storage.domain_view"), ("halo", "Storage.halo"), ("sum", "Storage.sum")],
)
def test_the_search_finds_the_member_and_the_guide_first(address, page, words, member):
    page.load(Address(address + f"search.html?q={words}"))
    ready = "new Promise((done) => { const look = () => Search.hasIndex() ? done(1) : setTimeout(look, 50); look(); })"
    page.run(ready)
    found = page.run(
        f"Search._performSearch(...Search._parseQuery('{words}')).reverse().map((r) => [r[0], r[1]])"
    )
    places = [place for place, _ in found]
    members = [title for place, title in found if place.startswith("reference/python/")]
    first = [place for place in places if not place.startswith("reference/python/")]
    assert places[0].startswith("reference/python/") and f"gridbuf.storage.{member}" in members[:5]
    assert first[0].startswith(GUIDES)
    decisions = [place.startswith("adr/") for place in places]
    assert decisions == sorted(decisions), "a decision is before another page"


def test_the_sidebar_is_whole_on_the_first_page(address, page):
    page.resize(WIDE_PX)
    page.load(Address(address + "index.html"))
    box = "document.querySelector('.sidebar-tree').getBoundingClientRect()"
    assert 0 <= page.run(f"{box}.top") and page.run(f"innerHeight - {box}.bottom") >= 0


def test_the_table_of_the_zoo_is_whole(address, page):
    page.resize(WIDE_PX)
    page.load(Address(address + "zoo.html"))
    table = "document.querySelector('p:has(#table-filter) ~ .table-wrapper')"
    assert page.run(f"{table}.scrollWidth - {table}.clientWidth") <= 1
    lines = (
        "(text) => Math.round(text.offsetHeight / parseFloat(getComputedStyle(text).lineHeight))"
    )
    row = f"(row) => Math.max(...[...row.querySelectorAll('p')].map({lines}))"
    heights = page.run(f"[...{table}.querySelectorAll('tbody tr')].map({row})")
    assert max(heights) <= 4 and sorted(heights)[len(heights) * 3 // 4] <= 2


@pytest.mark.parametrize("name", ["halo", "layouts", "sides", "cells"])
def test_a_picture_of_the_gallery_is_whole_on_a_telephone(address, page, name):
    page.resize(NARROW_PX)
    page.load(Address(address + "gallery.html"))
    box = f"document.querySelector('img[src$=\"gallery-{name}.svg\"]').getBoundingClientRect()"
    assert 0 <= page.run(f"{box}.left") and page.run(f"{box}.right") <= NARROW_PX


def test_a_click_shows_a_picture_alone(address, page):
    page.load(Address(address + "performance.html"))
    page.follow("document.querySelector('article img').click()")
    assert page.run("location.pathname").endswith("/_images/small.svg")


def test_the_sidebar_shows_where_the_page_is(address, page):
    page.resize(WIDE_PX)
    page.load(Address(address + "how-to/wrap-fortran-memory.html"))
    top = page.run("document.querySelectorAll('.sidebar-tree .toctree-l1').length")
    assert top <= 25
    in_view = (
        "(() => { const box = document.querySelector('.sidebar-tree .current-page').getBoundingClientRect();"
        " return 0 <= box.top && box.bottom <= innerHeight; })()"
    )
    for _ in range(50):  # the page scrolls once it is loaded
        if page.run(in_view):
            return
        time.sleep(0.1)
    raise AssertionError("the current page is not in view")


def test_the_filter_of_the_rules(address, page):
    page.load(Address(address + "reference/rules.html"))
    page.run("document.getElementById('rule-filter').focus()")
    for key in "PB-01":
        page.type_key(key)
    shown = "[...document.querySelectorAll('.rules li')].filter((e) => e.checkVisibility()).map((e) => e.innerText)"
    assert [rule.split()[0] for rule in page.run(shown)] == ["PB-01"]
    assert page.run("document.getElementById('rule-count').textContent").startswith("1 of ")


def test_the_filter_of_the_findings(address, page):
    page.load(Address(address + "zoo.html"))
    total = int(page.run("document.getElementById('table-count').textContent").split()[0])
    page.run("document.getElementById('table-filter').focus()")
    for key in "memory":
        page.type_key(key)
    shown = int(page.run("document.getElementById('table-count').textContent").split()[0])
    assert 0 < shown < total
    page.run("document.getElementById('table-filter').value = ''")
    for name, value in [("severity", "memory"), ("interface", "DLPack"), ("status", "new")]:
        page.run(
            f"(() => {{ const menu = document.getElementById('table-{name}'); menu.value = '{value}';"
            " menu.dispatchEvent(new Event('change')); return menu.value; })()"
        )
    cells = page.run(
        "[...document.querySelectorAll('table')[0].tBodies[0].rows].filter((e) => e.checkVisibility())"
        ".map((e) => [0, 3, 6].map((i) => e.cells[i].innerText))"
    )
    assert 0 < len(cells) < shown
    for severity, interface, status in cells:
        assert severity == "memory" and interface.startswith("DLPack") and status.startswith("new")
