"""Which boxes of a field are sent to and received from each neighbour: arithmetic only, no MPI.

Every neighbour is an *offset*: -1, 0 or 1 along each dimension that is cut. The neighbour at +1 gets the last points of the domain, as
many as its lower halo has. (Of an exchange to a depth: as many as that.) Along dimensions with offset 0, and along those that are not cut, the box has the extent of the domain.
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


Depths = tuple[tuple[tuple[int, int], tuple[int, int]], ...]
"""Per dimension and end of a field, the depth that is valid before an exchange and the one after it."""


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


def full_depths(specs: Sequence[Spec]) -> list[Depths]:
    """Of an exchange of whole halos."""
    return [tuple(((0, lower), (0, upper)) for lower, upper in spec.halo) for spec in specs]


def neighbours(
    grid: Decomposition, specs: Sequence[Spec], depths: Sequence[Depths], *, corners: bool
) -> list[Neighbour]:
    """All offsets with something to send or to receive. Neighbours agree on the number and order of messages."""
    found = []
    for offset in _offsets(len(grid.dims), corners):
        named = dict(zip(grid.dims, offset, strict=True))
        rank = grid.neighbour(named)
        if rank is None:
            continue
        sends = _pieces(specs, depths, named, sending=True)
        receives = _pieces(specs, depths, named, sending=False)
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
    specs: Sequence[Spec], depths: Sequence[Depths], offset: dict[str, int], *, sending: bool
) -> tuple[Piece, ...]:
    """The boxes of those fields that have all dimensions of the offset; empty ones are left out."""
    pieces = []
    for spec, ends in zip(specs, depths, strict=True):
        if any(step and dim not in spec.dims for dim, step in offset.items()):
            continue
        # A dimension of the grid that the field does not have: the ranks along it have copies, and exchange nothing.
        steps = [offset.get(dim, 0) for dim in spec.dims]
        # A sender fills the opposite end of the neighbour.
        ranges = [ends[axis][(step > 0) ^ sending] for axis, step in enumerate(steps)]
        missing = [
            axis for axis, step in enumerate(steps) if step and ranges[axis][0] < ranges[axis][1]
        ]
        if not missing:
            continue
        box = tuple(
            _part(
                step,
                extent,
                halo,
                ranges[axis] if missing == [axis] else (0, ranges[axis][1]),
                sending,
            )
            for axis, (step, extent, halo) in enumerate(
                zip(steps, spec.shape, spec.halo, strict=True)
            )
        )
        if box_points(box):
            pieces.append(Piece(spec.number, box))
    return tuple(pieces)


def _part(
    step: int, extent: int, halo: tuple[int, int], depths: tuple[int, int], sending: bool
) -> slice:
    """The points from the first depth to the second: of the halo, or of the domain for the neighbour's halo."""
    (lower, upper), (first, last) = halo, depths
    if not step:
        return slice(lower, extent - upper)
    if step > 0:
        end = extent - upper
        return slice(end - last, end - first) if sending else slice(end + first, end + last)
    return slice(lower + first, lower + last) if sending else slice(lower - last, lower - first)
