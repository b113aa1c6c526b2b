"""The layout vectors have their digests, obey their schema, and agree with NumPy."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

VECTORS = Path(__file__).parent
GENERATOR = VECTORS.parent.parent / "tools" / "make_layout_vectors.py"
NAMES = [f"layout_{kind}.json" for kind in ("plans", "dims", "presets", "views", "errors")]

Json = dict[str, Any]
Array = np.ndarray[Any, Any]


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_layout_vectors", GENERATOR)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


generator = _generator()
FILES: dict[str, str] = generator.files()
SCHEMA: Json = json.loads((VECTORS / "layout.schema.json").read_text(encoding="utf-8"))


def load(name: str) -> Json:
    document: Json = json.loads(FILES[name])
    return document


def test_the_command_writes_the_files_with_the_committed_digests(tmp_path: Path) -> None:
    """Other implementations are tested with these files: a commit says if they change."""
    subprocess.run([sys.executable, GENERATOR, tmp_path / "made"], check=True)
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted((tmp_path / "made").iterdir())
    ]
    assert "".join(lines) == (VECTORS / "SHA256SUMS").read_text(), (
        "if the change is wanted: python tools/make_layout_vectors.py FOLDER; cd FOLDER; "
        "sha256sum *.json > …/conformance/vectors/SHA256SUMS"
    )
    assert sorted(NAMES) == sorted(FILES) == [line.split()[1] for line in lines]


@pytest.mark.parametrize("name", NAMES)
def test_file_obeys_the_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(load(name))


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("plans", lambda case: case["expected"].pop("strides_bytes")),
        ("plans", lambda case: case["request"].update(shape="3,4")),
        ("views", lambda case: case["operations"].append(["flip", 0])),
        ("presets", lambda case: case.update(alignment_bytes=0)),
        ("errors", lambda case: case.update(mentions=[])),
    ],
)
def test_schema_refuses_a_spoiled_case(kind: str, spoil: Any) -> None:
    document = load(f"layout_{kind}.json")
    spoil(document["cases"][0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(document)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_unique(name: str) -> None:
    keys = [(case.get("kind"), case["name"]) for case in load(name)["cases"]]
    assert len(keys) == len(set(keys))


def test_three_cycles_are_among_the_plans() -> None:
    layouts = {
        tuple(case["request"]["layout"] or ()) for case in load("layout_plans.json")["cases"]
    }
    assert {(2, 0, 1), (1, 2, 0)} <= layouts


# NumPy makes views by its own rules; where it knows the answer, the vectors must have the same one.


def numpy_view(array: Array, operation: list[Any]) -> Array:
    name, *arguments = operation
    if name == "transpose":
        return array.transpose(arguments[0] or range(array.ndim)[::-1])
    if name == "newaxis":
        return np.expand_dims(array, arguments[0])
    if name == "broadcast_to":
        return np.broadcast_to(array, arguments[0])
    if name == "subscript":
        items = arguments[0] if "..." in arguments[0] else [*arguments[0], "..."]  # No scalars.
        selected: Array = array[tuple(numpy_item(item) for item in items)]
        return selected
    axis = arguments[0] % array.ndim
    key = arguments[1] if name == "index" else slice(*arguments[1:] or (None, None, -1))
    kept: Array = array[(slice(None),) * axis + (key, ...)]
    return kept


def numpy_item(item: Any) -> Any:
    if isinstance(item, dict):
        return slice(*item["slice"])
    return ... if item == "..." else item


def numpy_array(case: Json, strides_bytes: list[int]) -> Array:
    """An array with the plan's strides over separate memory."""
    request = case["request"]
    dtype = np.dtype((np.void, request["itemsize_bytes"]))
    reach = sum(max(n - 1, 0) * s for n, s in zip(request["shape"], strides_bytes))
    memory = np.zeros(reach + dtype.itemsize, np.uint8)
    return np.ndarray(tuple(request["shape"]), dtype, memory, strides=tuple(strides_bytes))


@pytest.mark.parametrize("case", load("layout_views.json")["cases"], ids=lambda case: case["name"])
def test_views_agree_with_numpy(case: Json) -> None:
    expected = case["expected"]
    base = numpy_array(case, generator.plan_answer(case["request"])["strides_bytes"])
    view = base
    for operation in case["operations"]:
        view = numpy_view(view, operation)
    assert list(view.shape) == expected["shape"]
    assert view.flags.c_contiguous == expected["c_contiguous"]
    assert view.flags.f_contiguous == expected["f_contiguous"]
    if view.size == 0:
        return
    moved = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    assert moved == expected["offset_bytes"]
    for stride, wanted in zip(view.strides, expected["strides_bytes"]):
        assert wanted is None or stride == wanted


def refused_views() -> list[Json]:
    """The view errors that `numpy_view` can pose: it wraps the axis of an index or slice itself."""
    cases = [case for case in load("layout_errors.json")["cases"] if case["kind"] == "view"]
    wrapped = ("index", "slice", "reverse")
    return [c for c in cases if not (c["operation"][0] in wrapped and "axis" in c["mentions"])]


@pytest.mark.parametrize("case", refused_views(), ids=lambda case: case["name"])
def test_numpy_refuses_the_same_views(case: Json) -> None:
    array = np.empty(tuple(case["request"]["shape"]))
    # NumPy's AxisError, for an axis out of bounds, is an IndexError as ours is.
    wanted = {"ValueError": ValueError, "IndexError": IndexError}[case["error"]]
    with pytest.raises(wanted):
        numpy_view(array, case["operation"])
