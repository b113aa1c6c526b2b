"""Memory for the temporaries of compiled programs, which the caller owns."""

from __future__ import annotations

import operator
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, SupportsIndex

from .. import _core

_DEVICE_ALIGNMENT_BYTES = 256
alive: weakref.WeakSet[Workspace] = weakref.WeakSet()


class Workspace:
    """Memory for temporaries: one address, and on the host pages that are committed when they are touched.

    A program that places its own temporaries is given the whole of it: GT4Py's DaCe programs in the mode EXTERNAL
    (`gridbuf.gt4py.next.workspace`). Programs one after another use the same memory.

    Parameters
    ----------
    limit : int, optional
        Bytes. On the host only addresses are reserved. Default: the memory of the machine; on a device it has to be passed, because
        it is allocated.
    device : {None, "gpu"}, optional
        Where the memory is.

    Attributes
    ----------
    limit : int
        Bytes that programs may use.
    peak : int
        The most bytes that a program needed.

    Raises
    ------
    TypeError, ValueError
        `limit` is not an integer, or out of bounds.
    MemoryError, DeviceUnavailableError
        There is not so much memory, or no device.

    Notes
    -----
    Rules: docs/spec.md 2.36 and 2.37.

    Examples
    --------
    >>> import gridbuf
    >>> import numpy
    >>> space = gridbuf.memory.Workspace(2**30)
    >>> bytes_of_it = numpy.asarray(space)
    >>> bytes_of_it[: 2**20] = 1
    >>> space.committed < 2**24
    True
    >>> with space.taken_by("a program"):
    ...     space.need(2**20)
    >>> space.peak
    1048576
    """

    def __init__(
        self, limit: SupportsIndex | None = None, *, device: Literal["gpu"] | None = None
    ) -> None:
        if limit is None:
            if device is not None:
                raise ValueError(
                    f"limit is None, but must be a number of bytes with device={device!r}; pass the size of the largest program"
                )
            limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._memory: Any = (
            _core._Workspace(limit)
            if device is None
            else _core.allocate(
                (limit,), "uint8", device=device, alignment_size=_DEVICE_ALIGNMENT_BYTES
            )
        )
        self.limit, self.device, self.peak = operator.index(limit), device, 0
        self._user = ""
        self._lock = threading.Lock()  # locked while a user has the memory
        self._streams: dict[int, Workspace] = {}
        alive.add(self)

    def __repr__(self) -> str:
        where = "" if self.device is None else f", device={self.device!r}"
        return f"Workspace({self.limit}{where}): {self.peak} bytes in use at most"

    def __reduce__(self) -> Any:
        raise TypeError("a Workspace is memory of this process; make another one there")

    @property
    def nbytes(self) -> int:
        """`limit`. Who compares it with what a program needs is heard, as by `need`."""
        return _Bytes(self)

    @property
    def committed(self) -> int:
        """Bytes of memory that it takes now: of a device all, of the host the pages that were touched."""
        return self.limit if self.device else self._memory.committed

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """All bytes, on the host; AttributeError on a device."""
        if self.device:
            raise AttributeError("__array_interface__: the memory is on a device")
        data = (self._memory.address, False)
        return {"shape": (self.limit,), "typestr": "|u1", "data": data, "version": 3}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """All bytes, on a device; AttributeError on the host."""
        if not self.device:
            raise AttributeError("__cuda_array_interface__: the memory is on the host")
        return self._memory.__cuda_array_interface__  # type: ignore[no-any-return]

    def need(self, nbytes: SupportsIndex) -> None:
        """Note that a program needs so many bytes.

        Parameters
        ----------
        nbytes : int
            Bytes from the start on.

        Raises
        ------
        MemoryError
            They are more than `limit`.
        ValueError
            They are negative.
        """
        needed = operator.index(nbytes)
        if needed < 0:
            raise ValueError(f"nbytes is {needed}, but must be 0 or more; pass a number of bytes")
        if needed > self.limit:
            raise MemoryError(
                f"a program needs {needed} bytes, but the workspace has {self.limit}; give it a larger limit"
            )
        self.peak = max(self.peak, needed)

    @contextmanager
    def taken_by(self, user: str) -> Iterator[None]:
        """Take all of it while the `with` block runs.

        Parameters
        ----------
        user : str
            A name for messages.

        Yields
        ------
        None

        Raises
        ------
        ValueError
            Another user has it; the message has both names.
        """
        if not self._lock.acquire(blocking=False):
            raise ValueError(
                f"the workspace is in use by {self._user!r}, and {user!r} would overwrite it; give each stream and thread a separate workspace"
            )
        try:
            self._user = user
            if not self.device:  # in poison mode, overwrite what is left
                self._memory.pop(self._memory.push(self.peak))
            yield
        finally:
            self._lock.release()

    def per_stream(self, stream: int) -> Workspace:
        """Return the workspace of a stream. Programs of two streams may run at once.

        Parameters
        ----------
        stream : int
            A handle, or any number.

        Returns
        -------
        Workspace
            One of the same size, made at the first call.
        """
        made = self._streams.get(stream)
        if made is None:
            made = self._streams.setdefault(stream, Workspace(self.limit, device=self.device))
        return made

    def trim(self) -> int:
        """Give its pages back to the system, unless a user has them.

        Returns
        -------
        int
            Their bytes; 0 on a device, and while it is in use.
        """
        if self.device or not self._lock.acquire(blocking=False):
            return 0
        try:
            return self._memory.trim()  # type: ignore[no-any-return]
        finally:
            self._lock.release()


class _Bytes(int):
    """The size of a workspace, which hears what it is compared with."""

    _of: Workspace

    def __new__(cls, workspace: Workspace) -> _Bytes:
        made = super().__new__(cls, workspace.limit)
        made._of = workspace
        return made

    def __lt__(self, needed: int) -> bool:
        is_less = int(self) < needed
        if not is_less:
            self._of.need(needed)
        return is_less
