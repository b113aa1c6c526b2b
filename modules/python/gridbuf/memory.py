"""Host memory: what is in use, what is kept, and the settings.

Arrays below 2 MiB come from the C library. Longer ones have pages of their own: transparent huge pages where the system allows them,
kept for the next array of that length when their array is freed, touched by several threads where zeros come from the kernel, and with
starts that are spread over the cache sets. This module shows and sets that. You need not call anything here.

Three variables set the same at the start of the process: `GRIDBUF_CACHE_LIMIT_BYTES`, `GRIDBUF_HUGE_PAGES`
and `GRIDBUF_POISON` (0 or 1). `GRIDBUF_NUM_THREADS` sets the number of threads, and `GRIDBUF_SIMD` the instruction set with which
elements are moved.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Final, Literal, SupportsIndex, TypedDict, cast

import numpy as np

from . import _core

__all__ = [
    "AllocationInfo",
    "Statistics",
    "alloc_info",
    "configure",
    "get_num_threads",
    "get_simd",
    "options",
    "set_num_threads",
    "set_simd",
    "statistics",
    "supported_simd",
    "trim",
]


class Statistics(TypedDict):
    """Of host blocks of 2 MiB and more; lengths are those of their pages, with all that placement costs."""

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
    """The settings in force."""

    cache_limit_bytes: int | Literal["auto"]
    limit_bytes: int | None
    huge_pages: Literal["auto", "never"]
    poison: bool


class AllocationInfo(TypedDict):
    """Where an array's memory is and how it came about; None is what gridbuf does not know.

    resource: "host", "pinned", "managed", "device"; None for memory that is not gridbuf's.
    device: "host", "cuda:0", …; None likewise.
    pages: "huge" or "small" (pages of its own; huge ones were asked for), "shared" (among the C library's blocks).
    from_cache: its pages had served another array before.
    stagger_bytes: how far its start was moved to spread starts over cache sets.
    address: of element (0, …, 0) of the whole allocation; of the lowest element for memory that is not gridbuf's.
    total_bytes: of the whole allocation, padding included, or what the elements span.
    allocation_bytes: what that costs, with alignment, stagger and the rest of the last page.
    alignment_size, aligned_index: what was asked for.
    resident_bytes, huge_page_bytes: what is in memory now, and how much of it on transparent huge pages, as the kernel
      counts it for the mappings that hold these bytes (an upper bound where blocks share a mapping). None for memory that the
      host does not read, or where the kernel does not tell.
    note: what is not known, and why; "" if all is.
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
    """How much host memory is in use and kept, the peak, and how often the cache helped.

    Counts blocks of 2 MiB and more; smaller ones are the C library's, and not counted.
    """
    return cast(Statistics, _core._memory_statistics())


def trim(keep_bytes: SupportsIndex = 0) -> int:
    """Gives kept memory back to the system until at most `keep_bytes` are left; returns how many bytes went.

    Happens by itself when memory runs short. Raises ValueError for negative numbers.
    """
    return _core._memory_trim(keep_bytes)


def _buffer_of(array: Any) -> _core.Buffer | None:
    """The Buffer that owns the memory of an array or view, or None."""
    seen = array
    while isinstance(seen, np.ndarray):
        seen = seen.base
    if isinstance(seen, memoryview):
        seen = seen.obj
    if not isinstance(seen, _core.Buffer):
        return None
    return seen if seen.base is None else seen.base


def _foreign_info(array: Any) -> AllocationInfo:
    view = array if isinstance(array, np.ndarray) else np.asarray(array)
    low, high = np.lib.array_utils.byte_bounds(view)
    return {
        "resource": None,
        "device": None,
        "pages": None,
        "from_cache": None,
        "stagger_bytes": None,
        "address": low,
        "total_bytes": high - low,
        "allocation_bytes": None,
        "alignment_size": None,
        "aligned_index": None,
        "resident_bytes": None,
        "huge_page_bytes": None,
        "note": "not gridbuf's memory: who made it, and how, is not known",
    }


def alloc_info(array: Any) -> AllocationInfo:
    """Where the memory of `array` is and how it came about.

    array: a plain array of gridbuf, a `Buffer`, a view of either; for anything else that NumPy takes without a copy, only what
    the kernel says of its pages. Raises TypeError for what is no array.

    >>> import gridbuf
    >>> info = gridbuf.alloc_info(gridbuf.zeros((512, 1024), alignment_size=64))
    >>> info["resource"], info["from_cache"], info["total_bytes"]
    ('host', False, 4194304)
    """
    buffer = _buffer_of(array)
    facts = None if buffer is None else _core._block_info(buffer)
    if facts is None:
        if not hasattr(array, "__array_interface__") and not _exports_buffer(array):
            raise TypeError(
                f"array is a {type(array).__name__}, but must be an array or a gridbuf.Buffer;"
                " pass one whose memory NumPy can see"
            )
        info = _foreign_info(array)
        readable = True
    else:
        readable = facts.pop("host_readable")
        info = cast(
            AllocationInfo, {**facts, "resident_bytes": None, "huge_page_bytes": None, "note": ""}
        )
    if not readable:
        info["note"] = "memory of a device: the host's kernel knows nothing of its pages"
    elif (found := _core._memory_mapped_pages(info["address"], info["total_bytes"])) is not None:
        info["resident_bytes"], info["huge_page_bytes"] = found
    elif not info["note"]:
        info["note"] = "the kernel does not tell which pages are in memory"
    return info


def _exports_buffer(array: Any) -> bool:
    try:
        memoryview(array).release()
    except (TypeError, BufferError):
        return False
    return True


# ---- Settings. ----


def options() -> Options:
    """The settings in force, as `configure` takes them."""
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
    """Sets how host memory of 2 MiB and more is handled; what is not given stays as it is.

    cache_limit_bytes: how many bytes of freed memory are kept for the next arrays; 0 keeps none (nor any of the few small blocks
      that a thread keeps); "auto" follows the machine: a quarter of what could be committed (the system's memory or the
      tightest cgroup's) when an array last got new pages.
    limit_bytes: of memory in use and kept together; beyond it allocation is a MemoryError. None: no limit.
    huge_pages: "auto": transparent huge pages where the system's setting allows them; "never": small pages.
    poison: fresh memory holds bytes of 0xCB, freed blocks of 2 MiB and more are taken from the process, so that a use after
      free is a segmentation fault; with AddressSanitizer, touching the padding between rows ends the process. For tests.

    Takes effect at once. Raises TypeError or ValueError, and then nothing has changed.
    """
    if isinstance(cache_limit_bytes, str) and cache_limit_bytes != "auto":
        raise ValueError(
            f"cache_limit_bytes is {cache_limit_bytes!r}, but must be a number of bytes or 'auto';"
            " pass 0 to keep nothing"
        )
    wanted = _core._memory_options()
    if not isinstance(cache_limit_bytes, _Keep):
        wanted["cache_limit_bytes"] = None if cache_limit_bytes == "auto" else cache_limit_bytes
    if not isinstance(limit_bytes, _Keep):
        wanted["limit_bytes"] = limit_bytes
    if not isinstance(huge_pages, _Keep):
        wanted["huge_pages"] = huge_pages
    if not isinstance(poison, _Keep):
        wanted["poison"] = poison
    _core._memory_configure(
        wanted["cache_limit_bytes"], wanted["limit_bytes"], wanted["huge_pages"], wanted["poison"]
    )


def get_num_threads() -> int:
    """How many threads large allocations, fills and copies may use, the caller's included.

    What `set_num_threads` set; else the variable GRIDBUF_NUM_THREADS; else the processors that this process may use (its
    affinity and the quotas of its cgroups).
    """
    return _core._memory_threads()[0]


def set_num_threads(n: SupportsIndex) -> None:
    """Sets how many threads large allocations, fills and copies may use, in the whole process.

    n: 1 to 256; 1 does all work on the calling thread. Raises ValueError for other numbers.
    """
    _core._memory_set_threads(n)


def get_simd() -> str:
    """With which instruction set elements are copied and filled: "portable", "avx2" or "avx512".

    What `set_simd` set; else the variable GRIDBUF_SIMD; else the best that the processor has. Results do not depend on it.

    >>> import gridbuf
    >>> gridbuf.memory.get_simd() in gridbuf.memory.supported_simd()
    True
    """
    return _core._memory_simd()[0]


def set_simd(name: str) -> None:
    """Sets the instruction set in the whole process, from the next copy on; to find out whether one of them is at fault.

    Raises ValueError for one that the processor lacks, TypeError for what is no str.
    """
    _core._memory_set_simd(name)


def supported_simd() -> tuple[str, ...]:
    """The instruction sets that `set_simd` takes on this processor, "portable" first, the widest last."""
    return _core._memory_simd()[1]


def _cache_limit(text: str) -> dict[str, Any]:
    return {"cache_limit_bytes": text if text == "auto" else int(text)}


def _huge_pages(text: str) -> dict[str, Any]:
    return {"huge_pages": text}


def _poison(text: str) -> dict[str, Any]:
    if text not in ("0", "1"):
        raise ValueError("it must be 0 or 1")
    return {"poison": text == "1"}


_VARIABLES = {
    "GRIDBUF_CACHE_LIMIT_BYTES": _cache_limit,
    "GRIDBUF_HUGE_PAGES": _huge_pages,
    "GRIDBUF_POISON": _poison,
}


def _configure_from_environment() -> None:
    """Applies the variables; one that cannot be applied is a warning, as nobody has called anything yet."""
    for name, read in _VARIABLES.items():
        text = os.environ.get(name, "")
        if not text:
            continue
        try:
            configure(**read(text))
        except ValueError as error:
            warnings.warn(
                f"{name} is {text!r} and was ignored: {error}", RuntimeWarning, stacklevel=2
            )
    simd = os.environ.get("GRIDBUF_SIMD", "")
    if simd and simd not in supported_simd():
        warnings.warn(
            f"GRIDBUF_SIMD is {simd!r} and was ignored: it must be one of {', '.join(supported_simd())}, which this processor has",
            RuntimeWarning,
            stacklevel=2,
        )


_configure_from_environment()
