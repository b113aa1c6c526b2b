"""A how-to as a project: the files that it shows, written to a folder, and what it says that the program prints."""

from __future__ import annotations

import re
from pathlib import Path

# The source tree, also where Bazel runs this from a folder of links.
ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"<!-- (?:c\+\+ )?snippet: examples/\w+/(\S+)#\w+ -->\n+```[\w+]*\n(.*?)```", re.DOTALL
)


def write_project(page: str, folder: Path) -> None:
    """Writes the files of a page; a file with several blocks is these in their order. The path "../.." in them becomes gridbuf's."""
    text = (ROOT / page).read_text(encoding="utf-8")
    files: dict[str, str] = {}
    for name, code in BLOCK.findall(text):
        files[name] = files.get(name, "") + code.replace('"../.."', f'"{ROOT}"')
    assert files, f"{page} shows no file"
    for name, code in files.items():
        (folder / name).write_text(code, encoding="utf-8")


def console(page: str) -> tuple[list[str], str]:
    """The commands of the page's console, and what they print."""
    (block,) = re.findall(
        r"```console\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL
    )
    lines = block.splitlines(keepends=True)
    commands = [line[2:].strip() for line in lines if line.startswith("$ ")]
    return commands, "".join(line for line in lines if not line.startswith("$ "))
