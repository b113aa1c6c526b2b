"""What an exchange must give, computed without MPI from the whole field: the reference of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gridbuf.mpi
import gridbuf.storage
import numpy as np
import numpy.typing as npt

Halo = Sequence[tuple[int, int]]


def whole_field(shape: Sequence[int], dtype: npt.DTypeLike, seed: int = 0) -> npt.NDArray[Any]:
    """The same numbers on every rank, none of them 99."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 90, size=tuple(shape))
    dtype = np.dtype(dtype)
    if dtype.names is None:
        return values.astype(dtype)
    whole = np.zeros(values.shape, dtype)
    for name in dtype.names:
        whole[name] = values
    return whole


def outside(dtype: npt.DTypeLike) -> Any:
    """The content of halos that are not filled."""
    kind = np.dtype(dtype)
    return np.array(99).astype(kind)[()] if kind.names is None else np.zeros((), kind)[()]


def part_of(
    grid: gridbuf.mpi.Decomposition,
    whole: npt.NDArray[Any],
    dims: Sequence[str],
    halo: Halo,
    **keywords: Any,
) -> gridbuf.storage.Storage:
    """This rank's storage: its part of the whole, and an unfilled halo."""
    shape = grid.local_shape(whole.shape, dims=dims, halo=halo)
    field = gridbuf.storage.full(
        shape, outside(whole.dtype), whole.dtype, dims=dims, halo=halo, **keywords
    )
    field.domain_view[...] = whole[grid.slices(dims)]
    return field


def with_halos(
    grid: gridbuf.mpi.Decomposition,
    whole: npt.NDArray[Any],
    dims: Sequence[str],
    halo: Halo,
    *,
    corners: bool = True,
) -> npt.NDArray[Any]:
    """What this rank's storage holds after an exchange."""
    padded = whole
    inside = [grid.periodic.get(dim) for dim in dims]
    for axis, (dim, widths) in enumerate(zip(dims, halo, strict=True)):
        around = [widths if a == axis else (0, 0) for a in range(whole.ndim)]
        if grid.periodic.get(dim):
            padded = np.pad(padded, around, mode="wrap")
    for axis, (dim, widths) in enumerate(zip(dims, halo, strict=True)):
        around = [widths if a == axis else (0, 0) for a in range(whole.ndim)]
        if not inside[axis]:
            padded = _pad_with(padded, around, outside(whole.dtype))
    part = padded[
        tuple(
            slice(grid.starts[dim], grid.starts[dim] + grid.local_extents[dim] + sum(widths))
            if dim in grid.starts
            else slice(None)
            for dim, widths in zip(dims, halo, strict=True)
        )
    ].copy()
    if not corners:
        part[_corners(grid, part.shape, dims, halo)] = outside(whole.dtype)
    return part


def _pad_with(array: npt.NDArray[Any], around: Halo, value: Any) -> npt.NDArray[Any]:
    shape = [n + sum(widths) for n, widths in zip(array.shape, around, strict=True)]
    padded = np.full(shape, value, array.dtype)
    padded[tuple(slice(lo, lo + n) for n, (lo, _) in zip(array.shape, around, strict=True))] = array
    return padded


def _corners(
    grid: gridbuf.mpi.Decomposition, shape: Sequence[int], dims: Sequence[str], halo: Halo
) -> npt.NDArray[np.bool_]:
    """Points in the halo of two dimensions that are cut."""
    count = np.zeros(shape, int)
    for axis, (dim, (lower, upper)) in enumerate(zip(dims, halo, strict=True)):
        if dim in grid.dims:
            index = np.arange(shape[axis])
            beyond = (index < lower) | (index >= shape[axis] - upper)
            count += beyond.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    corners: npt.NDArray[np.bool_] = count > 1
    return corners
