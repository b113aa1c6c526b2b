"""A small library of its own: the last values of a signal, newest first, without copying."""

import array


class Ring:
    """Writes backwards through its memory, so that the newest value is the first element of a view."""

    def __init__(self, length: int) -> None:
        self._memory = array.array("d", bytes(8 * length))
        self._next = length

    def push(self, value: float) -> None:
        """Takes one more value; a full ring raises IndexError."""
        if self._next == 0:
            raise IndexError("the ring is full; make a longer one")
        self._next -= 1
        self._memory[self._next] = value

    def newest_first(self) -> memoryview:
        """The values, the newest one first; it shares the ring's memory."""
        return memoryview(self._memory)[self._next :]


def values(signal: object) -> memoryview:
    """A view of anything that exports one-dimensional doubles; raises TypeError for everything else."""
    view = memoryview(signal)
    if view.format.lstrip("@") != "d" or view.ndim != 1:
        raise TypeError(f"a signal is 1-d doubles, not {view.ndim}-d {view.format!r}")
    return view
