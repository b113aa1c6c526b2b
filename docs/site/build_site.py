"""Builds the documentation site: `tools/dev docs`, or `python docs/site/build_site.py FOLDER`.

Sphinx reads a folder that is made here: the pages of docs/ and the READMEs that have a page, with their links adapted, and the
pages of the reference that are made from the code. `./bazelw --docs` installs the tools; the build uses no network.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

try:
    from sphinx.cmd.build import main as sphinx
except ImportError:
    raise SystemExit(
        "the site needs Sphinx and more, which are not installed: ./bazelw --docs"
    ) from None

from gridbuf_benchmarks import plot, report, results
from gridbuf_conformance import cli
from gridbuf_conformance.render import rule_pages as all_rules
from gridbuf_conformance.rules import catalogue
from spec_tests import REFERENCE, find_test
from sphinx.ext.autodoc.mock import mock
from sphinx.pycode import ModuleAnalyzer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

PYTHON = {
    "gridbuf": "arrays, layouts and stencils",
    "gridbuf.storage": "storages",
    "gridbuf.memory": "host memory",
    "gridbuf.mpi": "halo exchange",
    "gridbuf.xarray": "labelled arrays",
    "gridbuf.testing": "the emulated device and other help for tests",
    "gridbuf.gt4py.cartesian": "the functions of gt4py.storage",
    "gridbuf.gt4py.next": "fields of gt4py.next",
    "gridbuf_conformance": "the conformance suite",
}
"""Each module has a page of the reference."""
ABSENT = [name for name in ("gt4py", "xarray") if not importlib.util.find_spec(name)]
"""Optional peers that a stand-in replaces, so that the site is the same without them."""

LIBRARIES = {
    library: sorted(
        path
        for path in (ROOT / "modules" / library).rglob("*.cppm")
        if not {"testing", "fuzz", "fake"} & set(path.parts)
    )
    for library in "base layout alloc device interface transfer array storage call".split()
}
LIBRARIES["c"] = [ROOT / "modules/c/gridbuf.h", ROOT / "modules/c/gridbuf.hpp"]
"""The C++ libraries, low ones first, and the module interfaces or headers of each."""

PAGES = {
    "README.md": "index.md",
    "docs/README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "conformance/README.md": "guide/suite.md",
    "conformance/cc/README.md": "guide/suite-cc.md",
    "modules/python/README.md": "reference/python/index.md",
    "zoo/README.md": "zoo.md",
    **{f"modules/{library}/README.md": f"reference/cpp/{library}.md" for library in LIBRARIES},
    **{
        (path := str(p.relative_to(ROOT))): path.removeprefix("docs/")
        for p in sorted((ROOT / "docs").rglob("*.md"))
        if p != ROOT / "docs/README.md"
    },
}
"""Files of the repository that have a page, and which."""

RECORD = results.read(ROOT / "docs/performance/results.json")
DRAWN = {f"docs/performance/{name}.svg" for name in plot.names(RECORD)}
"""The charts of the record, which the site draws."""

LINK = re.compile(
    r"(?P<code>^ *```.*?^ *```)"
    r"|(?P<image>!?)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
    r"|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)


def with_links(text: str, source: str, page: str) -> str:
    """The one rule for links to files: to the file's page where it has one, else the file's path as text.

    Args:
        text: Markdown.
        source: the file it is from, in the repository.
        page: the page it goes to, in the site.
    """

    def link(match: re.Match[str]) -> str:
        if not match["path"]:
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(source), match["path"]))
        if path not in {*DRAWN, *PAGES} and not (ROOT / path).exists():
            raise SystemExit(f"{source}: the link to {match['path']} leads nowhere")
        anchor = match["anchor"] or ""
        if match["image"]:
            target = os.path.relpath(path.removeprefix("docs/"), os.path.dirname(page) or ".")
            return f"![{match['text']}]({target})"
        if path in PAGES:
            target = os.path.relpath(PAGES[path], os.path.dirname(page) or ".")
            return f"[{match['text']}]({target}{anchor})"
        plain = match["text"].strip("`")
        return f"`{path}`" if plain in (path, match["path"]) else f"{match['text']} (`{path}`)"

    return LINK.sub(link, text)


def as_myst(text: str) -> str:
    """What GitHub's Markdown writes otherwise: anchors, and diagrams of Mermaid, whose arrows Graphviz draws as well."""

    def graph(match: re.Match[str]) -> str:
        arrows = re.sub(r"([\w.]+) --> ([\w.]+)", r'"\1" -> "\2"', match[1])
        style = 'bgcolor="transparent"; node [shape=box, color=gray, fontcolor=gray]; edge [color=gray];'
        return f"```{{graphviz}}\ndigraph {{\n{style}\n{arrows}}}\n```"

    text = re.sub(r'^<a id="([^"]+)"></a>$', r"(\1)=", text, flags=re.MULTILINE)
    # The rules of a group have a page of the site each.
    text = re.sub(r"reference/rules\.md#([a-z]+)-(\d+)", r"reference/rules/\1.md#\1-\2", text)
    return re.sub(r"^```mermaid\ngraph TD\n(.*?)^```$", graph, text, flags=re.DOTALL | re.MULTILINE)


