"""The docstrings are the reference: each public name has one, complete, true in its examples, and as in the stub."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import pydoc
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gridbuf
import pytest
from gridbuf import _core

try:
    import gt4py.next  # noqa: F401
except ImportError:
    has_gt4py = False
else:
    has_gt4py = True

MODULES = [
    "gridbuf",
    "gridbuf.call",
    "gridbuf.gt4py.cartesian",
    *(["gridbuf.gt4py", "gridbuf.gt4py.next"] if has_gt4py else []),
    "gridbuf.memory",
    "gridbuf.mpi",
    "gridbuf.storage",
    "gridbuf.testing",
    *(["gridbuf.xarray"] if importlib.util.find_spec("xarray") else []),
]
# Its examples need an MPI library.
WITHOUT_EXAMPLES = ("gridbuf.mpi",)

STUB = ast.parse((Path(gridbuf.__file__).parent / "_core.pyi").read_text("utf-8"))

# Parameters that functions share have one text, but for their defaults.
SHARED = "backend defaults device layout alignment_size aligned_index dims populate halo managed"


# ---- What is public. ----


def public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    return [name for name in names if name[0] != "_"]


def members(kind: type, name: str) -> Iterator[tuple[str, Any]]:
    """The methods and properties that gridbuf's classes define."""
    for base in kind.__mro__:
        if not base.__module__.startswith("gridbuf"):
            continue
        for member, value in vars(base).items():
            is_documented = callable(value) or inspect.isdatadescriptor(value)
            # __slots__ make descriptors that have no text; the class lists these attributes.
            if member[0] != "_" and is_documented and not inspect.ismemberdescriptor(value):
                yield f"{name}.{member}", value


def public_objects(module_name: str) -> dict[str, Any]:
    module = importlib.import_module(module_name)
    found = {module_name: module}
    for name in public_names(module):
        value = getattr(module, name)
        found[f"{module_name}.{name}"] = value
        if inspect.isclass(value):
            found.update(members(value, f"{module_name}.{name}"))
    return found


OBJECTS = {name: value for module in MODULES for name, value in public_objects(module).items()}


def core_definitions() -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    """The definitions of the stub by name; of overloads the last."""
    found: dict[str, ast.ClassDef | ast.FunctionDef] = {}
    for node in STUB.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        found[node.name] = node
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            is_setter = isinstance(member, ast.FunctionDef) and any(
                isinstance(mark, ast.Attribute) for mark in member.decorator_list
            )
            if isinstance(member, ast.FunctionDef) and not is_setter:
                found[f"{node.name}.{member.name}"] = member
    yield from found.items()


CORE = dict(core_definitions())


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def is_property(node: ast.AST) -> bool:
    marks = getattr(node, "decorator_list", ())
    return any(isinstance(mark, ast.Name) and mark.id == "property" for mark in marks)


def run_time(name: str) -> Any:
    value: Any = _core
    for part in name.split("."):
        value = inspect.getattr_static(value, part)
    return value


def resolve(name: str) -> Any:
    value: Any = _core
    for part in name.split("."):
        value = getattr(value, part)
    return value


# ---- What a docstring says. ----


