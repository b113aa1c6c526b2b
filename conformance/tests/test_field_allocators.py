"""The rules that wrong allocators for `gt4py.next` break."""

from __future__ import annotations

import pytest

from gridbuf_conformance.engine.producer_run import check_producer

pytest.importorskip("gridbuf", reason="gridbuf is not installed")
pytest.importorskip("gt4py.next", reason="gt4py is not installed")


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("Right", set()),
        pytest.param("AlignsTheStart", {"GT-16"}, marks=pytest.mark.thorough),
        ("AlignsARelativeIndex", {"GT-16"}),
        pytest.param("HasTheInverseLayout", {"GT-17", "GT-25"}, marks=pytest.mark.thorough),
        pytest.param("MakesSinglePrecision", {"GT-20"}, marks=pytest.mark.thorough),
        ("ProtectsMemory", {"GT-20"}),
        ("SharesMemory", {"GT-21"}),
    ],
)
def test_wrong_allocators_break_their_rules(name: str, broken: set[str]) -> None:
    report = check_producer(f"field_allocators:{name}", profile="smoke", rules="GT-16,GT-17,GT-2*")
    assert set(report.failed) == broken
