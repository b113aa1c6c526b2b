"""A small library: the last values of a signal, newest first, without copying."""

import array


class Ring:
    """Writes backwards through its memory, so that the newest value is the first element of a view."""

    def __init__(self, length: int) -> None:
        self._memory = array.array("d", bytes(8 * length))
        self._next = length

    def push(self, value: float) -> None:
        """Appends a value. IndexError if the ring is full."""
        if self._next == 0:
            raise IndexError("the ring is full; make a longer one")
        self._next -= 1
        self._memory[self._next] = value

    def newest_first(self) -> memoryview:
        """The values, newest first. Shares the ring's memory."""
        return memoryview(self._memory)[self._next :]


def values(signal: object) -> memoryview:
    """A view of an object that exports one-dimensional doubles. TypeError for other objects."""
    view = memoryview(signal)
    if view.format.lstrip("@") != "d" or view.ndim != 1:
        raise TypeError(f"a signal is 1-d doubles, not {view.ndim}-d {view.format!r}")
    return view