def with_tests(text: str) -> str:
    """The specification with each test as a link to its line; conf.py has the scheme `test:`."""

    def link(match: re.Match[str]) -> str:
        path, line = find_test(match[1], match[3])
        return f"[{match[0]}](test:{path.relative_to(ROOT)}#L{line})"

    text = re.sub(
        r"^- (\*\*(\d+)\.(\d+)\*\*)", r'- <a id="item-\2-\3"></a>\1', text, flags=re.MULTILINE
    )
    return REFERENCE.sub(link, text)


def with_entries(text: str) -> str:
    """A page with each public name as a link to its entry: Python's, also from the class on, and those of C++."""
    entries = {name: name for names in public_names().values() for name in names}
    entries |= {".".join(name.split(".")[-2:]): name for name in entries if "." in name}

    def link(match: re.Match[str]) -> str:
        name = match[1]
        if "::" in name:
            return f"{{cpp:any}}`{name} <gridbuf::{name.removeprefix('gridbuf::')}>`"
        return f"{{py:obj}}`{name} <{entries[name]}>`" if name in entries else match[0]

    return re.sub(r"`([^`\n]+)`", link, text)


def contents(title: str, folder: str) -> str:
    """A page for a folder of docs/: its rows of docs/README.md, which are in the order of use, and its pages below it."""
    table = (ROOT / "docs/README.md").read_text()
    rows = re.findall(rf"^\|.*\]\({folder}/.*$", table, re.MULTILINE)
    pages = dict.fromkeys(re.findall(rf"\]\({folder}/([\w-]+)\.md", "\n".join(rows)))
    entries = [f"{short_title(ROOT / f'docs/{folder}/{page}.md')} <{page}>" for page in pages]
    text = "\n".join([f"# {title}\n", "| task | page |", "|---|---|", *rows, ""])
    return text.replace(f"]({folder}/", "](") + below(*entries)


def short_title(page: Path) -> str:
    """A page's title in the sidebar: "How to use xarray" is "Use xarray" there."""
    title = page.read_text().splitlines()[0].removeprefix("# ").replace("`", "")
    title = title.removeprefix("How to ")
    return title[0].upper() + title[1:]


def below(*pages: str) -> str:
    """The pages below a page in the sidebar."""
    return "\n".join(["\n```{toctree}", ":hidden:\n", *pages, "```\n"])


BELOW = {
    "reliability.md": ["Limits <limits>", "version-policy", "security"],
    "tutorial.md": [
        "Storages <tutorial-storages>",
        "Several processes <tutorial-distributed>",
        "The suite <tutorial-conformance>",
    ],
    "contributing.md": "architecture spec adr/README upstream/README benchmarks".split(),
    "adr/README.md": [p.stem for p in sorted((ROOT / "docs/adr").glob("0*.md"))],
    "guide/suite.md": ["suite-cc"],
    "conformance.md": ["reference/cli"],
    "scoreboard.md": ["The matrix <scoreboard-matrix>"],
}


