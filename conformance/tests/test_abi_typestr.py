"""Typestrs and descr lists of the array interface."""

from __future__ import annotations

import ctypes

import pytest

from gridbuf_conformance.interfaces.array_interface.typestr import (
    BadTypestr,
    descr_bytes,
    legal_sizes,
    parse,
)
from gridbuf_conformance.info.values import describe
from gridbuf_conformance.plan.dtypes import DTYPES


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.typestr], ids=lambda d: d.name)
def test_typestrs_of_all_plan_types(dtype) -> None:
    parsed = parse(dtype.typestr)
    assert parsed.kind == dtype.kind
    assert parsed.itemsize == dtype.itemsize
    sizes = legal_sizes(parsed.kind)
    assert sizes is None or parsed.number in sizes


@pytest.mark.parametrize(
    "text",
    ["f8", "|i", "<x4", "<f", "", "<f8 ", "float64", "=f8", "<<f8", "<f-8", "<f8[ns]", "\n<f8"],
)
def test_bad_typestrs_are_refused(text: str) -> None:
    with pytest.raises(BadTypestr):
        parse(text)


@pytest.mark.parametrize("text", ["<M8[ns]", ">m8[25s]", "<M8"])
def test_units_of_times(text: str) -> None:
    assert parse(text).itemsize == 8


def test_text_counts_characters_and_bits_count_bits() -> None:
    assert parse("<U3").itemsize == 12
    assert parse("|t1").itemsize is None


def test_object_has_the_size_of_a_pointer() -> None:
    assert legal_sizes("O") == (ctypes.sizeof(ctypes.c_void_p),)


@pytest.mark.parametrize(
    ("descr", "size"),
    [
        ([("", "<f8")], 8),
        ([("x", "<f4"), ("y", "|i1")], 5),
        ([("x", "<f4", (2, 3))], 24),
        ([("x", "<f4", 2)], 8),
        ([("x", [("a", "<i2"), ("b", "<i4")], (2,))], 12),
        ([(("title", "x"), "<f4")], 4),
        ([], 0),
        ([("x", "<f4", ())], 4),
    ],
)
def test_descr_sizes(descr: list, size: int) -> None:
    assert descr_bytes(describe(descr)) == size


@pytest.mark.parametrize(
    "descr",
    [
        (("x", "<f4"),),
        [["x", "<f4"]],
        [("x",)],
        [("x", "<f4", (2,), 1)],
        [("x", "f4")],
        [("x", "<f4", (-1,))],
        [("x", "<f4", 2.0)],
        [("x", "|t3")],
        "x",
        None,
    ],
)
def test_bad_descrs_are_refused(descr: object) -> None:
    with pytest.raises(BadTypestr):
        descr_bytes(describe(descr))
