"""How an array lies in given memory: element type, layout map, padded rows, steps, and where it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

__all__ = ["LINE_BYTES", "Placement"]

LINE_BYTES = 64
"""A cache line of every machine this runs on."""


@dataclass(frozen=True)
class Placement:
    """The element type and the strides of an array, apart from its shape and its memory.

    `layout` is the layout map (rank of each dimension: 0 has the largest stride). `rows` are those of the
    contiguous dimension: "dense" without gaps; "lines" padded to an odd number of cache lines, at least
    one byte of it padding, which is what a field does that fears conflicts in the caches. Of `step` > 1 only
    every step-th element of a row belongs to the array. `offset_bytes` is where it starts.
    """

    dtype: str
    layout: tuple[int, ...]
    rows: Literal["dense", "lines"] = "dense"
    step: int = 1
    offset_bytes: int = 0

    def strides_bytes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The stride of each dimension of an array of this shape."""
        strides = [0] * len(shape)
        stride = self.itemsize_bytes * self.step
        for rank in reversed(range(len(shape))):
            dim = self.layout.index(rank)
            strides[dim] = stride
            stride *= shape[dim]
            if rank == len(shape) - 1 and self.rows == "lines":
                stride = self._padded_bytes(stride)
        return tuple(strides)

    def span_bytes(self, shape: Sequence[int]) -> int:
        """The bytes of memory it needs from the start of that memory, padding of the last row included."""
        extents = [extent * stride for extent, stride in zip(shape, self.strides_bytes(shape))]
        return self.offset_bytes + max(extents, default=self.itemsize_bytes)

    @property
    def itemsize_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def keeps_order(self) -> bool:
        """Whether the last dimension is the contiguous one, as in C order."""
        return not self.layout or self.layout[-1] == len(self.layout) - 1

    def _padded_bytes(self, row_bytes: int) -> int:
        lines = row_bytes // LINE_BYTES + 1
        return (lines + (lines + 1) % 2) * LINE_BYTES

    def to_json(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype,
            "layout": list(self.layout),
            "rows": self.rows,
            "step": self.step,
            "offset_bytes": self.offset_bytes,
        }
