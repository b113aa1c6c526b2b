"""Names of dimensions: any text is a name, and rules about I, J and K judge only arrays that have
these.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import gridbuf_conformance as gc
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance.plan import Plan
from gridbuf_conformance_mutants.data_interface import Base, OriginInTheArraysOrder
from gridbuf_conformance_mutants.reference import Memory, Reference

PLAN = Plan(shape=(3, 4), fill=3)


class Dim(str):
    """A name with a kind, as libraries have them."""


class WithEntries(Reference):
    """Arrays with `__gt_data_interface__`, whose entries name the dimensions."""

    array_type = Base


def named(names: Any, producer: type[Reference] = WithEntries, **attributes: Any) -> Memory:
    array = producer().produce(PLAN)
    array.__gt_dims__ = names
    for name, value in attributes.items():
        setattr(array, name, value)
    return array


@pytest.mark.parametrize(
    "names",
    [
        ("Cell", "Edge"),
        ["time", "tracer"],
        ("half levels", "étage"),
        ("", "-"),
        (Dim("Cell"), Dim("K")),
        "xy",
    ],
)
def test_any_text_is_a_name(names: Any) -> None:
    report = gc.check(named(names))
    assert report.failed == (), report.to_json()
    assert {report.outcomes[id_] for id_ in ("GT-04", "GT-12", "GT-18")} == {"PASS"}


@pytest.mark.parametrize("name", ["-1", "01", "+1", "٣", 1, b"Cell", None])
def test_numbers_are_decimal_and_names_are_text(name: Any) -> None:
    assert "GT-18" in gc.check(named(("Cell", name), Reference)).failed


def test_other_names_are_advised_where_the_object_chose_them() -> None:
    assert gc.check(named(("Cell", "K"))).outcomes["GT-13"] == "ADVISORY"
    assert gc.check(named(("10", "K"))).outcomes["GT-13"] == "PASS"
    field = SimpleNamespace(ranges=[range(3), range(4)])
    assert gc.check(named(("Cell", "K"), domain=field)).outcomes["GT-13"] == "PASS"
    asked = check_plans(WithEntries(), [PLAN.replaced(dims=("Cell", "K"))], isolate=False)
    assert asked.failed == () and asked.outcomes["GT-13"] == asked.outcomes["GT-26"] == "PASS"


@pytest.mark.parametrize(
    ("names", "outcome"),
    [(("K", "I"), "FAIL"), (("1", "0"), "FAIL"), (("K", "Cell"), "UNSUPPORTED")],
)
def test_origins_are_ordered_by_names_that_have_an_order(
    names: tuple[str, str], outcome: str
) -> None:
    plan = PLAN.replaced(dims=names, halo=((2, 0), (1, 0)))
    report = check_plans(OriginInTheArraysOrder(), [plan], isolate=False)
    assert report.outcomes["GT-27"] == outcome
