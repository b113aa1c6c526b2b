"""Which depth of halos is valid before an exchange and after it; all ranks agree on both.

Ranks can differ, because one of them wrote to its part alone. A point is then sent if it is not valid on any rank.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from .._dims import pairs_of
from ._failures import HaloExchangeError
from ._fields import Spec
from ._libraries import mpi_module
from ._regions import Depths

if TYPE_CHECKING:
    from ._decomposition import Decomposition

Depth = SupportsIndex | Sequence[Sequence[Sequence[SupportsIndex]]] | None
"""One number for all fields, or pairs per dimension of each field; None: whole halos."""


def wanted(spec: Spec, depth: Depth) -> tuple[tuple[int, int], ...]:
    """The depth that is asked for this field, at most its halo.

    Raises:
      TypeError, ValueError: it is not a depth.
    """
    if depth is None:
        return spec.halo
    if isinstance(depth, Sequence):
        pairs = pairs_of(depth[spec.number], len(spec.dims), f"the depth of field {spec.number}")
    else:
        points = operator.index(depth)
        if points < 0:
            raise ValueError(f"depth is {points}, but must be at least 0 points")
        pairs = ((points, points),) * len(spec.dims)
    return tuple(
        (min(low, lower), min(up, upper))
        for (low, up), (lower, upper) in zip(pairs, spec.halo, strict=True)
    )


def has_neighbour(grid: Decomposition, dim: str, end: int) -> bool:
    """Whether a neighbour fills this end of the halo."""
    return dim in grid.extents and grid.neighbour({dim: 2 * end - 1}) is not None


def agreed(
    grid: Decomposition, specs: Sequence[Spec], check: Callable[[], Sequence[Any]], depth: Depth
) -> tuple[Depths, ...]:
    """The depths from which and to which all ranks exchange the fields that `check` returns. Collective.

    Raises:
      Exception: what `check` raised on this rank, or a depth that is not one.
      HaloExchangeError: another rank raised it.
    """
    error = None
    count = sum(2 * len(spec.dims) for spec in specs)
    numbers = np.zeros(1 + 2 * count, np.int64)
    try:
        valid: list[int] = []
        asked: list[int] = []
        for spec, field in zip(specs, check(), strict=True):
            for dim, widths, found, pair in zip(
                spec.dims, spec.halo, field.valid_halo, wanted(spec, depth), strict=True
            ):
                for end in (0, 1):
                    # Writes through an export are not seen: nothing may be left out then.
                    known = 0 if field._was_exported else found[end]
                    valid.append(known if has_neighbour(grid, dim, end) else widths[end])
                asked += pair
        numbers[1:] = [*valid, *(-n for n in asked)]
    except Exception as caught:
        error, numbers[0] = caught, -1 - grid.rank
    MPI = mpi_module()  # noqa: N806 (its name)
    grid.comm.Allreduce(MPI.IN_PLACE, numbers, MPI.MIN)
    if error is not None:
        raise error
    if numbers[0] < 0:
        raise HaloExchangeError(
            f"rank {-1 - numbers[0]} failed before it sent; no halo has changed"
        )
    both = iter(zip(numbers[1 : 1 + count].tolist(), (-numbers[1 + count :]).tolist(), strict=True))

    def range_of(dim: str) -> tuple[int, int]:
        first, last = next(both)
        # What is valid takes part, because points of corners are of two dimensions.
        return (first, max(first, last)) if dim in grid.extents else (0, 0)

    return tuple(tuple((range_of(d), range_of(d)) for d in spec.dims) for spec in specs)


def expect(grid: Decomposition, field: Any, spec: Spec, depths: Depths, corners: bool) -> None:
    """Notes the depth that the field has when the exchange arrives.

    Along several dimensions it is the agreed one, because of the corners; without these it stays.
    """
    before = field.valid_halo
    valid = [
        (max(found, last) for found, (_, last) in zip(both, ends, strict=True))
        for dim, both, ends in zip(spec.dims, before, depths, strict=True)
        if dim in grid.extents
    ]
    several = sum(map(any, valid)) > 1

    def after(dim: str, end: int, width: int, found: int, last: int) -> int:
        if dim not in grid.extents:
            return found
        if not has_neighbour(grid, dim, end):  # it stays as the program fills it
            return width
        if not several:
            return max(found, last)
        return last if corners else found

    field._expect_halo(
        [
            tuple(after(d, end, width[end], found[end], ends[end][1]) for end in (0, 1))
            for d, width, found, ends in zip(spec.dims, spec.halo, before, depths, strict=True)
        ]
    )
