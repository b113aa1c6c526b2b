"""What the tests compare with: the layout rules in Python's big integers, and Hypothesis strategies for requests.

Written from the rules, not from gridbuf's code: nothing here imports gridbuf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

LIMIT_BYTES = 2**63 - 1
MAX_ALIGNMENT_BYTES = 2**20

RECORD = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "u1", (3,))])  # 13 bytes, packed
DTYPES = [
    *map(np.dtype, ("f8", "f4", "f2", "i1", "u2", "i8", "?", "c8", "c16", "g", "G")),
    *map(np.dtype, (">f8", ">i4", "S5", "U3", "V7", "M8[ns]", "m8[D]")),
    RECORD,
    np.dtype({"names": ["x", "y"], "formats": ["f4", "i8"], "offsets": [0, 8], "itemsize": 24}),
    np.dtype(ml_dtypes.bfloat16),
    np.dtype(ml_dtypes.float8_e4m3fn),
]


@dataclass(frozen=True)
class Plan:
    """The strides and sizes of an array, by the rules of padding."""

    strides: tuple[int, ...]
    padded_shape: tuple[int, ...]
    total_bytes: int


def plan(
    shape: Sequence[int], itemsize: int, layout: Sequence[int] | None = None, alignment: int = 1
) -> Plan:
    """The contiguous extent is rounded up so that a row is a whole number of alignments (lcm rule)."""
    ndim = len(shape)
    layout = tuple(range(ndim)) if layout is None else tuple(layout)
    padded = list(shape)
    if ndim > 1:
        multiple = alignment // math.gcd(alignment, itemsize)
        contiguous = layout.index(ndim - 1)
        padded[contiguous] = -(-shape[contiguous] // multiple) * multiple
    strides = [0] * ndim
    stride = itemsize
    for rank in reversed(range(ndim)):
        axis = layout.index(rank)
        strides[axis] = stride
        stride *= max(padded[axis], 1)
    return Plan(tuple(strides), tuple(padded), 0 if 0 in shape else stride)


def dense_strides(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """The strides of the array; where they have no meaning, those of a dense array in C order."""
    strides, dense = [], array.itemsize
    for extent, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        strides.append(dense if extent == 1 or array.size == 0 else stride)
        dense *= max(extent, 1)
    return tuple(reversed(strides))


def named_layout(base_ranks: tuple[int, int, int], dims: Sequence[str]) -> tuple[int, ...]:
    """Data dimensions outermost by number, then I, J, K by base rank."""

    def key(name: str) -> tuple[int, int]:
        return (1, base_ranks["IJK".index(name)]) if name in "IJK" else (0, int(name))

    order = sorted(dims, key=key)
    return tuple(order.index(name) for name in dims)


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


@st.composite
def requests(
    draw: st.DrawFn, *, max_ndim: int = 5, max_extent: int = 6, min_extent: int = 0
) -> dict[str, Any]:
    """Keyword arguments of an allocation, shape and dtype included; all of them valid."""
    axes = draw(
        st.lists(
            st.tuples(st.integers(min_extent, max_extent), st.floats(0, 1, width=32)),
            max_size=max_ndim,
        )
    )
    shape = tuple(extent for extent, _ in axes)
    ndim = len(shape)
    layout = draw(st.permutations(range(ndim)).map(tuple))
    index = tuple(min(int(part * extent), max(extent - 1, 0)) for extent, part in axes)
    names = [*"IJK", "0", "1", "2", "10"]
    return {
        "shape": shape,
        "dtype": draw(st.sampled_from(DTYPES)),
        "layout": layout,
        "alignment_size": draw(st.sampled_from([1, 2, 3, 8, 12, 16, 64, 100, 128, 4096])),
        "aligned_index": index,
        "dims": tuple(draw(st.permutations(names))[:ndim]),
    }


def fill_bytes(array: np.ndarray, seed: int = 1) -> np.ndarray:
    """Writes distinct, valid bytes to every element (by way of its raw bytes) and returns the array."""
    count = array.size * array.itemsize
    raw = ((np.arange(count, dtype=np.uint64) * 7 + seed) % 120 + 1).astype(np.uint8)
    if array.dtype.kind == "b":
        raw &= 1
    if array.dtype.kind == "U":
        raw[np.arange(count) % 4 != 0] = 0
    if array.dtype.char in "gG":
        raw = (
            np.arange(count // 16, dtype=np.longdouble).view(np.uint8).copy() if count else raw[:0]
        )
    as_bytes(array)[...] = as_bytes(raw.view(array.dtype).reshape(array.shape))
    return array


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The same elements as raw bytes, which NumPy copies whole, holes of records included."""
    return array.view(f"V{array.itemsize}")


def without_gaps(array: np.ndarray) -> np.ndarray:
    """A copy with zeros between the fields of records, as in every new array of gridbuf."""
    copied = np.zeros(array.shape, array.dtype)
    np.copyto(copied, array)
    return copied


def raw(array: np.ndarray) -> bytes:
    """The bytes of all elements in row-major order."""
    return as_bytes(array).tobytes()
