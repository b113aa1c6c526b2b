"""Copies the regions of tested files, and figures of the record of the benchmarks, into the documents that show them.

It also makes docs/performance.md and its chart from the record. `tools/dev generate` runs it; docs/test_snippets.py,
docs/test_figures.py and benchmarks/tests/test_document.py check.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from gridbuf_benchmarks import plot, report, results  # noqa: E402

SNIPPET = re.compile(r"(<!-- (?:c\+\+ )?snippet: (\S+)#(\w+) -->\n+```[\w+]*\n).*?(```)", re.DOTALL)


def region(path: str, name: str) -> str:
    mark = r"^ *(?:#|//|!) "
    text = (ROOT / path).read_text()
    found = re.search(rf"{mark}\[{name}\]\n(.*?){mark}\[/{name}\]$", text, re.DOTALL | re.MULTILINE)
    if not found:
        raise SystemExit(
            f"{path} has no region [{name}]; mark it with '# [{name}]' and '# [/{name}]'"
        )
    return textwrap.dedent(found[1])


def main() -> None:
    folders = ("docs", "modules", "conformance")
    record = results.read(ROOT / "docs/performance/results.json")
    page = report.page(record, "performance", report.DOCUMENT_CHARTS)
    (ROOT / "docs/performance.md").write_text(page)
    plot.save(record, ROOT / "docs/performance", report.DOCUMENT_CHARTS)
    for document in [*ROOT.glob("*.md"), *(p for d in folders for p in (ROOT / d).rglob("*.md"))]:
        old = document.read_text()
        new = SNIPPET.sub(lambda m: m[1] + region(m[2], m[3]).strip("\n") + "\n" + m[4], old)
        new = report.with_figures(new, record)
        if new != old:
            document.write_text(new)
            print(f"{document.relative_to(ROOT)}: copied")


if __name__ == "__main__":
    main()