def write_tests(folder: Path) -> None:
    """The source files of the tests that the specification names, as plain pages with a number at each line."""
    template = (HERE / "source.html").read_text()
    references = REFERENCE.findall((ROOT / "docs/spec.md").read_text())
    for path in {find_test(package, name)[0] for package, _, name in references}:
        source = path.relative_to(ROOT)
        lines = html.escape(path.read_text(encoding="utf-8")).splitlines()
        code = "\n".join(f'<span id="L{i}">{line}</span>' for i, line in enumerate(lines, 1))
        root = "../" * len(source.parts)
        page = folder / f"tests/{source}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(template.format(path=source, root=root, code=code), encoding="utf-8")


def rule_pages(text: str) -> dict[str, str]:
    """The page of all rules as a page per group, and a first page with a filter over all rules."""
    head, *groups = re.split(r"^## ", text, flags=re.MULTILINE)
    pages, index = {}, [re.sub(r"\(#(\w+?)--[\w-]+\)", lambda m: f"(rules/{m[1]}.md)", head)]
    index += ["```{raw} html\n:file: ../filter.html\n```\n", ":::{container} rules\n"]
    for group in groups:
        name = group.split()[0].lower()
        pages[f"reference/rules/{name}.md"] = "# " + re.sub(
            r"^###", "##", group.replace("(../", "(../../"), flags=re.MULTILINE
        )
        for rule, sentence in re.findall(r"^### (\S+)\n+(.+)$", group, re.MULTILINE):
            index.append(f"- [{rule}](rules/{name}.md#{rule.lower()}) {sentence}")
    toctree = [
        "\n:::\n",
        "```{toctree}\n:hidden:\n",
        *(f"rules/{p.split('/')[-1][:-3]}" for p in pages),
        "```\n",
    ]
    pages["reference/rules.md"] = "\n".join(index + toctree)
    return pages


def zoo_pages(folder: Path) -> dict[str, str]:
    """The zoo's page, and that of each library, which the zoo writes into a folder.

    The page of a finding's script is its section there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [sys.executable, ROOT / "zoo/command.py", "docs", folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    pages = {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.md"))}
    PAGES.update({f"docs/{page}": page for page in pages})
    for page, text in pages.items():
        for finding in re.findall(r"^## (\S+)$", text, re.MULTILINE) if "/" in page else ():
            PAGES[f"zoo/findings/{finding}.py"] = f"{page}#{finding}"
    return pages


MATRIX = "[The matrix of all records](scoreboard-matrix.md) has the libraries, their losses and the cells."


def scoreboard_page(folder: Path) -> str:
    """The page of the records of `interop`, which the zoo writes into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "scoreboard-matrix.md"
    subprocess.run(
        [sys.executable, ROOT / "zoo/interop.py", "page", page],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )

    def link(match: re.Match[str]) -> str:
        source = f"zoo/findings/{match[1]}.py"
        target = PAGES[source].replace(".md#", ".html#") if source in PAGES else ""
        return f'finding <a href="{target}">{match[1]}</a>' if target else match[0]

    return re.sub(r"finding <code>([\w-]+)</code>", link, page.read_text())


def zoo_page(text: str, libraries: list[str]) -> str:
    """The zoo's page with a filter over its table, and the pages of the libraries below it."""
    filtered = "```{raw} html\n:file: filter-table.html\n```"
    text = text.replace("<!-- table with a filter -->", filtered)
    return text + below(*libraries)


