"""The HTML page in a real browser: it filters, it is readable in both themes, and it loads no other
files.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import HOW_TO_INSTALL, find_chromium, open_page
from rendering import CASES, CATALOGUE, load_case, report_of

from gridbuf_conformance.render import html

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason=f"no Chromium: the HTML page was NOT tested. {HOW_TO_INSTALL}"
)

# Every visible piece of text whose contrast is below 4.5 to 1 (WCAG AA), as "ratio: text".
LOW_CONTRAST = """(() => {
  const rgba = (css) => {
    const n = css.match(/[\\d.]+/g).map(Number);
    return [n[0], n[1], n[2], n[3] ?? 1];
  };
  const luminance = (c) => c.slice(0, 3)
    .map((v) => v / 255)
    .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const background = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgba(getComputedStyle(e).backgroundColor);
      if (c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const e of document.querySelectorAll("body *:not(svg *):not(script)")) {
    const hasText = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!hasText || !e.checkVisibility()) continue;
    const colour = rgba(getComputedStyle(e).color);
    const [a, b] = [luminance(colour), luminance(background(e))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    const text = e.textContent.trim().slice(0, 40);
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)}: ${text} <${e.tagName} ${e.className}>`);
  }
  return low;
})()"""
UNNAMED_CONTROLS = """[...document.querySelectorAll("button, input, select, summary, [role]")]
  .filter((e) => e.checkVisibility() && e.tagName !== "svg")
  .filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")))
  .filter((e) => !(e.labels?.length || e.textContent.trim()))
  .map((e) => e.outerHTML)"""
SHOWN = """[...document.querySelectorAll("details.rule")]
  .filter((e) => e.checkVisibility())
  .map((e) => e.id)"""
LIBRARIES_SHOWN = """[...document.querySelectorAll("#PB-01 .entry")]
  .filter((e) => e.checkVisibility())
  .map((e) => e.dataset.library)"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name in CASES:
        reports, absent = load_case(name)
        made[name] = folder / f"{name}.html"
        made[name].write_text(html.render(reports, absent, catalogue=CATALOGUE), encoding="utf-8")
    reports, absent = load_case("survey")
    first, consumers = reports[:4], reports[-2:]
    for name, some in (
        ("four", first),
        ("both sides", [first[1], *reports[4:6], first[0], *consumers]),
        ("known", [report_of("survey", "mylib")]),
    ):
        made[name] = folder / f"{name.replace(' ', '_')}.html"
        made[name].write_text(html.render(some, absent, catalogue=CATALOGUE), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def browser():
    with open_page(CHROMIUM) as page:
        yield page


@pytest.fixture
def survey(browser, pages):
    """The survey's page, freshly loaded, in the light theme, wide."""
    browser.resize(1280)
    browser.prefer("light")
    browser.load(pages["four"])
    browser.run("localStorage.clear(); delete document.documentElement.dataset.theme")
    return browser


def choose(page, control: str, value: str) -> None:
    page.run(
        f"(() => {{ const e = document.getElementById('{control}'); e.value = {value!r};"
        " e.dispatchEvent(new Event('input')); })()"
    )


def click(page, selector: str) -> None:
    page.run(f"document.querySelector({selector!r}).click()")


@pytest.mark.parametrize("name", CASES)
def test_no_request_and_no_error(browser, pages, name):
    browser.load(pages[name])
    browser.run("new Promise(done => setTimeout(done, 50))")
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [
        pages[name].as_uri()
    ]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_readable_and_every_control_has_a_name(browser, pages, name, scheme):
    browser.resize(1280)
    browser.prefer(scheme)
    browser.load(pages[name])
    browser.run(
        "document.getElementById('reset')?.click(); document.getElementById('expand')?.click()"
    )
    assert browser.run(LOW_CONTRAST) == []
    assert browser.run(UNNAMED_CONTROLS) == []
    folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
    if folder:
        browser.screenshot(Path(folder) / f"{name}-{scheme}.png")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_sticks_out(browser, pages, name, width):
    browser.resize(width)
    browser.load(pages[name])
    browser.run("document.getElementById('expand')?.click()")
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_the_first_view_shows_what_is_broken(survey):
    shown = survey.run(SHOWN)
    assert "PB-01" in shown and "AI-01" not in shown
    assert survey.run("document.getElementById('shown').textContent") == (
        f"{len(shown)} of 14 rules shown"
    )


def test_search_finds_words_of_failures_that_are_folded_away(survey):
    choose(survey, "q", "c-contiguous valueerror")
    assert survey.run(SHOWN) == ["PB-01"]
    choose(survey, "q", "no such words")
    assert survey.run(SHOWN) == []
    assert survey.run("document.getElementById('nothing').checkVisibility()")


def test_library_and_outcome_filter_together(survey):
    choose(survey, "library", "torch")
    assert survey.run(SHOWN) == ["DP-15", "XA-14"]
    click(survey, ".chip[data-kind=failed]")
    assert survey.run(SHOWN) == ["XA-14"]
    click(survey, "#reset")
    assert len(survey.run(SHOWN)) == 14


def test_another_librarys_failure_is_put_away(survey):
    choose(survey, "library", "numpy")
    survey.run("document.getElementById('PB-01').open = true")
    assert survey.run(LIBRARIES_SHOWN) == ["numpy"]


def test_a_cell_of_the_matrix_selects_its_rules(survey):
    click(survey, ".cell[data-library=numpy][data-group=DL]")
    assert survey.run(SHOWN) == ["DL-12"]
    click(survey, ".cell[data-library=array][data-group=PB]")
    assert survey.run(SHOWN) == ["PB-01", "PB-03", "PB-18"]


def test_slash_goes_to_the_search(survey):
    survey.type_key("/")
    assert survey.run("document.activeElement.id") == "q"
    assert survey.run("document.getElementById('q').value") == ""


def test_a_link_to_a_rule_opens_it_even_if_filtered_out(browser, pages):
    browser.load(pages["four"])
    browser.run("location.hash = 'AI-01'; new Promise(done => setTimeout(done, 50))")
    assert browser.run("document.getElementById('AI-01').open")
    assert "AI-01" in browser.run(SHOWN)


def test_the_theme_button_switches_and_is_remembered(survey, pages):
    background = "getComputedStyle(document.body).backgroundColor"
    light = survey.run(background)
    click(survey, "#theme")
    dark = survey.run(background)
    assert dark != light
    survey.load(pages["four"])
    assert survey.run(background) == dark
    survey.prefer("dark")
    click(survey, "#theme")
    assert survey.run(background) == light


def test_without_scripts_everything_is_there(browser, pages):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.load(pages["four"])
        assert len(browser.run(SHOWN)) == 14
        assert not browser.run("document.getElementById('filters').checkVisibility()")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_producers_markup_is_text(browser, pages):
    browser.load(pages["hostile"])
    actual = browser.run("document.querySelector('#PB-03 .actual dd').textContent")
    assert "<script>alert(1)</script>" in actual and "\\x1b[2J" in actual


@pytest.fixture
def merged(browser, pages):
    """A page with producers and consumers, one library in three rows."""
    browser.resize(1280)
    browser.prefer("light")
    browser.load(pages["both sides"])
    return browser


def test_consumers_have_a_matrix_of_their_own(merged):
    headings = merged.run("[...document.querySelectorAll('.card h2')].map(e => e.textContent)")
    assert headings[:2] == ["Producers by rule group", "Consumers by rule group"]
    rows = (
        "[...document.querySelectorAll('[aria-labelledby=%s] tbody tr')]"
        ".map(e => e.dataset.library)"
    )
    assert merged.run(rows % '"consumers-title"') == ["numpy.from_dlpack", "torch.from_dlpack"]


def test_rows_of_one_library_are_told_apart(merged):
    labels = ["numpy 2.4.6 Python 3.11.2", "numpy 1.26.4", "numpy 2.4.6 Python 3.13.2", "array"]
    choices = merged.run("[...document.getElementById('library').options].map(o => o.value)")
    assert choices[1:5] == labels
    choose(merged, "library", labels[1])
    merged.run("document.getElementById('PB-01').open = true")
    assert merged.run(LIBRARIES_SHOWN) == [labels[1]]


def test_a_heading_opens_its_group_to_its_rules(merged):
    table = "[aria-labelledby=producers-title]"
    click(merged, f"{table} .heading[data-group=PB]")
    marks = f"document.querySelectorAll('{table} .mark')"
    assert merged.run(f"{marks}.length") == 4 * 3
    assert merged.run(f"{marks}[0].title") == "PB-01 numpy 2.4.6 Python 3.11.2: failed"
    shown = merged.run(
        f"[...document.querySelectorAll('{table} thead .strip i')].map(e => e.textContent)"
    )
    assert shown == ["01", "03", "18"]
    merged.run(f"{marks}[4].click(); new Promise(done => setTimeout(done, 50))")
    assert merged.run("document.getElementById('PB-03').open")
    assert merged.run(LOW_CONTRAST) == []
    click(merged, f"{table} .heading[data-group=PB]")
    assert merged.run(f"{marks}.length") == 0
    click(merged, "[aria-labelledby=consumers-title] .heading[data-group=DL]")
    assert merged.run("document.querySelectorAll('.mark').length") == 2, (
        "DL-03 alone was asked of them"
    )


def test_arrow_keys_walk_the_matrix(merged):
    focused = "document.activeElement.dataset.library + '/' + document.activeElement.dataset.group"
    merged.run("document.querySelector('.cell').focus()")
    for key, place in (
        ("ArrowRight", "numpy 2.4.6 Python 3.11.2/PB"),
        ("ArrowDown", "numpy 1.26.4/PB"),
        ("ArrowDown", "numpy 2.4.6 Python 3.13.2/PB"),
        ("ArrowRight", "numpy 2.4.6 Python 3.13.2/DL"),
        ("ArrowDown", "numpy 2.4.6 Python 3.13.2/DL"),  # array has no cell there
        ("ArrowLeft", "numpy 2.4.6 Python 3.13.2/PB"),
        ("ArrowDown", "array/PB"),
        ("ArrowUp", "numpy 2.4.6 Python 3.13.2/PB"),
    ):
        merged.press(key)
        assert merged.run(focused) == place
    stops = (
        "[...document.querySelectorAll('[aria-labelledby=producers-title] .cell')]"
        ".filter(e => e.tabIndex === 0).length"
    )
    assert merged.run(stops) == 1


def test_a_known_failure_is_shown_and_can_be_filtered(browser, pages):
    browser.load(pages["known"])
    browser.run("document.getElementById('reset').click()")
    for kind in ("failed", "advisory", "passed", "silent"):
        click(browser, f".chip[data-kind={kind}]")
    assert browser.run(SHOWN) == ["AI-22", "PB-03"]
    assert "rows are taken for packed" in browser.run(
        "document.getElementById('AI-22').textContent"
    )


def test_forty_libraries_scroll_in_their_place(browser, tmp_path):
    """The page stays as wide as the window; heading and names stay in sight while the matrix
    scrolls.
    """
    reports = load_case("survey")[0][:4]
    many = [
        {**report, "target": {**report["target"], "name": f"a.package.of.some.length:{name}{n}"}}
        for n in range(10)
        for name, report in zip("wxyz", reports)
    ]
    path = tmp_path / "many.html"
    path.write_text(html.render(many, catalogue=CATALOGUE), encoding="utf-8")
    for width in (390, 1280):
        browser.resize(width)
        browser.load(path)
        browser.run("document.querySelector('.tall').scrollTo(200, 600)")
        assert browser.run("document.documentElement.scrollWidth") <= width
        gap = browser.run(
            "(() => { const box = document.querySelector('.tall').getBoundingClientRect();"
            " const head = document.querySelector('.tall thead th').getBoundingClientRect();"
            " return [head.top - box.top, head.left - box.left]; })()"
        )
        assert gap == [0, 0]
