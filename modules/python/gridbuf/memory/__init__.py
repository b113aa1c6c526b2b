"""Host memory: bytes in use, cached bytes, and the settings.

Arrays below 2 MiB come from the C library. Longer ones have private pages: transparent huge pages where the system allows them. The pages of a
freed array are kept for a later array of about that length. Several threads touch the pages of new zeros. The starts of arrays are spread over
the cache sets. This module shows and sets that. You do not have to call it.

`numpy_allocator` gives the arrays that NumPy makes the same memory.

Variables have the same effect at the start of the process: `GRIDBUF_CACHE_LIMIT_BYTES`, `GRIDBUF_HUGE_PAGES`, `GRIDBUF_POISON` (0 or 1), and
`GRIDBUF_NUMPY_ALLOCATOR` (0 or 1; 1 installs `numpy_allocator()`). `GRIDBUF_NUM_THREADS` sets the number of threads, and `GRIDBUF_SIMD` the instruction set with which
elements are moved.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, SupportsIndex, TypedDict, cast

import numpy as np

from .. import _core
from .._owns import offers_memory, owner_of
from ._numpy import numpy_allocator
from ._report import Part, Report, report
from ._workspace import Workspace

__all__ = [
    "AllocationInfo",
    "Options",
    "Part",
    "Report",
    "Statistics",
    "Workspace",
    "alloc_info",
    "configure",
    "get_num_threads",
    "get_simd",
    "numpy_allocator",
    "options",
    "report",
    "set_num_threads",
    "set_simd",
    "statistics",
    "supported_simd",
    "trim",
]


def __dir__() -> list[str]:
    return __all__


class Statistics(TypedDict):
    """Numbers of host blocks of 2 MiB and more; sizes are in bytes, with all that placement
    costs.

    Attributes
    ----------
    live_blocks, live_bytes : int
        Blocks in use, and their bytes.
    peak_live_bytes : int
        The most bytes that were in use.
    cached_blocks, cached_bytes : int
        Freed blocks that are kept for the next arrays, and their bytes.
    cache_limit_bytes : int
        How many bytes are kept at most now.
    hits, misses : int
        How often the cache had a block, and how often not.
    refusals : int
        How often there was not enough memory.
    """

    live_blocks: int
    live_bytes: int
    peak_live_bytes: int
    cached_blocks: int
    cached_bytes: int
    cache_limit_bytes: int
    hits: int
    misses: int
    refusals: int


class Options(TypedDict):
    """The settings in force, as `configure` takes them.

    Attributes
    ----------
    cache_limit_bytes : int or "auto"
        How many bytes of freed memory are kept.
    limit_bytes : int or None
        How many bytes may be in use and kept together; None means no limit.
    huge_pages : {"auto", "never"}
        Whether large blocks use transparent huge pages.
    poison : bool
        Whether poison mode is on.
    """

    cache_limit_bytes: int | Literal["auto"]
    limit_bytes: int | None
    huge_pages: Literal["auto", "never"]
    poison: bool


class AllocationInfo(TypedDict):
    """Where the memory of an array is and how it was allocated; None means that gridbuf does not
    know.

    Attributes
    ----------
    resource : str or None
        "host", "pinned", "managed" or "device"; None for memory that is not gridbuf's.
    device : str or None
        "host", "cuda:0", and so on; None for memory that is not gridbuf's.
    pages : str or None
        "huge" or "small" for private pages ("huge": huge pages were requested), "shared" for a block of
        the C library.
    from_cache : bool or None
        Whether another array used the pages before.
    stagger_bytes : int or None
        How far the start was moved, in bytes, to spread starts over cache sets.
    address : int
        Address of element (0, ..., 0) of the whole allocation; of the lowest element for memory
        that is not gridbuf's.
    total_bytes : int
        Bytes of the whole allocation with padding, or of the span of the elements.
    allocation_bytes : int or None
        Bytes that it costs, with alignment, stagger and the rest of the last page.
    alignment_size, aligned_index : int and tuple of int, or None
        The request: bytes, and an index in elements.
    resident_bytes, huge_page_bytes : int or None
        Bytes in memory now, and bytes on transparent huge pages. It is an upper bound where blocks
        share a mapping. None for memory that the host cannot read, or where the kernel does not
        tell.
    note : str
        What is not known, and why; "" if all is known.
    """

    resource: str | None
    device: str | None
    pages: str | None
    from_cache: bool | None
    stagger_bytes: int | None
    address: int
    total_bytes: int
    allocation_bytes: int | None
    alignment_size: int | None
    aligned_index: tuple[int, ...] | None
    resident_bytes: int | None
    huge_page_bytes: int | None
    note: str


class _Keep:
    def __repr__(self) -> str:
        return "<unchanged>"


_KEEP: Final = _Keep()


# ---- Figures. ----


def statistics() -> Statistics:
    """Return how much host memory is in use and kept, the peak, and how often the cache helped.

    Returns
    -------
    Statistics
        Numbers of blocks of 2 MiB and more. Smaller blocks are the C library's and are not counted.

    Notes
    -----
    Rules: docs/spec.md 2.24.

    Examples
    --------
    >>> import gridbuf
    >>> before = gridbuf.memory.statistics()["live_blocks"]
    >>> array = gridbuf.zeros((1024, 1024))
    >>> gridbuf.memory.statistics()["live_blocks"] - before
    1
    """
    return cast(Statistics, _core._memory_statistics())


def trim(keep_bytes: SupportsIndex = 0) -> int:
    """Give kept memory back to the system.

    Parameters
    ----------
    keep_bytes : int, default 0
        How many bytes to keep at most.

    Returns
    -------
    int
        How many bytes were given back.

    Raises
    ------
    TypeError
        `keep_bytes` is not an integer.
    ValueError
        `keep_bytes` is negative.

    Notes
    -----
    gridbuf does so when there is not enough memory. Rules: docs/spec.md 2.21 and 2.24.

    Examples
    --------
    >>> import gridbuf
    >>> gridbuf.memory.trim() >= 0
    True
    """
    return _core._memory_trim(keep_bytes)


def _foreign_facts(array: Any) -> dict[str, Any]:
    offers = False
    with suppress(BufferError):
        offers = offers_memory(array, ("__array_interface__",))
    if not offers:
        raise TypeError(
            f"array is a {type(array).__name__}, but must be an array or a gridbuf.Buffer;"
            " pass one whose memory NumPy can see"
        )
    view = array if isinstance(array, np.ndarray) else _core._as_ndarray(array)
    low, high = np.lib.array_utils.byte_bounds(view)
    return dict.fromkeys(AllocationInfo.__annotations__) | {
        "host_readable": True,
        "address": low,
        "total_bytes": high - low,
        "note": "not gridbuf's memory: its allocator is not known",
    }


def alloc_info(array: Any) -> AllocationInfo:
    """Return where the memory of an array is and how it was allocated (docs/spec.md 2.25).

    Parameters
    ----------
    array : array_like
        A plain array of gridbuf, a Buffer, an array that NumPy made with `numpy_allocator`, or a view
        of one of them. For any other array whose memory NumPy can see, only the pages are known.

    Returns
    -------
    AllocationInfo
        A dict.

    Raises
    ------
    TypeError
        `array` is not an array.

    Examples
    --------
    >>> import gridbuf
    >>> info = gridbuf.alloc_info(gridbuf.zeros((512, 1024), alignment_size=64))
    >>> info["resource"], info["total_bytes"]
    ('host', 4194304)
    """
    owner = owner_of(array)
    is_buffer = isinstance(owner, _core.Buffer)
    found = _core._block_info(owner) if is_buffer else _core._numpy_block_info(owner)
    unknown = {"resident_bytes": None, "huge_page_bytes": None, "note": ""}
    facts = _foreign_facts(array) if found is None else {**found, **unknown}
    if not facts.pop("host_readable"):
        facts["note"] = "memory of a device: the host's kernel knows nothing of its pages"
    elif (pages := _core._memory_mapped_pages(facts["address"], facts["total_bytes"])) is not None:
        facts["resident_bytes"], facts["huge_page_bytes"] = pages
    elif not facts["note"]:
        facts["note"] = "the kernel does not tell which pages are in memory"
    return cast(AllocationInfo, facts)


# ---- Settings. ----


def options() -> Options:
    """Return the settings in force (docs/spec.md 2.24).

    Returns
    -------
    Options
        What `configure` takes.
    """
    found = _core._memory_options()
    if found["cache_limit_bytes"] is None:
        found["cache_limit_bytes"] = "auto"
    return cast(Options, found)


def configure(
    *,
    cache_limit_bytes: SupportsIndex | Literal["auto"] | _Keep = _KEEP,
    limit_bytes: SupportsIndex | None | _Keep = _KEEP,
    huge_pages: Literal["auto", "never"] | _Keep = _KEEP,
    poison: bool | _Keep = _KEEP,
) -> None:
    """Set how host memory of 2 MiB and more is handled; what you do not pass stays.

    Parameters
    ----------
    cache_limit_bytes : int or "auto", optional
        How many bytes of freed memory are kept for the next arrays. 0 keeps nothing.
        "auto" follows the program: memory in use and kept memory together are at most
        the peak of the memory in use in the last seconds. A third of that peak is kept, and more if
        the program took as much again after it had freed it. "auto" is also at most a quarter of
        the memory that could be committed (of the system or the tightest cgroup) when an array last
        got new pages.
    limit_bytes : int or None, optional
        How many bytes may be in use and kept together. Beyond it allocation is a MemoryError. None
        means no limit.
    huge_pages : {"auto", "never"}, optional
        "auto" uses transparent huge pages where the system's setting allows them, "never" small
        pages.
    poison : bool, optional
        For tests. Fresh memory holds bytes of 0xCB. A use after free of 2 MiB and more is a
        segmentation fault. With AddressSanitizer, touching the padding between rows ends the
        process.

    Raises
    ------
    TypeError
        A value has a wrong kind.
    ValueError
        A value is out of bounds.

    Notes
    -----
    After an error nothing has changed. Rules: docs/spec.md 2.20, 2.24 and 2.27.
    """
    if isinstance(cache_limit_bytes, str) and cache_limit_bytes != "auto":
        raise ValueError(
            f"cache_limit_bytes is {cache_limit_bytes!r}, but must be a number of bytes or 'auto';"
            " pass 0 to keep nothing"
        )
    given: dict[str, Any] = {
        "cache_limit_bytes": None if cache_limit_bytes == "auto" else cache_limit_bytes,
        "limit_bytes": limit_bytes,
        "huge_pages": huge_pages,
        "poison": poison,
    }
    kept = _core._memory_options()
    _core._memory_configure(
        *(kept[name] if value is _KEEP else value for name, value in given.items())
    )


def get_num_threads() -> int:
    """Return how many threads large allocations, fills and copies may use (docs/spec.md 2.26).

    Returns
    -------
    int
        What `set_num_threads` set; else the variable GRIDBUF_NUM_THREADS; else the processors that
        this process may use (its affinity and the quotas of its cgroups). The caller's thread
        counts.
    """
    return _core._memory_threads()[0]


def set_num_threads(n: SupportsIndex) -> None:
    """Set how many threads large allocations, fills and copies may use, in the whole process.

    Parameters
    ----------
    n : int
        From 1 to 256. 1 does all work on the caller's thread.

    Raises
    ------
    TypeError
        `n` is not an integer.
    ValueError
        `n` is out of bounds.

    Notes
    -----
    Rules: docs/spec.md 2.26.
    """
    _core._memory_set_threads(n)


def get_simd() -> str:
    """Return the instruction set with which elements are copied and filled (docs/spec.md 5.66).

    Returns
    -------
    str
        "portable", "avx2", "avx512" or "neon": what `set_simd` set; else the variable
        GRIDBUF_SIMD; else the best of the processor. Results do not depend on it.
    """
    return _core._memory_simd()[0]


def set_simd(name: str) -> None:
    """Set the instruction set for copies and fills, in the whole process.

    Parameters
    ----------
    name : {"portable", "avx2", "avx512", "neon"}
        One of `supported_simd()`.

    Raises
    ------
    TypeError
        `name` is not a str.
    ValueError
        The processor does not have it.

    Notes
    -----
    Use it to find out whether an instruction set causes a failure. Rules: docs/spec.md 5.66.
    """
    _core._memory_set_simd(name)


def supported_simd() -> tuple[str, ...]:
    """Return the instruction sets that `set_simd` takes on this processor (docs/spec.md 5.66).

    Returns
    -------
    tuple of str
        "portable" first, the widest last.
    """
    return _core._memory_simd()[1]


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("it must be 0 or 1")
    return text == "1"


def _install_numpy_allocator(text: str) -> None:
    if _flag(text):
        numpy_allocator().install()


def _check_simd(text: str) -> None:
    """The core has read the variable, and left one that it does not know."""
    if text not in supported_simd():
        known = ", ".join(supported_simd())
        raise ValueError(f"it must be one of {known}, which this processor has")


_VARIABLES: dict[str, Callable[[str], object]] = {
    "CACHE_LIMIT_BYTES": lambda text: configure(
        cache_limit_bytes="auto" if text == "auto" else int(text)
    ),
    "HUGE_PAGES": lambda text: configure(huge_pages=cast(Any, text)),
    "POISON": lambda text: configure(poison=_flag(text)),
    "NUMPY_ALLOCATOR": _install_numpy_allocator,
    "SIMD": _check_simd,
}

# A variable that cannot be applied is a warning, as there is no call to fail yet.
for _name, _apply in _VARIABLES.items():
    if _text := os.environ.get(f"GRIDBUF_{_name}", ""):
        try:
            _apply(_text)
        except ValueError as _error:
            warnings.warn(
                f"GRIDBUF_{_name} is {_text!r} and was ignored: {_error}",
                RuntimeWarning,
                stacklevel=2,
            )