def cli_page() -> str:
    """The help texts of the command, as it prints them on 100 columns."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    parser = cli.parser()
    commands = next(a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    page = [
        "# Help of `gridbuf-conformance`\n",
        "What each command prints with `--help`. [The reference](../conformance.md) explains it.\n",
    ]
    for name, command in {"gridbuf-conformance": parser, **commands}.items():
        page.append(f"## `{name}`\n\n```text\n{command.format_help().rstrip()}\n```\n")
    return "\n".join(page)


def load(module: str) -> ModuleType:
    with mock(ABSENT):
        return importlib.import_module(module)


def constants(module: str) -> str:
    """Entries for the objects that a module exports, which automodule leaves out: they have no docstring."""
    home = load(module)
    documented = {name for _, name in ModuleAnalyzer.for_module(module).find_attr_docs()}
    names = [n for n in home.__all__ if not n.startswith("_") and n not in documented]
    exported = {name: getattr(home, name) for name in names}
    return "".join(
        f"\n.. py:data:: {name}\n   :module: {module}\n   :value: {value!r}\n\n   A constant of type `{module}.{type(value).__name__}`.\n"
        for name, value in exported.items()
        if not inspect.isclass(value) and not inspect.isroutine(value)
    )


def public_classes(module: str) -> dict[str, type]:
    home = load(module)
    return {n: kind for n in home.__all__ if inspect.isclass(kind := getattr(home, n))}


def members(kind: type, public: Collection[type]) -> list[str]:
    """The members that a user sees and gridbuf defines, without those of another public class that `kind` inherits from."""

    def defines(name: str) -> type:
        return next(base for base in kind.__mro__ if name in vars(base))

    inherited = {n for base in kind.__mro__[1:] if base in public for n in dir(base)}
    return [
        name
        for name in dir(kind)
        if not name.startswith("_")
        and name not in inherited
        and defines(name).__module__.startswith("gridbuf")
        and (callable(value := vars(defines(name))[name]) or inspect.isdatadescriptor(value))
    ]


def classes_with_bases(module: str) -> str:
    """Directives for the classes that have members of private base classes: automodule leaves such members out."""
    public = public_classes(module)
    names = [n for n, kind in public.items() if {*members(kind, public.values())} - {*vars(kind)}]
    entries = [f"\n.. autoclass:: {module}.{name}\n   :inherited-members:\n" for name in names]
    return "".join([f"   :exclude-members: {', '.join(names)}\n" if names else "", *entries])


def python_pages() -> dict[str, str]:
    index = [(ROOT / "modules/python/README.md").read_text(), "\n## Modules\n"]
    pages, entries = {}, []
    for name, what in PYTHON.items():
        entry = f".. automodule:: {name}\n{classes_with_bases(name)}{constants(name)}"
        pages[f"reference/python/{name}.md"] = f"# `{name}`\n\n```{{eval-rst}}\n{entry}```\n"
        index.append(f"- [`{name}`]({name}.md): {what}")
        entries.append(name)
    index.append("\n```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n")
    readme = "modules/python/README.md"
    # Only the README's own links are to files of the repository.
    index[0] = with_links(index[0], readme, PAGES[readme])
    return {**pages, PAGES[readme]: "\n".join(index)}


def name_of(interface: Path) -> str:
    """The module's name, or the header's."""
    if interface.suffix != ".cppm":
        return interface.name
    return re.search(r"^export module ([\w.]+);", interface.read_text(), re.MULTILINE)[1]


def cpp_page(library: str) -> str:
    """A library's README, and what each of its module interfaces exports under the text that the interface begins with."""
    readme = f"modules/{library}/README.md"
    page = [with_links((ROOT / readme).read_text(), readme, PAGES[readme])]
    for interface in LIBRARIES[library]:
        name = name_of(interface)
        is_module = interface.suffix == ".cppm"
        beginning = r"/[*].*?[*]/" if interface.suffix == ".h" else r"(?://[^\n]*\n)*"
        comment = re.match(beginning, interface.read_text(), re.DOTALL)
        purpose = re.sub(
            r"^(//| [*]|/[*]) ?", "", comment[0].removesuffix("*/"), flags=re.MULTILINE
        )
        page += [
            f"## `import {name};`\n" if is_module else f"## `#include <{name}>`\n",
            f"From `{interface.relative_to(ROOT)}`.\n",
            purpose,
        ]
        file = f"{name}.h" if is_module else name
        page += [f"```{{eval-rst}}\n.. doxygenfile:: {file}\n```\n"]
    return "\n".join(page)


