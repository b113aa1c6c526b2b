"""The engine that needs mpi4py alone: one message per neighbour, packed by `gridbuf.copyto`, sent by persistent requests.

A message has the boxes of all fields in turn, each in the order of rank 0's memory. So most packing is a copy along contiguous
elements. Messages are in one block of memory that is kept between
exchanges: pinned where a field is on a device.

A rank that fails before it has sent its messages sends empty ones instead, and receives all others. So no rank waits for it, no message
is left for the next exchange, and its neighbours raise an error, too.

With `Decomposition(shared=True)` the messages to ranks of the same node are in shared memory, and one byte says that a message is ready: the
receiver reads it where the sender has packed it. An empty message back says that it was read. The sender waits for that before it packs again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ._failures import HaloExchangeError, together
from ._fields import Box, Spec
from ._libraries import mpi_module
from ._regions import Neighbour, Piece, box_points

if TYPE_CHECKING:
    from ._decomposition import Decomposition

_LINE_BYTES = 64
"""Boxes start on cache lines within a message, which also aligns every dtype."""

_MOST_OFFSETS = 3**8
"""Tags are numbered by exchange and offset; a decomposition of more than 8 dimensions is refused before."""


class _Message(NamedTuple):
    """One neighbour's message in one direction: its request, the bytes that MPI sends, its boxes and where they are."""

    neighbour: Neighbour
    request: Any
    length_bytes: int
    boxes: tuple[tuple[int, Box, npt.NDArray[Any]], ...]


class PackedEngine:
    """See the module; `start` and its result are those of every engine."""

    name = "mpi4py"

    def __init__(
        self,
        grid: Decomposition,
        specs: Sequence[Spec],
        orders: Sequence[tuple[int, ...]],
        neighbours: Sequence[Neighbour],
        *,
        pinned: bool,
    ) -> None:
        """Plans the messages. `orders` are the layouts of rank 0, the order of the boxes in the messages."""
        MPI = mpi_module()  # noqa: N806 (its name)
        self._requests: tuple[list[Any], list[Any]] = [], []
        self._is_finalized: Callable[[], bool] = MPI.Is_finalized
        self._waitall: Callable[..., Any] = MPI.Prequest.Waitall
        self._start_all: Callable[..., Any] = MPI.Prequest.Startall
        self._grid, self._bytes = grid, MPI.BYTE
        self._specs, self._orders = specs, orders
        self._own = [n for n in neighbours if n.rank == grid.rank]
        others = [n for n in neighbours if n.rank != grid.rank]
        sends = [(n, n.sends, n.sent_as) for n in others if n.sends]
        receives = [(n, n.receives, n.received_as) for n in others if n.receives]
        lengths = [self._length_bytes(pieces) for _, pieces, _ in (*sends, *receives)]
        ends = [0, *accumulate(lengths)]
        self._memory = _memory_for(ends[-1], pinned=pinned, shared=grid._node is not None)
        blocks = [self._memory[begin:end] for begin, end in zip(ends, ends[1:], strict=False)]
        # One byte for each message in shared memory.
        ready = self._ready = np.zeros(len(blocks), np.uint8)
        starts = {(n.rank, tag): begin for (n, _, tag), begin in zip(sends, ends, strict=False)}
        near, readers = _near(grid, self._memory, starts)
        most = grid.comm.Get_attr(MPI.TAG_UB) // _MOST_OFFSETS
        self._first_tag = grid._next_exchange() % most * _MOST_OFFSETS
        read_tag = grid._next_exchange() % most * _MOST_OFFSETS
        self._sends: list[_Message] = []
        self._receives: list[_Message] = []
        # Of messages in shared memory: the empty messages back, and those that this rank sends.
        self._read: tuple[list[Any], list[Any]] = [], []
        Send, Recv = grid.comm.Send_init, grid.comm.Recv_init  # noqa: N806 (their names)
        for number, (neighbour, pieces, tag) in enumerate((*sends, *receives)):
            rank, is_send = neighbour.rank, number < len(sends)
            make, make_back = (Send, Recv) if is_send else (Recv, Send)
            block = passed = blocks[number]
            if rank in readers if is_send else (rank, tag) in near:
                if not is_send:
                    block = near[rank, tag][: block.nbytes]
                passed = ready[number : number + 1]
                back = make_back([ready[:0], MPI.BYTE], rank, read_tag + tag)
                self._read[not is_send].append(back)
            request = make([passed, MPI.BYTE], rank, self._first_tag + tag)
            message = _Message(neighbour, request, passed.nbytes, self._views(pieces, block))
            (self._sends if is_send else self._receives).append(message)
        self._statuses = [MPI.Status() for _ in self._receives]
        self._requests = [m.request for m in self._receives], [m.request for m in self._sends]

    def start(self, fields: Callable[[], Sequence[Any]]) -> Callable[[Sequence[Any]], None]:
        """Packs and sends; the returned function waits and unpacks. If `fields` raises, the neighbours raise, too."""
        receives, sends = self._requests
        self._waitall(self._read[0])  # of the exchange before, if there was one
        self._start_all([*receives, *self._read[0]])
        started = 0
        try:
            given = fields()
            arrays = [field._own_memory() for field in given]
            for message in self._sends:
                for field, box, view in message.boxes:
                    _core.copyto(view, arrays[field][box])
                message.request.Start()
                started += 1
            for neighbour in self._own:
                self._copy_own(neighbour, arrays)
        except BaseException:
            empty = [
                self._grid.comm.Isend(
                    [self._memory[:0], self._bytes],
                    message.neighbour.rank,
                    self._first_tag + message.neighbour.sent_as,
                )
                for message in self._sends[started:]
            ]
            self._waitall([*receives, *sends[:started], *empty])
            self._say_read()
            raise
        return self._finish

    def _finish(self, fields: Sequence[Any]) -> None:
        receives, sends = self._requests
        self._waitall(receives, self._statuses)
        self._waitall(sends)
        # Requested again: for memory of a device, the host waits here for the work of the device.
        arrays = [field._own_memory() for field in fields]
        failed = []
        for message, status in zip(self._receives, self._statuses, strict=True):
            if status.Get_count(self._bytes) != message.length_bytes:
                failed.append(message.neighbour.rank)
                continue
            for field, box, view in message.boxes:
                _core.copyto(arrays[field][box], view)
        self._say_read()
        if failed:
            raise HaloExchangeError(
                f"rank {sorted(set(failed))} failed before it sent; the halos on its side are what they were on rank "
                f"{self._grid.rank}"
            )

    def _say_read(self) -> None:
        """Senders of messages in shared memory may pack again."""
        self._start_all(self._read[1])
        self._waitall(self._read[1])

    def close(self) -> None:
        """Gives the requests back to MPI, which ends those first that are under way."""
        for request in [r for requests in (*self._requests, *self._read) for r in requests]:
            request.Free()
        self._requests = self._read = [], []

    def __del__(self) -> None:
        # No request has memory that MPI writes: a request in progress is kept until it is waited for.
        if any(self._requests) and not self._is_finalized():
            self.close()

    def _copy_own(self, neighbour: Neighbour, arrays: Sequence[Any]) -> None:
        """A periodic dimension with one part: this rank is its own neighbour."""
        # The neighbour at an offset receives from the opposite offset.
        for other in self._own:
            if other.received_as == neighbour.sent_as:
                boxes = {piece.field: piece.box for piece in other.receives}
                for piece in neighbour.sends:
                    array = arrays[piece.field]
                    _core.copyto(array[boxes[piece.field]], array[piece.box])

    def _length_bytes(self, pieces: Sequence[Piece]) -> int:
        return sum(_lines_bytes(self._specs[p.field], p.box) for p in pieces)

    def _views(
        self, pieces: Sequence[Piece], block: npt.NDArray[np.uint8]
    ) -> tuple[tuple[int, Box, npt.NDArray[Any]], ...]:
        """The boxes as arrays within a message, with the fields' order of dimensions."""
        views, offset = [], 0
        for field, box in pieces:
            spec = self._specs[field]
            flat = block[offset : offset + box_points(box) * spec.dtype.itemsize].view(spec.dtype)
            views.append((field, box, _shaped(flat, box, self._orders[field])))
            offset += _lines_bytes(spec, box)
        return tuple(views)


