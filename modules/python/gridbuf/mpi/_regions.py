"""Which boxes of a field go to which neighbour, and where what it sends belongs: arithmetic only, no MPI.

Every neighbour is an *offset*: -1, 0 or 1 along each dimension that is cut. What goes to the neighbour at +1 fills its lower
halo, so it is as wide as that: the last points of the domain. Along dimensions with offset 0, and those that are not cut, it
is the domain: the owners of the points send halos, the diagonal neighbours send corners, all in one step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ._fields import Box, Spec

if TYPE_CHECKING:
    from ._decomposition import Decomposition

__all__ = ["Neighbour", "Piece", "box_points", "neighbours"]


class Piece(NamedTuple):
    """The box of one field that is sent, or received."""

    field: int
    box: Box


class Neighbour(NamedTuple):
    """One offset: the rank there, what goes to it and what comes from it, each for all fields in order.

    `sent_as` and `received_as` number the message among those between the same two ranks: by the offset as its sender sees it.
    """

    rank: int
    sent_as: int
    received_as: int
    sends: tuple[Piece, ...]
    receives: tuple[Piece, ...]


def box_points(box: Box) -> int:
    """The number of elements of a box."""
    return math.prod(part.stop - part.start for part in box)


def neighbours(grid: Decomposition, specs: Sequence[Spec], *, corners: bool) -> list[Neighbour]:
    """All offsets with something to send or to receive; the same number and order of messages as the neighbours count."""
    found = []
    for offset in _offsets(len(grid.dims), corners):
        named = dict(zip(grid.dims, offset, strict=True))
        rank = grid.neighbour(named)
        if rank is None:
            continue
        sends = _pieces(grid, specs, named, sending=True)
        receives = _pieces(grid, specs, named, sending=False)
        if sends or receives:
            opposite = tuple(-step for step in offset)
            found.append(Neighbour(rank, _number(offset), _number(opposite), sends, receives))
    return found


def _offsets(ndim: int, corners: bool) -> Iterator[tuple[int, ...]]:
    for offset in itertools.product((-1, 0, 1), repeat=ndim):
        steps = sum(map(abs, offset))
        if steps and (corners or steps == 1):
            yield offset


def _number(offset: tuple[int, ...]) -> int:
    return sum((step + 1) * 3**place for place, step in enumerate(offset))


def _pieces(
    grid: Decomposition, specs: Sequence[Spec], offset: dict[str, int], *, sending: bool
) -> tuple[Piece, ...]:
    """The boxes of those fields that have all dimensions of the offset; empty ones are left out."""
    pieces = []
    for spec in specs:
        if any(step and dim not in spec.dims for dim, step in offset.items()):
            continue
        # A dimension of the grid that a field does not have: its ranks hold copies, and exchange nothing along it.
        box = tuple(
            (_sent if sending else _received)(offset.get(dim, 0), extent, halo)
            for dim, extent, halo in zip(spec.dims, spec.shape, spec.halo, strict=True)
        )
        if box_points(box):
            pieces.append(Piece(spec.number, box))
    return tuple(pieces)


def _sent(step: int, extent: int, halo: tuple[int, int]) -> slice:
    lower, upper = halo
    if step > 0:
        return slice(extent - upper - lower, extent - upper)
    if step < 0:
        return slice(lower, lower + upper)
    return slice(lower, extent - upper)


def _received(step: int, extent: int, halo: tuple[int, int]) -> slice:
    lower, upper = halo
    if step > 0:
        return slice(extent - upper, extent)
    if step < 0:
        return slice(0, lower)
    return slice(lower, extent - upper)
