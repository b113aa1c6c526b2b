"""No module of the suite imports, directly or by way of others, what imports it: read from the
sources.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import gridbuf_conformance
import gridbuf_conformance_mutants

PACKAGES = (gridbuf_conformance, gridbuf_conformance_mutants)

COMMON = ("outcomes", "tables", "text", "version")
LAYERS: dict[str, tuple[str, ...]] = {
    "outcomes": (),
    "tables": (),
    "text": (),
    "version": (),
    "info": (),
    "plugins": (),
    "interfaces": ("plugins",),
    "libraries": ("plugins",),
    "plan": (),
    "producer": ("plan",),
    "abi": ("info", "interfaces", "plan"),
    "exports": ("abi", "info", "interfaces", "plan"),
    "measure": ("abi", "exports", "info", "interfaces", "plan"),
    "rules": ("abi", "exports", "info", "interfaces", "plan"),
    "producers": ("abi", "libraries", "plan", "producer"),
    "plugins.libraries": ("abi", "info", "plan", "producer", "producers"),
    "named_consumers": ("producers",),
    "targets": ("info", "named_consumers", "plan", "producers"),
    "config": ("plan", "targets"),
    "findings": ("libraries", "rules"),
    "render": ("plan", "rules"),
    "known": (
        *("exports", "libraries", "named_consumers", "plan", "plugins", "producers", "render"),
        *("rules", "targets"),
    ),
    "engine": (
        *("abi", "exports", "info", "known", "measure", "plan", "producers", "render", "rules"),
        "targets",
    ),
    "plugins.scoreboard": (
        *("abi", "cli", "config", "engine", "exports", "findings", "info", "interfaces"),
        *("libraries", "measure", "named_consumers", "plan", "producers", "pytest_plugin"),
        *("render", "targets"),
    ),
    "cli": (
        *("config", "engine", "exports", "findings", "interfaces", "known", "libraries"),
        *("named_consumers", "plan", "producers", "render", "rules", "targets"),
    ),
    "api": ("config", "engine", "known", "render"),
    "pytest_plugin": (
        *("", "api", "config", "engine", "interfaces", "render", "rules", "targets"),
    ),
}
"""What each folder, and each module of the top, may import besides itself and `COMMON`. Above all:
nothing that measures imports the rules, no rule imports the measurement, and no export imports a
producer."""


OF_AN_INTERFACE = {
    **dict.fromkeys(("allocation", "consumer", "dicts", "producer", "protocol"), "rules"),
    **dict.fromkeys(("answers", "exporter", "exports"), "exports"),
    "measure": "measure",
}
"""The layers of modules in the folder of an interface. The others have its forms: they are of the
layer abi.
"""


def modules_of(folder: Path) -> dict[str, Path]:
    """The source of each module by its full name."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_nodes(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import, also those in functions and those that only type checkers see."""
    for child in ast.walk(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child


def imported_by(name: str, modules: dict[str, Path]) -> set[str]:
    """The modules that one imports, with the packages that Python imports on the way."""
    path = modules[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in import_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            continue
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [node.module])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            found.add(inner if inner in modules else base)
    # Its own packages run first whatever it imports; they count only where it asks for a name of
    # theirs.
    on_the_way = {full.rpartition(".")[0] for full in found}
    found |= {other for other in on_the_way if not f"{name}.".startswith(f"{other}.")}
    return found & modules.keys() - {name}


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_module_is_in_an_import_cycle(package):
    modules = modules_of(Path(package.__file__).parent)
    assert len(modules) > 20
    assert cycle_in({name: imported_by(name, modules) for name in modules}) == []


def folder_of(name: str) -> str:
    """The layer of a module: its folder, or its name at the top.

    The modules of one interface are in the layers of their subjects, by their names.
    """
    _, *parts = name.split(".")
    if parts[:1] in (["interfaces"], ["plugins"]) and len(parts) > 1:
        if parts[1] in ("libraries", "scoreboard"):
            return f"plugins.{parts[1]}"
        return OF_AN_INTERFACE.get(parts[2], "abi") if len(parts) > 2 else "abi"
    return parts[0] if parts else ""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_folder_is_in_an_import_cycle(package):
    """The same for the package's folders, each taken as one."""
    modules = modules_of(Path(package.__file__).parent)
    graph: dict[str, set[str]] = {}
    for name in modules:
        imported = {folder_of(other) for other in imported_by(name, modules)}
        graph.setdefault(folder_of(name), set()).update(imported - {folder_of(name), ""})
    assert cycle_in(graph) == []


def test_a_folder_imports_only_what_its_layer_may():
    modules = modules_of(Path(gridbuf_conformance.__file__).parent)
    assert {folder_of(name) for name in modules} - {"", "__main__"} == LAYERS.keys()
    for name in modules.keys() - {"gridbuf_conformance", "gridbuf_conformance.__main__"}:
        folder = folder_of(name)
        imported = {folder_of(other) for other in imported_by(name, modules)} - {folder}
        assert imported <= {*LAYERS[folder], *COMMON}, name


def test_a_cycle_is_found(tmp_path):
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("def later():\n    from .b import x\n")
    (package / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import a\n"
    )
    (package / "c.py").write_text("import p.b\n")
    modules = modules_of(package)
    graph = {name: imported_by(name, modules) for name in modules}
    assert set(cycle_in(graph)) == {"p.a", "p.b"}
    assert graph["p.c"] == {"p.b"}