def _lines_bytes(spec: Spec, box: Box) -> int:
    """Bytes of a box in a message, up to the next cache line."""
    return -(-box_points(box) * spec.dtype.itemsize // _LINE_BYTES) * _LINE_BYTES


def _shaped(flat: npt.NDArray[Any], box: Box, order: Sequence[int]) -> npt.NDArray[Any]:
    """Contiguous elements of a box in the order of this layout map, with the field's order of dimensions."""
    shape = [0] * len(box)
    for part, rank in zip(box, order, strict=True):
        shape[rank] = part.stop - part.start
    return flat.reshape(shape).transpose(order)


def _memory_for(length_bytes: int, *, pinned: bool, shared: bool) -> npt.NDArray[np.uint8]:
    """Memory for messages; pinned where fields are on a device."""
    kind: Any = "pinned" if pinned else "shared" if shared else "host"
    memory: npt.NDArray[np.uint8] = _core.allocate((length_bytes,), "uint8", memory=kind).to_numpy()
    return memory


def _near(
    grid: Decomposition, memory: npt.NDArray[np.uint8], starts: dict[tuple[int, int], int]
) -> tuple[dict[tuple[int, int], npt.NDArray[np.uint8]], set[int]]:
    """The messages to this rank in memory of ranks of its node, by rank and tag; and the ranks that read this rank's memory.

    Collective on the node. `starts` has the places of this rank's messages in `memory`, by receiver and tag.
    """
    if grid._node is None:
        return {}, set()
    place = _core._shared_place(memory.ctypes.data)
    everyone = grid._node.allgather((grid.rank, place, starts))

    near: dict[tuple[int, int], npt.NDArray[np.uint8]] = {}

    def attach() -> None:
        for rank, theirs, to in everyone:
            tags = [tag for reader, tag in to if reader == grid.rank]
            if theirs is None or not tags:
                continue
            handle, first = theirs
            segment = _core._attach_shared(*handle).to_numpy()
            near.update({(rank, tag): segment[first + to[grid.rank, tag] :] for tag in tags})

    together(grid.comm, attach)
    return near, {rank for rank, _, _ in everyone} if place else set()
