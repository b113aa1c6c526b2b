"""The arrays of the scoreboard: plans with a name, each under the one feature that it shows.

The set is fixed, because records are compared by the place of an array in it. New arrays go to the
end, with another `VERSION`, so that old records can be read. All elements of an array are read, but
of large ones a sample. Memory of a foreign owner and unaligned elements are producers
(`numpy.memmap`, `numpy.field`), not arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...plan import Plan

VERSION = 2
_COUNT_OF_1 = 66


@dataclass(frozen=True)
class Array:
    """One array: `feature` is the column of the feature table that it counts for."""

    name: str
    feature: str
    plan: Plan


_CLASSIC = (
    *("float64", "float32", "int64", "int32", "int16", "int8"),
    *("uint64", "uint32", "uint16", "uint8"),
)
_LATER = ("bool", "float16", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_OTHER = ("longdouble", "datetime64[ns]", "timedelta64[ns]", "bytes5", "str3", "struct")
_SHAPES = ((), (1,), (2, 3), (2, 3, 2), (2, 1, 3, 2), (1, 2, 1, 3, 2))
_EMPTY = ((0,), (0, 3), (2, 0, 3))
_ORDERS = (
    ((3, 2), (1, 0)),
    ((2, 3, 4), (2, 1, 0)),
    ((2, 3, 4), (1, 2, 0)),
    ((2, 2, 3, 2), (3, 2, 1, 0)),
)
_VIEWS: dict[str, tuple[tuple[tuple[int, ...], tuple[Any, ...]], ...]] = {
    "steps": (
        ((9,), (("slice", 0, None, None, 2),)),
        ((4, 6), (("slice", 1, None, None, 3),)),
        ((6, 4), (("slice", 0, None, None, 2),)),
        ((3, 4), (("transpose", (1, 0)), ("slice", 0, 0, 2, 1))),
    ),
    "negative strides": (
        ((5,), (("reverse", 0),)),
        ((3, 4), (("reverse", 1),)),
        ((3, 4), (("reverse", 0), ("reverse", 1))),
        ((9,), (("slice", 0, None, None, 2), ("reverse", 0))),
    ),
    "zero strides": (
        ((1,), (("broadcast", 0, 4),)),
        ((3, 1), (("broadcast", 1, 4),)),
        ((1, 3), (("broadcast", 0, 2),)),
    ),
    "offset": (
        ((7,), (("slice", 0, 2, None, 1),)),
        ((4, 5), (("slice", 0, 1, None, 1), ("slice", 1, 2, 4, 1))),
        ((7,), (("slice", 0, 3, 4, 1),)),
        ((4,), (("newaxis", 0), ("slice", 1, 1, None, 1))),
        ((3, 4), (("empty", 1),)),
    ),
}
_READONLY: tuple[tuple[str, Plan], ...] = (
    ("one dimension", Plan(shape=(5,))),
    ("bytes", Plan(shape=(16,), dtype="uint8")),
    ("int32", Plan(shape=(2, 3), dtype="int32")),
    ("Fortran", Plan(shape=(2, 3), layout=(1, 0))),
    ("float32", Plan(shape=(2, 3, 2), dtype="float32")),
    ("empty", Plan(shape=(0,))),
    ("steps", Plan(shape=(9,), views=(("slice", 0, None, None, 2),))),
    ("offset", Plan(shape=(7,), views=(("slice", 0, 2, None, 1),))),
)


def _arrays() -> Iterator[Array]:
    for feature, dtypes in (("types", _CLASSIC), ("later types", _LATER), ("other types", _OTHER)):
        for dtype in dtypes:
            yield Array(dtype, feature, Plan(shape=(5,), dtype=dtype))
    for shape in _SHAPES:
        yield Array(f"rank {len(shape)}", "ranks", Plan(shape=shape))
    yield Array("one element, rank 2", "ranks", Plan(shape=(1, 1)))
    for shape in _EMPTY:
        yield Array(f"empty {_by(shape)}", "empty", Plan(shape=shape))
    for shape, layout in _ORDERS:
        name = f"order {''.join(map(str, layout))}"
        yield Array(name, "order", Plan(shape=shape, layout=layout))
    for dtype in ("uint8", "int32"):
        plan = Plan(shape=(3, 2), dtype=dtype, layout=(1, 0))
        yield Array(f"order 10 {dtype}", "order", plan)
    for feature, views in _VIEWS.items():
        for number, (base, operations) in enumerate(views, 1):
            yield Array(f"{feature} {number}", feature, Plan(shape=base, views=operations))
    for dtype in ("float64", "int16"):
        plan = Plan(shape=(5,), dtype=dtype, byteorder="swapped")
        yield Array(f"swapped {dtype}", "byte order", plan)
    yield Array("uint8 reversed", "negative strides", _viewed("uint8", ("reverse", 0)))
    for name, plan in _READONLY:
        yield Array(f"read-only {name}", "read-only", plan.replaced(readonly=True))


_IN_FLOAT32 = ("ranks", "order", "steps", "negative strides", "zero strides", "offset")
_LARGE: tuple[tuple[str, Plan], ...] = (
    ("float64", Plan(shape=(8320,))),
    ("float32", Plan(shape=(128, 130), dtype="float32")),
    ("int32", Plan(shape=(128, 130), dtype="int32")),
    ("order 10 float32", Plan(shape=(128, 130), dtype="float32", layout=(1, 0))),
    ("read-only float32", Plan(shape=(128, 130), dtype="float32", readonly=True)),
)
"""Arrays of 66,560 bytes: JAX copies smaller ones. This is a multiple of 64: with the allocator's
header, the addresses have all remainders, and `make` finds an aligned one."""


def _later() -> Iterator[Array]:
    """The arrays of version 2: some libraries have no float64."""
    for array in _arrays():
        if array.feature in _IN_FLOAT32 and array.plan.dtype == "float64":
            plan = array.plan.replaced(dtype="float32")
            yield Array(f"{array.name} float32", array.feature, plan)
    for name, plan in _LARGE:
        yield Array(f"large {name}", "large", plan)


def _viewed(dtype: str, *operations: tuple[Any, ...]) -> Plan:
    return Plan(shape=(6,), dtype=dtype, views=operations)


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


ARRAYS: dict[str, Array] = {array.name: array for array in (*_arrays(), *_later())}
"""The arrays by name, in the order of the records."""
COUNTS = {1: _COUNT_OF_1, VERSION: len(ARRAYS)}
"""How many of them the records of a version have."""
