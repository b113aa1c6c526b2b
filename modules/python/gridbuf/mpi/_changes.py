"""The engine that sends what was written and nothing else, with mpi4py alone.

A message holds, of each field's strip for this neighbour, the boxes that were written since this exchange last sent them. The
receiver keeps a copy of each strip as its sender has it, applies the boxes to that, and fills its halo from it. So whatever it did
to its halo itself, and whichever storage it passes at this place now, the halo gets what sending everything would give; and
no rank asks another one first. Who passes several storages in turn numbers them (`Track.number`), and the receiver has a copy
for each number.

    message = header, boxes; each box from a new cache line on
    header = per strip: number, count of boxes (-1: the whole strip), then start and stop within it along each dimension; all are
             integers of 64 bits

A message without a byte says that nothing was written, of the same storages as last time; one of a single byte that its sender
failed. What a rank owes is crossed out when its message is on its way, and a receiver that fails applies what came all the same:
so after a failure nothing is missing, and nothing is sent twice that arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ._failures import HaloExchangeError
from ._fields import Box, Spec
from ._libraries import mpi_module
from ._packed import LINE_BYTES, MOST_OFFSETS, lines_bytes, memory_for, shaped
from ._regions import Neighbour, Piece, box_points
from ._statistics import Counters
from ._writes import MOST_BOXES, Boxes, Track, Tracks

if TYPE_CHECKING:
    from ._decomposition import Decomposition

__all__ = ["ChangesEngine"]

_WHOLE = -1
_FAILED_BYTES = 1
_WORD_BYTES = 8


class _Strip(NamedTuple):
    """A field's box in the messages of one neighbour in one direction; `place` is its place among the strips of the field."""

    field: int
    box: Box
    place: int
    spec: Spec
    order: tuple[int, ...]

    def lines_bytes(self, box: Box) -> int:
        return lines_bytes(self.spec, box)


class _Copy:
    """A strip as its sender has it."""

    def __init__(self, strip: _Strip) -> None:
        flat = np.zeros(box_points(strip.box), strip.spec.dtype)
        self.array = shaped(flat, strip.box, strip.order)
        self.version = 0


class _Came(NamedTuple):
    """What a message says of one strip: whose copy it is about, which version that had, which boxes are new."""

    strip: _Strip
    number: int
    copy: _Copy
    before: int
    boxes: Boxes