def as_header(interface: str) -> str:
    """A module interface as Doxygen can read it, which does not know modules. Lines keep their numbers.

    A comment behind a member becomes the member's text: Doxygen wants `///<` there.
    """
    lines = r"^(?:module\s*;|(?:export\s+)?(?:module|import)\s+[\w.:]+\s*;)"
    text = re.sub(lines, "", interface, flags=re.M)
    text = re.sub(r"^(\s*)export\s+(?=[\w{])", r"\1", text, flags=re.M)
    behind = re.compile(r"^(\s+[^/\s][^/\n]*[;,{}] +)//(?= )", re.M)
    header, column = [], None
    for line in text.split("\n"):
        if match := behind.match(line):
            column = len(match[1])
        elif column is None or not re.fullmatch(f" {{{column}}}// .*", line):
            column = None
        header.append(line if column is None else f"{line[:column]}///<{line[column + 2 :]}")
    return "\n".join(header)


def as_documented(header: str) -> str:
    """A header of C with its comments as Doxygen wants them: `/**` above a name, `/**<` behind one."""
    text = re.sub(r"^/[*] (?!---- |gridbuf.h: )", "/** ", header, flags=re.MULTILINE)
    return re.sub(r"^([^/\n]*[^/\s][^/\n]*)/[*] ", r"\1/**< ", text, flags=re.MULTILINE)


def public_names() -> dict[str, list[str]]:
    """The public Python names of each module, with the members of its classes."""
    found = {}
    for module in PYTHON:
        names = [name for name in load(module).__all__ if not name.startswith("_")]
        public = public_classes(module)
        for name, kind in public.items():
            names += [f"{name}.{member}" for member in members(kind, public.values())]
        found[module] = [f"{module}.{name}" for name in names]
    return found


def undocumented(site: Path) -> list[str]:
    """The public Python names that the site does not have, or has without a text."""
    missing = []
    for module, names in public_names().items():
        page = (site / f"reference/python/{module}.html").read_text(encoding="utf-8")
        # The entry of overloads has several signatures, and one text.
        described = re.findall(
            r'<dt class="sig[^>]* id="([\w.]+)">(?=(?:(?!<dd>).)*<dd>(?!</dd>))', page, re.DOTALL
        )
        missing += [name for name in names if name not in described]
    return missing


def undocumented_cpp(xml: Path) -> list[str]:
    """The exported C++ types, and functions of namespaces, without a comment. Of overloads one has it."""
    described: dict[str, bool] = {}
    for path in xml.glob("*.xml"):
        for compound in ElementTree.parse(path).iter("compounddef"):
            scope = compound.findtext("compoundname")
            if compound.get("kind") == "namespace":
                entries = [
                    (f"{scope}::{m.findtext('name')}", m) for m in compound.iter("memberdef")
                ]
            elif compound.get("kind") in ("class", "struct"):
                entries = [(scope, compound)]
            else:
                continue
            for name, entry in entries:
                if entry.get("kind") == "variable" or entry.get("prot") == "private":
                    continue
                parts = (entry.find(part) for part in ("briefdescription", "detaileddescription"))
                text = "".join("".join(part.itertext()) for part in parts).strip()
                described[name] = described.get(name, False) or bool(text)
    return sorted(name for name, has_text in described.items() if not has_text)


