"""The language-neutral layout vectors, run through `gridbuf.plan`: the same cases as the GoogleTest's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridbuf

VECTORS = Path(__file__).parents[3] / "conformance" / "vectors"


def cases(kind: str) -> list[dict[str, Any]]:
    return json.loads((VECTORS / f"layout_{kind}.json").read_text())["cases"]


def plan_of(request: dict[str, Any]) -> gridbuf.LayoutPlan:
    keywords = {
        "layout": request["layout"],
        "alignment_size": request["alignment_bytes"],
        "aligned_index": request["aligned_index"],
    }
    # A record of n bytes is an element type of any item size.
    dtype = np.dtype({"names": [], "formats": [], "itemsize": request["itemsize_bytes"]})
    return gridbuf.plan(tuple(request["shape"]), dtype, **keywords)


PLANS = [case for case in cases("plans") if case["request"]["itemsize_bytes"] > 0]


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case["name"])
def test_plan_is_the_vectors(case: dict[str, Any]) -> None:
    plan = plan_of(case["request"])
    found = {
        "strides_bytes": list(plan.strides),
        "padded_shape": list(plan.padded_shape),
        "element_count": plan.size,
        "nbytes": plan.nbytes,
        "total_bytes": plan.total_bytes,
        "aligned_offset_bytes": plan.aligned_offset,
    }
    assert found == case["expected"]


@pytest.mark.parametrize("preset", cases("presets"), ids=lambda case: case["name"])
def test_preset_is_the_vectors(preset: dict[str, Any]) -> None:
    for case in preset["layouts"]:
        dims = tuple(case["dims"])
        plan = gridbuf.plan((2,) * len(dims), backend=preset["name"], dims=dims, device=None)
        assert list(plan.layout) == case["layout"], dims
        assert plan.alignment_size == preset["alignment_bytes"]


# NumPy has no element type of no bytes, of a negative number, or beyond 2^31: these the C++ alone can be asked.
PLAN_ERRORS = [
    case
    for case in cases("errors")
    if case["kind"] == "plan" and 0 < case["request"]["itemsize_bytes"] < 2**31
]


@pytest.mark.parametrize("case", PLAN_ERRORS, ids=lambda case: case["name"])
def test_refused_request_is_the_vectors(case: dict[str, Any]) -> None:
    # The class of the error; its words are Python's own, and test_alloc.py reads them.
    with pytest.raises(ValueError):
        plan_of(case["request"])
