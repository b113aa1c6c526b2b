"""Writes a Python file or stub with whole docstrings: `expand_docstrings.py SOURCE TARGET`.

A text that functions share is in the source once. A docstring refers to it by the name of the function or method above that
has it, and may give another default. Entries of "Raises" are written in this way, too, and whole sections.

    shape, dtype : as in `empty`
    layout : as in `empty`
        Default: that of `data`.

    Raises, Notes : as in `empty`

In a stub, `**keywords: Unpack[Shared]` stands for the keys of the TypedDict `Shared` as keyword-only parameters, each with
the default that its comment has: `device: str  # = None`.
"""

import ast
import re
import sys
import textwrap
from collections.abc import Iterator

WIDTH = 100
SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Notes", "Examples")
ENTRY = re.compile(r"^( *)(\S.*)\n((?:\1 +\S.*\n)*)", re.MULTILINE)
SECTION = re.compile(r"^( *)(\w+)\n\1-{3,}\n((?:(?!\1\w+\n\1-{3,}\n|\1\"\"\").*\n)*)", re.MULTILINE)
REFERENCE = re.compile(r"(\S.*) : as in `([\w.]+)`")
KEYWORDS = re.compile(
    r"^(def \w+\(\n)((?: .*\n)*? .*)\*\*keywords: Unpack\[(\w+)\],?\n", re.MULTILINE
)
KEY = re.compile(r"^ *(\w+: .+?)  # (= .+)$", re.MULTILINE)


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions, classes and members by their qualified names, in the order of the file."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield prefix + node.name, node
            yield from definitions(node, f"{prefix}{node.name}.")


def with_default(text: str, default: str) -> str:
    """The text of a parameter, with another default if there is one."""
    return f"{text.partition(' Default: ')[0]} {default}" if default else text


def sections_like(
    known: dict[str, tuple[str, str]], titles: list[str], indent: str, head: str
) -> str:
    """These sections of another docstring, with a title and an empty line each."""
    if missing := [title for title in titles if title not in known]:
        sys.exit(f"there is no text for {missing[0]}, to which {head!r} refers")
    made = [f"{title}\n{'-' * len(title)}\n{known[title][1]}\n" for title in titles]
    return textwrap.indent("\n".join(made), indent)


def expand_docstring(text: str, known: dict[str, dict[str, tuple[str, str]]]) -> str:
    """The docstring with the entries that it refers to. `known` has entries by function and name."""

    def expand(entry: re.Match[str]) -> str:
        indent, head, default = entry.groups()
        if not (reference := REFERENCE.fullmatch(head)):
            return entry[0]
        names, function = reference.groups()
        if names.partition(",")[0] in SECTIONS:
            return sections_like(known.get(function, {}), names.split(", "), indent, head)
        found = ""
        for name in names.split(", "):
            if name not in known.get(function, ()):
                sys.exit(f"`{function}` has no text for {name}, to which {head!r} refers")
            shared_head, shared_text = known[function][name]
            text = with_default(shared_text, " ".join(default.split()))
            inner = indent + 4 * " "
            lines = textwrap.fill(text, WIDTH, initial_indent=inner, subsequent_indent=inner)
            found += f"{indent}{shared_head}\n{lines}\n"
        return found

    return ENTRY.sub(expand, text)


def entries(docstring: str) -> dict[str, tuple[str, str]]:
    """First line and text of a docstring's entries by the name of the parameter or exception; sections by title."""
    found = {
        entry[2].partition(" : ")[0]: (entry[2], " ".join(entry[3].split()))
        for entry in ENTRY.finditer(docstring)
        if entry[3]
    }
    sections = {
        section[2]: (section[2], textwrap.dedent(section[3]).strip("\n"))
        for section in SECTION.finditer(docstring)
        if section[2] in SECTIONS
    }
    return found | sections


def expand_docstrings(source: str) -> str:
    lines = source.splitlines(keepends=True)
    known: dict[str, dict[str, tuple[str, str]]] = {}
    for name, node in definitions(ast.parse(source)):
        if not ast.get_docstring(node):
            continue
        first, last = node.body[0].lineno - 1, node.body[0].end_lineno
        docstring = expand_docstring("".join(lines[first:last]), known)
        known[name] = entries(docstring)
        lines[first:last] = [docstring] + [""] * (last - first - 1)
    return "".join(lines)


def expand_keywords(source: str) -> str:
    lines = source.splitlines()
    keys = {
        node.name: KEY.findall("\n".join(lines[node.lineno : node.end_lineno]))
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }

    def expand(match: re.Match[str]) -> str:
        name, own, shared = match.groups()
        parameters = re.split(r",\s+(?=\*|\w+:)", own.strip().rstrip(","))
        parameters += ["*"] if "*" not in parameters else []
        parameters += [" ".join(key) for key in keys[shared]]
        return name + "".join(f"    {parameter},\n" for parameter in parameters)

    return KEYWORDS.sub(expand, source)


def main() -> None:
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    with open(target, "w", encoding="utf-8") as file:
        file.write(expand_docstrings(expand_keywords(text)))


if __name__ == "__main__":
    main()
