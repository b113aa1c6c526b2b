"""Which boxes of a field are sent to and received from each neighbour: arithmetic only, no MPI.

Every neighbour is an *offset*: -1, 0 or 1 along each dimension that is cut. The neighbour at +1 gets the last points of the domain, as
many as its lower halo has. Along dimensions with offset 0, and along those that are not cut, the box has the extent of the domain.
Diagonal neighbours send corners in the same step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ._fields import Box, Spec

if TYPE_CHECKING:
    from ._decomposition import Decomposition


class Piece(NamedTuple):
    """The box of one field that is sent, or received."""

    field: int
    box: Box


class Neighbour(NamedTuple):
    """The rank at an offset, and the boxes that are sent to it and received from it, for all fields in order.

    `sent_as` and `received_as` number the messages between two ranks, by the offset from the sender.
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
    """All offsets with something to send or to receive. Neighbours agree on the number and order of messages."""
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
        # A dimension of the grid that the field does not have: the ranks along it have copies, and exchange nothing.
        box = tuple(
            _part(offset.get(dim, 0), extent, halo, sending)
            for dim, extent, halo in zip(spec.dims, spec.shape, spec.halo, strict=True)
        )
        if box_points(box):
            pieces.append(Piece(spec.number, box))
    return tuple(pieces)


def _part(step: int, extent: int, halo: tuple[int, int], sending: bool) -> slice:
    lower, upper = halo
    if step > 0:
        return (
            slice(extent - upper - lower, extent - upper)
            if sending
            else slice(extent - upper, extent)
        )
    if step < 0:
        return slice(lower, lower + upper) if sending else slice(0, lower)
    return slice(lower, extent - upper)
