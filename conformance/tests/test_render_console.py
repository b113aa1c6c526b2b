"""The console rendering, against golden files and for what golden files cannot show."""

from __future__ import annotations

import io

import pytest
from rendering import CASES, CATALOGUE, assert_golden, load_case, report_of
from rich.console import Console

from gridbuf_conformance.render import console as console_renderer
from gridbuf_conformance.render.summary import GROUPS, Absent


def console_of(width: int = 100, encoding: str = "utf-8") -> Console:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    return Console(file=stream, width=width, color_system=None, legacy_windows=False)


def text_of(console: Console) -> str:
    console.file.flush()
    return console.file.buffer.getvalue().decode(console.encoding)


def rendered(name: str, width: int = 100, encoding: str = "utf-8", **options: bool) -> str:
    reports, absent = load_case(name)
    console = console_of(width, encoding)
    if name == "survey":
        console_renderer.render_survey(reports, console, absent=absent, catalogue=CATALOGUE)
    else:
        console_renderer.render(reports[0], console, catalogue=CATALOGUE, **options)
    return text_of(console)


def last_line(text: str) -> str:
    return text.rstrip().splitlines()[-1]


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    assert_golden(f"{name}.txt", rendered(name))


def test_a_survey_of_nothing_says_so():
    console = console_of()
    console_renderer.render_survey([], console, catalogue=CATALOGUE)
    assert text_of(console) == "No library was judged.\n"


@pytest.mark.parametrize("width", [40, 80])
def test_a_matrix_of_all_groups_is_cut_into_tables_that_fit(width):
    """Nine columns are too many for most terminals next to the names; none may be cropped."""
    reports = [report_of("survey", name) for name in ("numpy", "devicelib")]
    console = console_of(width)
    console_renderer.render_survey(reports, console, catalogue=CATALOGUE)
    text = text_of(console)
    assert_golden(f"survey.{width}.txt", text)
    heads = [line for line in text.splitlines() if line.startswith("library")]
    has = {rule["id"].partition("-")[0] for report in reports for rule in report["rules"]}
    wanted = [*filter(has.__contains__, GROUPS), "plans"]
    assert [word for line in heads for word in line.split()[1:]] == wanted
    matrix = text[: text.index("rules that hold")].splitlines()
    assert all(len(line) <= width for line in matrix)


@pytest.mark.parametrize("height", [30, 40, 60])
def test_a_survey_fits_the_last_screen_of_a_terminal(height):
    """The matrix, at least two failures, and the path; libraries that are not available take one
    line.
    """
    reports = load_case("survey")[0][:4]
    reports += [
        {**reports[0], "target": {**reports[0]["target"], "name": f"array{number}"}}
        for number in range(8)
    ]
    absent = [Absent(f"library{number}", "not installed", "pip install") for number in range(40)]
    console = console_of()
    console._force_terminal, console._height = True, height
    console_renderer.render_survey(
        reports, console, absent=absent, paths=["/a/survey.html"], catalogue=CATALOGUE
    )
    lines = text_of(console).splitlines()
    findings = sum(line.startswith("  replay ") for line in lines)
    assert lines[0].startswith("library") and lines[-1] == "Report: /a/survey.html"
    assert lines[-2].startswith("Not available: library0, library1, library2, ")
    assert lines[-2].endswith(" more; see gridbuf-conformance list")
    assert max(map(len, lines)) <= 120
    assert findings >= 2
    assert len(lines) < height or findings == 2
    assert findings == 5 or len(lines) + 4 >= height, "there was room for one more"


def test_golden_verbose():
    assert_golden("failures.verbose.txt", rendered("failures", verbose=True))


@pytest.mark.parametrize("name", CASES)
def test_a_terminal_without_unicode_gets_ascii(name):
    """A C locale must not end in UnicodeEncodeError."""
    text = rendered(name, encoding="ascii")
    assert text.isascii()
    assert "?" not in text.replace("?format", "")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_but_commands_links_drawings_and_the_verdict_is_wider_than_the_terminal(
    name, width
):
    for line in rendered(name, width=width).splitlines()[:-1]:
        is_free = "gridbuf-conformance replay" in line or line.startswith(("    ", "  link  "))
        assert len(line) <= width or is_free, line


def test_a_failure_holds_everything_a_reader_needs():
    text = rendered("failures")
    block = text[text.index("✗ AI-22") : text.index("✗ PB-01")]
    for part in (
        "MUST",
        "The hull stays inside the producer's memory",
        "the byte hull lies inside the memory that the object owns",
        "48 bytes are reached, the block has 32",
        'shape=[6] dtype="int64" views=[["slice", 0, 0, null, 2]]',
        "16 bytes outside the block",
        "gridbuf-conformance replay numpy AI-22 '{",
    ):
        assert part in block


def test_a_replay_command_stays_on_one_line_however_narrow_the_terminal():
    text = rendered("failures", width=40)
    (line,) = (line for line in text.splitlines() if "replay numpy PB-01" in line)
    assert line.endswith('\'{"shape":[2,2],"layout":[1,0]}\'')


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("memoryview", "‼ memoryview was not judged: nothing was selected."),
        ("array", "✓ array conforms: 4 rules judged."),
        ("choosy", "‼ choosy was not judged: it declined every plan."),
        ("mylib", "✗ mylib does not conform: 1 of 5 rules failed (PB-01)."),
        (
            "zoo.py:Segfault",
            "‼ zoo.py:Segfault was not fully judged: "
            "the suite failed on 1 of 5 rules, and it failed 3 rules.",
        ),
    ],
)
def test_the_last_line_says_why(name, last):
    console = console_of()
    console_renderer.render(report_of("survey", name), console, catalogue=CATALOGUE)
    assert last_line(text_of(console)) == last


def test_the_last_line_names_what_failed():
    said = "✗ numpy does not conform: 3 of 9 rules failed (AI-22, PB-01, GT-24)."
    assert last_line(rendered("failures")) == said


def test_terminal_escapes_of_a_producer_never_reach_the_terminal():
    text = rendered("hostile")
    assert "\x1b" not in text
    assert r"\x1b[2J" in text
    assert "[bold]markup[/bold]" in text, "rich must not read a producer's words as markup"