class _Sender:
    """The messages to one neighbour."""

    def __init__(self, neighbour: Neighbour, strips: Sequence[_Strip], *, pinned: bool) -> None:
        self.neighbour, self.strips = neighbour, strips
        self.block = memory_for(_most_bytes(strips), pinned=pinned)
        self._numbers: list[int] | None = None

    def pack(self, tracks: Sequence[Track], memory: Sequence[Any]) -> tuple[int, int]:
        """Writes the message; its bytes, and those of its elements."""
        mine = [tracks[strip.field] for strip in self.strips]
        numbers = [track.number for track in mine]
        owed = [t.owed[s.place] for t, s in zip(mine, self.strips, strict=True)]
        if numbers == self._numbers and not any(owed):
            return 0, 0
        words: list[int] = []
        for strip, number, boxes in zip(self.strips, numbers, owed, strict=True):
            words += [number, *_words(strip, boxes)]
        offset = -(-len(words) * _WORD_BYTES // LINE_BYTES) * LINE_BYTES
        self.block[: len(words) * _WORD_BYTES].view(np.int64)[:] = words
        elements_bytes = 0
        for strip, boxes in zip(self.strips, owed, strict=True):
            for box in boxes:
                view, used = _view(self.block[offset:], strip, box)
                _core.copyto(view, memory[strip.field][box])
                offset += used
                elements_bytes += view.nbytes
        return offset, elements_bytes

    def cross_out(self, tracks: Sequence[Track]) -> None:
        """The message is on its way."""
        self._numbers = [tracks[strip.field].number for strip in self.strips]
        for strip in self.strips:
            tracks[strip.field].owed[strip.place] = ()


class _Receiver:
    """The messages from one neighbour, and the copies of its strips."""

    def __init__(self, neighbour: Neighbour, strips: Sequence[_Strip], *, pinned: bool) -> None:
        self.neighbour, self.strips = neighbour, strips
        self.block = memory_for(_most_bytes(strips), pinned=pinned)
        self._copies: list[dict[int, _Copy]] = [{} for _ in strips]
        self._numbers: list[int] = []
        self._header_bytes = 0

    def apply(self, length_bytes: int) -> list[_Came] | None:
        """Brings the copies up to date with the message; None if its sender failed."""
        if length_bytes == _FAILED_BYTES:
            return None
        said: list[tuple[int, Boxes]] = (
            self._read_header() if length_bytes else [(number, ()) for number in self._numbers]
        )
        self._numbers = [number for number, _ in said]
        came = []
        offset = self._header_bytes if length_bytes else 0
        for strip, copies, (number, boxes) in zip(self.strips, self._copies, said, strict=True):
            copy = copies.get(number) or copies.setdefault(number, _Copy(strip))
            came.append(_Came(strip, number, copy, copy.version, boxes))
            for box in boxes:
                view, used = _view(self.block[offset:], strip, box)
                _core.copyto(copy.array[_within(box, strip.box)], view)
                offset += used
            copy.version += bool(boxes)
        return came

    def _read_header(self) -> list[tuple[int, Boxes]]:
        words = self.block[: self.block.size // _WORD_BYTES * _WORD_BYTES].view(np.int64)
        said: list[tuple[int, Boxes]] = []
        at = 0
        for strip in self.strips:
            number, count = (int(word) for word in words[at : at + 2])
            at += 2
            if count == _WHOLE:
                said.append((number, (strip.box,)))
                continue
            ndim = len(strip.box)
            bounds = words[at : at + count * 2 * ndim].reshape(count, ndim, 2).tolist()
            at += count * 2 * ndim
            within = (tuple(slice(*pair) for pair in box) for box in bounds)
            said.append((number, tuple(_beyond(box, strip.box) for box in within)))
        self._header_bytes = -(-at * _WORD_BYTES // LINE_BYTES) * LINE_BYTES
        return said


class ChangesEngine:
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
        presume: bool,
        counters: Counters,
    ) -> None:
        """Plans the messages. `orders` are the layouts of rank 0, by which the boxes lie in the messages."""
        MPI = mpi_module()  # noqa: N806 (its name)
        self._requests: list[Any] = []
        self._is_finalized: Callable[[], bool] = MPI.Is_finalized
        self._wait_all: Callable[..., Any] = MPI.Request.Waitall
        self._start_all: Callable[..., Any] = MPI.Prequest.Startall
        self._grid, self._bytes, self._counters = grid, MPI.BYTE, counters
        strips: list[list[Box]] = [[] for _ in specs]

        def placed(pieces: Sequence[Piece]) -> list[_Strip]:
            made = []
            for field, box in pieces:
                made.append(_Strip(field, box, len(strips[field]), specs[field], orders[field]))
                strips[field].append(box)
            return made

        self._senders, self._receivers = [], []
        self._own: list[tuple[_Strip, _Strip]] = []
        own = {n.received_as: placed(n.receives) for n in neighbours if n.rank == grid.rank}
        for neighbour in neighbours:
            if neighbour.rank == grid.rank:
                # What is sent to the neighbour at an offset arrives, there, from the opposite one.
                arrives = {strip.field: strip for strip in own.get(neighbour.sent_as, ())}
                self._own += [(s, arrives[s.field]) for s in placed(neighbour.sends)]
                continue
            if neighbour.sends:
                self._senders.append(_Sender(neighbour, placed(neighbour.sends), pinned=pinned))
            if neighbour.receives:
                self._receivers.append(
                    _Receiver(neighbour, placed(neighbour.receives), pinned=pinned)
                )
        self._tracks = [
            Tracks(spec, boxes, presume) for spec, boxes in zip(specs, strips, strict=True)
        ]
        most = grid.comm.Get_attr(MPI.TAG_UB) // MOST_OFFSETS
        self._first_tag = grid._next_exchange() % most * MOST_OFFSETS
        self._requests = [
            grid.comm.Recv_init(
                [r.block, self._bytes], r.neighbour.rank, self._first_tag + r.neighbour.received_as
            )
            for r in self._receivers
        ]
        self._statuses = [MPI.Status() for _ in self._receivers]
        # A message could not be applied: what the copies hold is not what their senders think.
        self._broken: BaseException | None = None

    def start(self, fields: Callable[[], Sequence[Any]]) -> Callable[[Sequence[Any]], None]:
        """Packs and sends; what it returns waits and fills. `fields` may raise: then the neighbours learn of it."""
        self._start_all(self._requests)
        sends: list[Any] = []
        try:
            if self._broken is not None:
                raise RuntimeError(
                    "an earlier message could not be applied, so that this exchange does not know what its neighbours have; "
                    "make another HaloExchange"
                ) from self._broken
            given = fields()
            tracks = [tracks.of(field) for tracks, field in zip(self._tracks, given, strict=True)]
            memory = [field._own_memory() for field in given]
            for sender in self._senders:
                length_bytes, elements_bytes = sender.pack(tracks, memory)
                sends.append(self._send(sender, length_bytes))
                sender.cross_out(tracks)
                self._counters.sent(elements_bytes)
            for sent, arrives in self._own:
                _copy_own(sent, arrives, tracks[sent.field], given[sent.field], memory[sent.field])
            self._counters.started()
        except BaseException:
            sends += [self._send(sender, _FAILED_BYTES) for sender in self._senders[len(sends) :]]
            self._applied(sends)
            raise
        return lambda again: self._finish(again, tracks, sends)

    def _send(self, sender: _Sender, length_bytes: int) -> Any:
        return self._grid.comm.Isend(
            [sender.block[:length_bytes], self._bytes],
            sender.neighbour.rank,
            self._first_tag + sender.neighbour.sent_as,
        )

    def _applied(self, sends: list[Any]) -> list[list[_Came] | None]:
        """Waits for all messages, and brings all copies up to date, whatever becomes of this exchange."""
        self._wait_all(self._requests, self._statuses)
        self._wait_all(sends)
        if self._broken is not None:
            return []
        try:
            return [
                receiver.apply(status.Get_count(self._bytes))
                for receiver, status in zip(self._receivers, self._statuses, strict=True)
            ]
        except BaseException as error:
            self._broken = error
            raise

    def _finish(self, fields: Sequence[Any], tracks: Sequence[Track], sends: list[Any]) -> None:
        arrived = self._applied(sends)
        # Reached again: where the host works on memory of a device, it waits for what the device did meanwhile.
        memory = [field._own_memory() for field in fields]
        failed = []
        for receiver, came in zip(self._receivers, arrived, strict=True):
            if came is None:
                failed.append(receiver.neighbour.rank)
                continue
            for strip in came:
                place = strip.strip.field
                _fill(strip, tracks[place], fields[place], memory[place])
        if failed:
            raise HaloExchangeError(
                f"rank {sorted(set(failed))} failed before it sent; the halos on its side are what they were on rank "
                f"{self._grid.rank}"
            )

    def close(self) -> None:
        """Gives the requests back to MPI, and lets the records go."""
        for request in self._requests:
            request.Free()
        self._requests, self._tracks = [], []

    def __del__(self) -> None:
        # None of the requests is active: what is under way is kept until somebody waits for it.
        if self._requests and not self._is_finalized():
            self.close()


def _fill(came: _Came, track: Track, field: Any, memory: Any) -> None:
    """Writes to the halo what it lacks: all of it, unless it was filled from the same copy before."""
    strip, copy = came.strip, came.copy
    known = track.filled.pop(strip.place, None) == (came.number, came.before)
    boxes = (*came.boxes, *track.owed[strip.place]) if known else (strip.box,)
    for box in boxes:
        _core.copyto(memory[box], copy.array[_within(box, strip.box)])
    if boxes:
        _core._note_filled(field, boxes, track.record)
    track.owed[strip.place] = ()
    track.filled[strip.place] = (came.number, copy.version)


def _copy_own(sent: _Strip, arrives: _Strip, track: Track, field: Any, memory: Any) -> None:
    """A periodic dimension with one part: this rank is its own neighbour."""
    boxes = (
        *track.owed[sent.place],
        *(_moved(b, arrives, sent) for b in track.owed[arrives.place]),
    )
    for box in boxes:
        _core.copyto(memory[_moved(box, sent, arrives)], memory[box])
    if boxes:
        _core._note_filled(field, [_moved(box, sent, arrives) for box in boxes], track.record)
    track.owed[sent.place] = track.owed[arrives.place] = ()


def _moved(box: Box, source: _Strip, target: _Strip) -> Box:
    """A box of one strip at its place in another one of the same shape."""
    return tuple(
        slice(part.start - a.start + b.start, part.stop - a.start + b.start)
        for part, a, b in zip(box, source.box, target.box, strict=True)
    )


def _within(box: Box, strip: Box) -> Box:
    """A box of a field as one of its strip."""
    return tuple(
        slice(part.start - whole.start, part.stop - whole.start)
        for part, whole in zip(box, strip, strict=True)
    )


def _beyond(box: Box, strip: Box) -> Box:
    """A box of a strip as one of its field."""
    return tuple(
        slice(part.start + whole.start, part.stop + whole.start)
        for part, whole in zip(box, strip, strict=True)
    )


def _view(block: npt.NDArray[np.uint8], strip: _Strip, box: Box) -> tuple[npt.NDArray[Any], int]:
    """The box at the start of a block, with the field's order of dimensions, and the bytes up to the next one."""
    dtype = strip.spec.dtype
    flat = block[: box_points(box) * dtype.itemsize].view(dtype)
    return shaped(flat, box, strip.order), strip.lines_bytes(box)


def _words(strip: _Strip, boxes: Boxes) -> list[int]:
    if boxes == (strip.box,):
        return [_WHOLE]
    within = [_within(box, strip.box) for box in boxes]
    return [
        len(boxes),
        *(bound for box in within for part in box for bound in (part.start, part.stop)),
    ]


def _most_bytes(strips: Sequence[_Strip]) -> int:
    """The longest message. Boxes that would take more lines than the whole strip are never sent one by one."""
    words = sum(2 + MOST_BOXES * 2 * len(strip.box) for strip in strips)
    header = -(-words * _WORD_BYTES // LINE_BYTES) * LINE_BYTES
    return header + sum(strip.lines_bytes(strip.box) for strip in strips)
