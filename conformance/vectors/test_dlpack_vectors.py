"""The C++ suite's plans are current, and mean what the Python suite takes them to mean."""

from __future__ import annotations

import importlib.util
import json
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gridbuf_conformance.rules import catalogue
from gridbuf_conformance.engine import producer_run
from gridbuf_conformance.plan import Plan

VECTORS = Path(__file__).parent
GENERATOR = VECTORS.parents[1] / "tools" / "make_dlpack_vectors.py"
DOCUMENT: dict[str, Any] = json.loads((VECTORS / "dlpack_plans.json").read_text(encoding="utf-8"))
CASES = DOCUMENT["cases"]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_dlpack_vectors", GENERATOR)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_file_is_current(generator: ModuleType) -> None:
    text = (VECTORS / "dlpack_plans.json").read_text(encoding="utf-8")
    assert text == generator.document(), "run python tools/make_dlpack_vectors.py"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_is_a_plan_with_its_content_and_its_view(case: dict[str, Any]) -> None:
    plan = Plan.from_json(case["plan"])
    assert case["plan"] == plan.to_dict()
    assert case["content_crc32"] == zlib.crc32(plan.content())
    view = case["view"]
    for index in {(0,) * len(view["shape"]), tuple(max(n - 1, 0) for n in view["shape"])}:
        if 0 in view["shape"]:
            continue
        base = list(view["start"])
        for position, axis, step in zip(index, view["axes"], view["steps"]):
            if axis is not None:
                base[axis] += position * step
        assert tuple(base) == plan.view_map.base_index(index)


def test_names_are_unique_and_the_simplest_plan_is_first() -> None:
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names)
    assert names[0] == "shape_1"


def test_rules_are_the_catalogues_and_their_preconditions_are_among_them() -> None:
    known = catalogue.load()
    ids = [rule["id"] for rule in DOCUMENT["rules"]]
    for rule in DOCUMENT["rules"]:
        assert rule["requirement"] == known[rule["id"]].requirement
        assert set(rule["preconditions"]) <= set(ids)


@pytest.mark.parametrize("producer", ["array", "numpy"])
def test_python_producers_meet_the_same_plans(producer: str) -> None:
    """The plans ask nothing that a right producer of another language would break."""
    if producer == "numpy":
        pytest.importorskip("numpy", reason="NumPy is NOT asked the plans: pip install numpy")
    plans = [Plan.from_json(case["plan"]) for case in CASES]
    report = producer_run.check_plans(producer, plans, rules="XA-08,GT-20,DL-09,DL-14")
    assert report.failed == ()
    assert report.data["plans"]["observation"] > 5