def write(folder: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in folder.rglob("*.md"):
        if str(path.relative_to(folder)) not in pages:
            path.unlink()


def make_sources(folder: Path) -> None:
    """The folder that Sphinx reads. A file that is current is not written, for the next build."""
    made = {
        source: page
        for source, page in PAGES.items()
        if not source.startswith("modules/") and not page == "index.md"
    }
    made["docs/index.md"] = "index.md"
    texts = {source: (ROOT / source).read_text() for source in made}
    texts["docs/performance.md"] = report.page(RECORD, "performance", plot.names(RECORD))
    generated = folder.parent / "zoo"
    del made["zoo/README.md"]  # whose page is made from the records
    for page, text in zoo_pages(generated).items():
        made[f"docs/{page}"], texts[f"docs/{page}"] = page, text
    pages = {
        page: as_myst(with_links(texts[source], source, page)) for source, page in made.items()
    }
    pages["spec.md"] = with_tests(pages["spec.md"])
    pages["reference/by-task.md"] = with_entries(pages["reference/by-task.md"])
    pages["how-to/index.md"] = contents("How-to guides", "how-to")
    pages["explanation/index.md"] = contents("Explanation", "explanation")
    for page, some in BELOW.items():
        pages[page] += below(*some)
    pages.update(rule_pages(all_rules.page([*catalogue.load().values()])))
    libraries = sorted(page.removesuffix(".md") for page in pages if page.startswith("zoo/"))
    pages["zoo.md"] = zoo_page(pages["zoo.md"], libraries)
    pages["scoreboard.md"] = pages["scoreboard.md"].replace("<!-- the matrix -->", MATRIX)
    pages["scoreboard-matrix.md"] = scoreboard_page(folder.parent / "scoreboard")
    pages["reference/cli.md"] = cli_page()
    pages.update(python_pages())
    pages.update({f"reference/cpp/{library}.md": cpp_page(library) for library in LIBRARIES})
    write(folder, pages)
    plot.save(RECORD, folder / "performance")
    for image in (ROOT / "docs/images").iterdir():
        target = folder / image.relative_to(ROOT / "docs")
        target.parent.mkdir(exist_ok=True)
        shutil.copy2(image, target)
    shutil.copy2(generated / "images/zoo.svg", folder / "images/zoo.svg")
    for name in ("filter.html", "filter-table.html"):
        shutil.copy2(HERE / name, folder)


def write_scorer(folder: Path) -> Path:
    """scorer.js with the decisions that are superseded."""
    decisions = sorted((ROOT / "docs/adr").glob("0*.md"))
    old = [f"adr/{p.stem}" for p in decisions if re.search(r"^\W*Superseded", p.read_text(), re.M)]
    path = folder / "scorer.js"
    path.write_text((HERE / "scorer.js").read_text().replace("= []", f"= {old}"))
    return path


def run_doxygen(folder: Path) -> None:
    headers = folder / "interfaces"
    headers.mkdir(parents=True, exist_ok=True)
    for interface in (path for paths in LIBRARIES.values() for path in paths):
        adapt = {".cppm": as_header, ".h": as_documented, ".hpp": str}[interface.suffix]
        name = name_of(interface) + (".h" if interface.suffix == ".cppm" else "")
        (headers / name).write_text(adapt(interface.read_text()))
    options = {"INPUT": f'"{headers}"', "OUTPUT_DIRECTORY": f'"{folder}"'}
    text = (HERE / "Doxyfile").read_text() + "".join(f"{k} = {v}\n" for k, v in options.items())
    subprocess.run(["doxygen", "-"], input=text, text=True, check=True)


def build(out: Path, work: Path) -> int:
    """Builds the site into `out`; intermediate files go to `work`. Returns Sphinx's exit code."""
    for program in ("doxygen", "dot"):
        if not shutil.which(program):
            raise SystemExit(
                f"the site needs the program {program}, which is not in PATH: ./bazelw --docs"
            )
    make_sources(work / "source")
    write_tests(work / "extra")
    shutil.copytree(work / "scoreboard/badges", work / "extra/badges", dirs_exist_ok=True)
    run_doxygen(work / "doxygen")
    options = [
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-c",
        str(HERE),
        "-d",
        str(work / "doctrees"),
    ]
    options += ["-D", f"html_extra_path={work / 'extra'}"]
    options += ["-D", f"html_search_scorer={write_scorer(work)}"]
    options += ["-D", f"breathe_projects.gridbuf={work / 'doxygen/xml'}"]
    return sphinx([*options, str(work / "source"), str(out)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "folder", type=Path, help="the site goes to FOLDER/html, its sources to a folder next to it"
    )
    folder = parser.parse_args().folder.resolve()
    status = build(folder / "html", folder)
    print(f"{'built with the warnings above' if status else 'built'}: {folder / 'html/index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