def sections(text: str) -> dict[str, str]:
    """The text of each section by its title."""
    parts = re.split(r"^(\w+)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def parameter_texts(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each parameter."""
    parts = re.split(r"^(\S.*)\n", sections(text).get("Parameters", ""), flags=re.MULTILINE)
    for names, description in zip(parts[1::2], parts[2::2]):
        for name in names.partition(" : ")[0].split(", "):
            yield name.strip(" *"), " ".join(description.split())


def documented_parameters(text: str) -> dict[str, str]:
    """The text of each parameter by its name."""
    return dict(parameter_texts(text))


def parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def is_made_by_calling(kind: type) -> bool:
    return inspect.isfunction(vars(kind).get("__init__")) or kind is _core.SyncState


def described() -> dict[str, Callable[..., Any]]:
    """What has a signature: functions, methods, and classes that are called."""
    return {
        name: value
        for name, value in OBJECTS.items()
        if (is_made_by_calling(value) if inspect.isclass(value) else callable(value))
        and not isinstance(value, gridbuf.Axes)
    }


def source_raises(function: Callable[..., Any]) -> bool:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return False
    return any(isinstance(node, ast.Raise) for node in ast.walk(tree))


# ---- The tests. ----


def test_no_public_name_is_without_a_docstring() -> None:
    assert len(OBJECTS) > 150
    assert [name for name, value in OBJECTS.items() if not inspect.getdoc(value)] == []
    public = [name for name in CORE if is_public(name)]
    assert [name for name in public if not ast.get_docstring(CORE[name])] == []


def test_dir_has_the_public_names_and_modules() -> None:
    for name in MODULES:
        module = importlib.import_module(name)
        folders = getattr(module, "__path__", ())
        modules = {found.name for found in pkgutil.iter_modules(folders) if found.name[0] != "_"}
        # A name that needs GT4Py is not in __all__.
        extra = {"as_field"} if name == "gridbuf.gt4py" else set()
        assert {*dir(module)} == {*module.__all__} | modules | extra, name


def test_help_shows_no_record_of_pybind11() -> None:
    for kind in (gridbuf.Buffer, gridbuf.storage.CPUStorage):
        assert "pybind11" not in pydoc.plain(pydoc.render_doc(kind))


def test_docstrings_have_the_parameters_of_the_signature() -> None:
    for name, value in described().items():
        text = inspect.getdoc(value) or ""
        assert [*documented_parameters(text)] == parameters(value), name


def test_each_parameter_is_documented_once_and_whole() -> None:
    texts = {name: inspect.getdoc(value) or "" for name, value in OBJECTS.items()}
    texts |= {f"stub: {name}": ast.get_docstring(node) or "" for name, node in CORE.items()}
    for name, text in texts.items():
        found = [*parameter_texts(text)]
        assert len(found) == len(dict(found)), name
        assert all(description for _, description in found), name
        assert " : as in `" not in text, f"{name}: the build has not expanded its source"


def test_docstrings_of_the_stub_have_its_parameters_results_and_errors() -> None:
    for name, node in CORE.items():
        text = ast.get_docstring(node)
        shared = isinstance(node, ast.ClassDef) or is_property(node)
        if not text or shared or name.rpartition(".")[2] in ("__copy__", "__deepcopy__"):
            continue
        if name.endswith(("__reduce__", "__reduce_ex__")):
            continue
        found = sections(text)
        assert [*documented_parameters(text)] == parameters(resolve(name)), name
        assert node.returns is not None
        assert ("Returns" in found) == (ast.unparse(node.returns) != "None"), name
        assert "Raises" in found or not documented_parameters(text), name


def test_docstrings_of_python_have_results_and_errors() -> None:
    for name, value in described().items():
        function = inspect.unwrap(value)
        if not inspect.isfunction(function):
            continue
        found = sections(inspect.getdoc(value) or "")
        result = str(inspect.signature(function).return_annotation)
        if result in ("None", "NoReturn"):
            assert "Returns" not in found, name
        elif "contextmanager" in inspect.getsource(function):
            assert "Yields" in found, name
        else:
            assert "Returns" in found, name
        assert "Raises" in found or not source_raises(function), name


def test_run_time_docstrings_are_those_of_the_stub() -> None:
    checked = 0
    for name, node in CORE.items():
        text = ast.get_docstring(node)
        if text:
            assert inspect.cleandoc(run_time(name).__doc__) == text, name
            checked += 1
            if isinstance(node, ast.FunctionDef) and is_public(name):
                printed = pydoc.render_doc(resolve(name), renderer=pydoc.plaintext)
                assert " ".join(text.split()) in " ".join(printed.split()), name
    assert checked > 130


def test_shared_parameters_have_one_text() -> None:
    texts: dict[str, set[str]] = {}
    for node in CORE.values():
        found = documented_parameters(ast.get_docstring(node) or "")
        if "populate" not in found:
            continue
        for name in SHARED.split():
            if name in found:
                texts.setdefault(name, set()).add(found[name].partition(" Default:")[0])
    assert {name: len(text) for name, text in texts.items()} == dict.fromkeys(texts, 1)
    assert {*texts} == {*SHARED.split()}


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = []
    for name in MODULES:
        if name in WITHOUT_EXAMPLES:
            continue
        found += finder.find(importlib.import_module(name), name)
        for object_name, value in public_objects(name).items():
            home = getattr(value, "__module__", "")
            if (
                home not in MODULES
                and home.startswith("gridbuf.")
                and not home.startswith(WITHOUT_EXAMPLES)
            ):
                found += finder.find(value, object_name, module=False)
    parser = doctest.DocTestParser()
    for name, node in CORE.items():
        found.append(parser.get_doctest(ast.get_docstring(node) or "", {}, name, "_core.pyi", 0))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_examples_are_true(example: doctest.DocTest) -> None:
    runner = doctest.DebugRunner(optionflags=0)
    try:
        runner.run(example)
    except doctest.DocTestFailure as failure:
        pytest.fail(f"{failure.example.source}gave {failure.got}, not {failure.example.want}")
    except doctest.UnexpectedException as failure:
        raise failure.exc_info[1] from None
