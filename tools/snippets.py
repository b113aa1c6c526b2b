"""Copies the regions of tested files into the documents that show them (`tools/dev docs`); docs/test_snippets.py checks."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
SNIPPET = re.compile(r"(<!-- snippet: (\S+)#(\w+) -->\n```\w*\n).*?(```)", re.DOTALL)


def region(path: str, name: str) -> str:
    found = re.search(
        rf"^# \[{name}\]\n(.*?)^# \[/{name}\]$", (ROOT / path).read_text(), re.DOTALL | re.MULTILINE
    )
    if not found:
        raise SystemExit(f"{path} has no region [{name}]; mark it with '# [{name}]' and '# [/{name}]'")
    return found[1]


def main() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        old = document.read_text()
        new = SNIPPET.sub(lambda m: m[1] + region(m[2], m[3]) + m[4], old)
        if new != old:
            document.write_text(new)
            print(f"{document.relative_to(ROOT)}: snippets copied")


if __name__ == "__main__":
    main()
