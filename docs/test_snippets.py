"""The code in README.md and docs/ is a region of a file that the tests run: what is printed is what works.

A fenced block preceded by `<!-- snippet: FILE#REGION -->` must equal the lines between `# [REGION]` and `# [/REGION]` (`//` in C++).
"""

import pathlib
import re
import runpy
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "modules", "conformance")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(p for d in FOLDERS for p in (ROOT / d).rglob("*.md"))])
SNIPPET = re.compile(r"<!-- (?:c\+\+ )?snippet: (\S+)#(\w+) -->\n+```[\w+]*\n(.*?)```", re.DOTALL)
EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))


def snippets() -> list[tuple[pathlib.Path, str, str, str]]:
    return [(d, *found) for d in DOCUMENTS for found in SNIPPET.findall(d.read_text())]


def region(path: pathlib.Path, name: str) -> str:
    mark = r"^ *(?:#|//) "
    found = re.search(
        rf"{mark}\[{name}\]\n(.*?){mark}\[/{name}\]$", path.read_text(), re.DOTALL | re.MULTILINE
    )
    assert found, f"{path} has no region [{name}]"
    return textwrap.dedent(found[1])


def test_the_readme_has_snippets():
    assert [d for d, *_ in snippets() if d == ROOT / "README.md"]


@pytest.mark.parametrize(
    "document, path, name, code", snippets(), ids=lambda v: getattr(v, "name", None)
)
def test_snippet_is_the_region_it_names(document, path, name, code):
    assert textwrap.dedent(code).strip() == region(ROOT / path, name).strip()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(example):
    runpy.run_path(str(example))


LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(document):
    text = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(), flags=re.DOTALL)
    dead = [target for target in LINK.findall(text) if not (document.parent / target).exists()]
    assert not dead
