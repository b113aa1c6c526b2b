"""Whether the memory of an array is gridbuf's."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core

__all__ = ["buffer_of", "owns"]


def buffer_of(array: Any) -> _core.Buffer | None:
    """The Buffer of the whole allocation behind an array or a view, or None."""
    found = array
    while not isinstance(found, _core.Buffer):
        if isinstance(found, np.ndarray):
            found = found.base
        elif isinstance(found, memoryview):
            found = found.obj
        else:
            found = getattr(found, "ndarray", None)  # a field of gt4py.next
            if not isinstance(found, np.ndarray):
                return None
    return found if found.base is None else found.base


def owns(array: object) -> bool:
    """Return whether gridbuf allocated the memory of an array.

    Parameters
    ----------
    array : object
        An ndarray, a Buffer, a memoryview, a field of `gt4py.next`, or anything else.

    Returns
    -------
    bool
        True for arrays of gridbuf and for views of them. False for memory of another library, for
        CuPy's arrays, whose memory is from CuPy's allocator, for arrays that NumPy made with
        `gridbuf.memory.numpy_allocator`, and for objects that are not arrays.

    Notes
    -----
    NumPy's views name what they are a view of. A storage, and a Buffer of `as_buffer`, do not: for
    these, and for views of them, the answer is False. Rules: docs/spec.md 12.94.

    Examples
    --------
    >>> import gridbuf
    >>> import numpy
    >>> gridbuf.owns(gridbuf.zeros((3, 4))[1:]), gridbuf.owns(numpy.zeros((3, 4)))
    (True, False)
    """
    buffer = buffer_of(array)
    # A Buffer has no plan if gridbuf did not allocate for it.
    return buffer is not None and buffer.plan is not None
