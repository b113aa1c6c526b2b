"""Writes the docstrings of the type stub as a C++ header, whose `doc("zeros")` gives one of them.

The stub is the only source of the extension's docstrings. A function's text begins with the line from which
`inspect.signature` reads its parameters. Of overloads, the one with the docstring counts.
"""

import ast
import sys
from collections.abc import Iterator

# CPython drops `$self` from the signature of a bound method. pybind11's methods, which are all others, need `self`.
SLOT_METHODS = ("__dlpack__", "__dlpack_device__")

HEADER = """\
// Made from {source} by docstrings.py.
#pragma once

#include <string_view>

namespace gridbuf::python {{

struct Docstring {{
  std::string_view name;
  const char* text;
}};

inline constexpr Docstring kDocstrings[] = {{
{rows}
}};

/// The docstring of "function", "Class" or "Class.member". A name without one does not compile.
consteval const char* doc(std::string_view name) {{
  for (const Docstring& docstring : kDocstrings) {{
    if (docstring.name == name) return docstring.text;
  }}
  throw "the stub has no docstring of this name";
}}

}}  // namespace gridbuf::python
"""


def signature(function: ast.FunctionDef, own: str | None = None) -> str:
    """The parameters without types. `own` is how the first one of a method is written, "" to leave it out."""
    arguments = function.args
    optional = [arg for arg in (arguments.vararg, arguments.kwarg) if arg]
    for arg in arguments.posonlyargs + arguments.args + arguments.kwonlyargs + optional:
        arg.annotation = None
    if own is not None:
        (arguments.posonlyargs or arguments.args).pop(0)
    if own:
        arguments.posonlyargs.insert(0, ast.arg(own))
    return f"({ast.unparse(arguments)})"


def with_signature(name: str, parameters: str, text: str) -> str:
    return f"{name}{parameters}\n--\n\n{text}"


def of_class(kind: ast.ClassDef, text: str) -> str:
    """The signature of a class that can be called is that of `__new__`."""
    for member in kind.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__new__":
            return with_signature(kind.name, signature(member, ""), text)
    return text


def of_member(function: ast.FunctionDef, text: str) -> str:
    marks = function.decorator_list
    if any(isinstance(mark, ast.Name) and mark.id == "property" for mark in marks):
        return text
    own = "$self" if function.name in SLOT_METHODS else "self"
    return with_signature(function.name, signature(function, own), text)


def docstrings(stub: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, text) of everything in the stub that has a docstring."""
    for node in stub.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        text = ast.get_docstring(node)
        if isinstance(node, ast.FunctionDef):
            if text:
                public = node.name.removeprefix("_storage_")  # its name in gridbuf.storage
                yield node.name, with_signature(public, signature(node), text)
            continue
        if text:
            yield node.name, of_class(node, text)
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and (text := ast.get_docstring(member)):
                yield f"{node.name}.{member.name}", of_member(member, text)


def literal(text: str) -> str:
    """A C++ literal per line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    return "\n".join(f'     "{line}\\n"' for line in escaped[:-1]) + f'\n     "{escaped[-1]}"'


def main() -> None:
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as stub:
        found = list(docstrings(ast.parse(stub.read())))
    rows = "\n".join(f'    {{"{name}",\n{literal(text)}}},' for name, text in found)
    with open(target, "w", encoding="utf-8") as header:
        # The build makes the stub in its own folder.
        header.write(HEADER.format(source=source.rpartition("/bin/")[2], rows=rows))


if __name__ == "__main__":
    main()
