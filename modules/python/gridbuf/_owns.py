"""Whether the memory of an array is gridbuf's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core


def owner_of(array: Any) -> Any:
    """What has the memory of an array or a view: a Buffer, an ndarray, or another object; None without an array."""
    found = array
    while True:
        if isinstance(found, _core.Buffer):
            # A Buffer has no plan if gridbuf did not allocate for it.
            keeper = found.base if found.base is not None else _core._memory_keeper(found)
        elif isinstance(found, np.ndarray):
            keeper = found.base
        elif isinstance(found, memoryview):
            keeper = found.obj
        elif isinstance(getattr(found, "ndarray", None), np.ndarray):  # a field of gt4py.next
            keeper = found.ndarray
        else:
            keeper = None
        if keeper is None:
            return found
        found = keeper


def offers_memory(source: object, names: Sequence[str]) -> bool:
    """Whether the host can take a view of the object's memory, by an attribute with one of these names or as a buffer.

    BufferError for a buffer that breaks the protocol: NumPy must not read it.
    """
    if any(hasattr(source, name) for name in names):
        return True
    try:
        _core._as_memoryview(source).release()
    except TypeError:
        return False
    return True


def owns(array: object) -> bool:
    """Return whether gridbuf allocated the memory of an array.

    Parameters
    ----------
    array : object
        An ndarray, a Buffer, a memoryview, a field of `gt4py.next`, or anything else.

    Returns
    -------
    bool
        True for arrays of gridbuf, for arrays that NumPy made with
        `gridbuf.memory.numpy_allocator`, and for views of them. False for memory of another
        library, for CuPy's arrays, whose memory is from CuPy's allocator, and for objects that are
        not arrays.

    Notes
    -----
    NumPy's views name what they are a view of, and a Buffer of `as_buffer` names the array that it
    was made from. A storage does not: for a storage, and for views of it, the answer is False.
    Rules: docs/spec.md 12.94.

    Examples
    --------
    >>> import gridbuf
    >>> import numpy
    >>> gridbuf.owns(gridbuf.zeros((3, 4))[1:]), gridbuf.owns(numpy.zeros((3, 4)))
    (True, False)
    """
    owner = owner_of(array)
    if isinstance(owner, _core.Buffer):
        return owner.plan is not None
    return _core._numpy_block_info(owner) is not None
