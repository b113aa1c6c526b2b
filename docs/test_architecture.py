"""docs/architecture.md is true: the diagram is the output of Bazel's query, and its limit holds. test_walks.py traces the walks."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent
# The document and the sources are read in the source tree: the target is `local`.
DOCUMENT = (HERE / "architecture.md").resolve()
ROOT = DOCUMENT.parents[1]
MOST_LIBRARIES = 30


def edges() -> set[tuple[str, str]]:
    """(library, what it depends on), of the query's output in the language of Graphviz."""
    found = re.findall(
        r'"//modules/([^":]+):([^"]+)" -> "//modules/([^":]+):([^"]+)"',
        (HERE / "libraries.dot").read_text(),
    )
    return {(a, b) for a, _, b, _ in found if a != b}


def without_implied(graph: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges that no longer way implies."""
    below: dict[str, set[str]] = {}

    def reach(node: str) -> set[str]:
        if node not in below:
            below[node] = set()
            for a, b in graph:
                if a == node:
                    below[node] |= {b} | reach(b)
        return below[node]

    return {
        (a, b) for a, b in graph if not any((a, c) in graph and b in reach(c) for _, c in graph)
    }


def diagram() -> str:
    lines = sorted(
        f"  {a.replace('/', '.')} --> {b.replace('/', '.')}" for a, b in without_implied(edges())
    )
    return "\n".join(["```mermaid", "graph TD", *lines, "```"])


def test_the_diagram_is_what_the_query_says() -> None:
    found = re.search(r"```mermaid\n.*?\n```", DOCUMENT.read_text(), re.DOTALL)
    assert found, "docs/architecture.md has no diagram"
    assert found[0] == diagram(), f"paste this into docs/architecture.md:\n{diagram()}"


def test_there_are_few_libraries() -> None:
    builds = [path.read_text() for path in (ROOT / "modules").rglob("BUILD.bazel")]
    rules = [
        rule
        for build in builds
        for rule in re.findall(r"^cc_module\(\n(.*?)^\)", build, re.DOTALL | re.MULTILINE)
    ]
    products = [rule for rule in rules if "testonly = True" not in rule]
    assert 10 < len(products) <= MOST_LIBRARIES


def test_the_suites_walk_names_files_that_exist() -> None:
    walk = DOCUMENT.read_text().partition("check numpy`\n")[2].partition("\n### ")[0]
    named = re.findall(r"`(conformance/[\w/.]+)`", walk)
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []
