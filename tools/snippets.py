"""Copies the regions of tested files into the documents that show them (`tools/dev generate`); docs/test_snippets.py checks."""

import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
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
    for document in [*ROOT.glob("*.md"), *(p for d in folders for p in (ROOT / d).rglob("*.md"))]:
        old = document.read_text()
        new = SNIPPET.sub(lambda m: m[1] + region(m[2], m[3]).strip("\n") + "\n" + m[4], old)
        if new != old:
            document.write_text(new)
            print(f"{document.relative_to(ROOT)}: snippets copied")


if __name__ == "__main__":
    main()
