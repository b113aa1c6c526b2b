"""Which depth of halos is valid before an exchange and after it; all ranks agree on both.

Ranks can differ, because one of them wrote to its part alone. A point is then sent if it is not valid on any rank.
"""

from __future__ import annotations

import itertools
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
Pairs = tuple[tuple[int, int], ...]
_MOST_KEPT = 64


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


class Agreement:
    """How deep the halos of some fields are valid before an exchange and after it, on all ranks.

    Numbers are in the order of fields, dimensions and ends. A call before each exchange costs as little as it can: what
    follows from the numbers that the ranks agree on is kept.
    """

    def __init__(self, grid: Decomposition, specs: Sequence[Spec]) -> None:
        ends = [(dim, end) for spec in specs for dim in spec.dims for end in (0, 1)]
        self._comm, self._rank, self._specs = grid.comm, grid.rank, specs
        self._is_cut = [dim in grid.extents for dim, _ in ends]
        self._is_filled = [has_neighbour(grid, dim, end) for dim, end in ends]
        self._widths = [points for spec in specs for pair in spec.halo for points in pair]
        self._whole = [-points for points in self._widths]
        self._numbers = np.zeros(1 + 2 * len(ends), np.int64)
        mpi = mpi_module()
        self._reduction = mpi.IN_PLACE, self._numbers, mpi.MIN
        filled = zip(self._is_filled, self._widths, strict=True)
        # As if no point were valid.
        self.nothing = (*(0 if one else width for one, width in filled), *self._whole)
        self._expected: dict[tuple[tuple[int, ...], ...], list[Pairs]] = {}

    @staticmethod
    def found(fields: Sequence[Any]) -> tuple[int, ...]:
        """What is valid on this rank."""
        return tuple(points for field in fields for pair in field.valid_halo for points in pair)

    def agreed(
        self, check: Callable[[], Sequence[Any]], depth: Depth
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What all ranks agree on, and what is valid on this one, of the fields that `check` returns. Collective.

        Raises:
          Exception: what `check` raised on this rank, or a depth that is not one.
          HaloExchangeError: another rank raised it.
        """
        error = None
        numbers = self._numbers
        found: tuple[int, ...] = ()
        try:
            fields = check()
            found = self.found(fields)
            # Writes through an export are not seen: nothing may be left out then.
            seen = [not field._was_exported for field in fields for _ in range(2 * field.ndim)]
            valid = [points if one else 0 for points, one in zip(found, seen, strict=True)]
            asked = self._whole
            if depth is not None:
                pairs = [pair for spec in self._specs for pair in wanted(spec, depth)]
                asked = [-points for pair in pairs for points in pair]
            known = zip(valid, self._is_filled, self._widths, strict=True)
            numbers[:] = [0, *(points if one else width for points, one, width in known), *asked]
        except Exception as caught:
            error, numbers[:] = caught, 0
            numbers[0] = -1 - self._rank
        self._comm.Allreduce(*self._reduction)
        if error is not None:
            raise error
        first, *others = numbers.tolist()
        if first < 0:
            raise HaloExchangeError(f"rank {-1 - first} failed before it sent; no halo has changed")
        return tuple(others), found

    def depths(self, agreed: tuple[int, ...]) -> tuple[Depths, ...]:
        """The agreed numbers by field, dimension and end."""
        count = len(self._widths)
        # What is valid takes part, because points of corners are of two dimensions.
        ends = iter(
            (first, max(first, -asked)) if is_cut else (0, 0)
            for first, asked, is_cut in zip(
                agreed[:count], agreed[count:], self._is_cut, strict=True
            )
        )
        return tuple(tuple((next(ends), next(ends)) for _ in spec.dims) for spec in self._specs)

    def expected(
        self, agreed: tuple[int, ...], found: tuple[int, ...], corners: bool
    ) -> list[Pairs]:
        """The depth of each field when the exchange has arrived.

        Along several dimensions it is the agreed one, because of the corners; without these it stays.
        """
        made = self._expected.get((agreed, found))
        if made is None:
            if len(self._expected) == _MOST_KEPT:
                self._expected.clear()
            places = itertools.count()
            made = [
                self._after(ends, [(next(places), next(places)) for _ in ends], found, corners)
                for ends in self.depths(agreed)
            ]
            self._expected[agreed, found] = made
        return made

    def _after(
        self,
        ends: Depths,
        places: Sequence[tuple[int, int]],
        found: tuple[int, ...],
        corners: bool,
    ) -> Pairs:
        last = {place: one[1] for both, pair in zip(ends, places) for one, place in zip(both, pair)}
        valid = [
            any(max(found[n], last[n]) for n in pair) for pair in places if self._is_cut[pair[0]]
        ]

        def after(n: int) -> int:
            if not self._is_cut[n]:
                return found[n]
            if not self._is_filled[n]:  # it stays as the program fills it
                return self._widths[n]
            if sum(valid) < 2:
                return max(found[n], last[n])
            return last[n] if corners else found[n]

        return tuple((after(lower), after(upper)) for lower, upper in places)
