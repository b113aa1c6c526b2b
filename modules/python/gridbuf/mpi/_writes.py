"""What was written to the fields of an exchange since it last sent them: one `Track` per field, found again at each call.

A place among an exchange's arguments may be taken by several fields in turn (`u, v = v, u`). Each has a track with a record of
what was written where something goes to a neighbour or comes from one. A track says what this rank still owes its neighbours,
and what of its own halo is not what they last sent. What it owes is crossed out when it is on its way and not before, so that
an exchange that fails forgets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from ..storage import Storage
from ._fields import Box, Spec
from ._packed import lines_bytes

__all__ = ["MOST_BOXES", "MOST_TRACKS", "Boxes", "Track", "Tracks"]

MOST_TRACKS = 4
"""Fields in turn at one place of the arguments; one more is sent whole, and the one that was used longest ago forgotten."""

MOST_BOXES = 16
"""Boxes within one strip; of more, as failures may add them up, the whole strip is sent."""

Boxes = tuple[Box, ...]


class Track:
    """What is known of one field at one place: for each strip, the boxes that are owed."""

    def __init__(
        self, field: Storage, spec: Spec, strips: Sequence[Box], number: int, presume: bool
    ) -> None:
        self.number = number
        """Of no other track of this place."""
        self.record = _core._record_writes(field, strips, presume)
        self.owed: list[Boxes] = [()] * len(strips)
        self.filled: dict[int, tuple[int, int]] = {}
        """What the halo was last filled from, by strip: the number of a neighbour's field, and the version of its copy."""
        self.exchanged = 0
        """The number of the exchange that it last took part in; 0 for none."""
        self.used = 0
        self._spec, self._strips = spec, strips

    def look(self) -> None:
        """Adds what was written since the last look to what is owed."""
        for place, boxes in enumerate(self.record.take()):
            if boxes:
                self.owe(place, boxes)

    def owe(self, place: int, boxes: Boxes) -> None:
        """Adds boxes to what is owed of a strip."""
        owed, strip = self.owed[place] + boxes, self._strips[place]
        # Boxes that take as much room in a message as the strip are no gain.
        length_bytes = sum(lines_bytes(self._spec, box) for box in owed)
        is_whole = len(owed) > MOST_BOXES or length_bytes >= lines_bytes(self._spec, strip)
        self.owed[place] = (strip,) if is_whole else owed

    def settle(self, exchange: int) -> None:
        """All that was owed has been exchanged."""
        self.owed = [()] * len(self.owed)
        self.exchanged = exchange


class Tracks:
    """The tracks of one place among the arguments. `strips` are boxes of every field that takes it."""

    def __init__(self, spec: Spec, strips: Sequence[Box], presume: bool) -> None:
        self._spec, self._strips, self._presume = spec, tuple(strips), presume
        self._tracks: list[Track] = []
        self._clock = 0

    def of(self, field: Storage) -> Track:
        """The field's track, after a look at what was written; a new one owes everything."""
        track = next((t for t in self._tracks if t.record.shows(field)), None) or self._new(field)
        self._clock += 1
        track.used = self._clock
        track.look()
        return track

    def _new(self, field: Storage) -> Track:
        # The number of one whose field is gone is free; else it is that of the one used longest ago.
        gone = [t for t in self._tracks if t.record.expired]
        if not gone and len(self._tracks) == MOST_TRACKS:
            gone = [min(self._tracks, key=lambda t: t.used)]
        for track in gone:
            self._tracks.remove(track)
        taken = {t.number for t in self._tracks}
        number = next(n for n in range(MOST_TRACKS) if n not in taken)
        track = Track(field, self._spec, self._strips, number, self._presume)
        self._tracks.append(track)
        return track
