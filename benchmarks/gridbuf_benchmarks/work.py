"""Reads what an entry produced and judges whether it is the work its case asks for."""

from __future__ import annotations

import math
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridbuf_benchmarks import memory
from gridbuf_benchmarks.case import Case, Entry, Work

__all__ = ["Done", "WrongWork", "check_work", "check_yardstick", "view_of"]

_COMPARED_WHOLE = 1 << 20
_SAMPLED = 1 << 14


class WrongWork(Exception):
    """An entry did another job than its case states, so its time would mean nothing."""


@dataclass(frozen=True)
class Done:
    """What one entry really produced, as it goes into the JSON result.

    `values_crc32` covers the elements in C order whatever the layout; None where the case leaves the
    contents undefined. `alignment_bytes` is the largest power of two (at most 4096) that divides the
    address of the case's aligned element; it differs between runs above what the library promises.
    """

    shape: tuple[int, ...]
    dtype: str
    values_crc32: str | None
    strides_bytes: tuple[int, ...]
    alignment_bytes: int

    def to_json(self) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


class _InterfaceDict:
    """Lets NumPy read a bare array-interface dict."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


class _Capsule:
    """Lets NumPy read a bare DLPack capsule of host memory."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, *, stream: None = None, **_: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def view_of(result: Any) -> npt.NDArray[Any]:
    """A NumPy view of whatever a library returned: array, tensor, buffer, memoryview, dict or capsule."""
    if isinstance(result, np.ndarray):
        return result
    if isinstance(result, dict):
        return np.asarray(_InterfaceDict(result))
    if type(result).__name__ == "PyCapsule":
        return np.from_dlpack(_Capsule(result))
    if isinstance(result, memoryview) or not hasattr(result, "__dlpack__"):
        return np.asarray(result)
    return np.from_dlpack(result)


def check_work(case: Case, entry: Entry, result: Any) -> Done:
    """Holds one result against the case's statement.

    Raises:
      WrongWork: naming case, library, property, wanted and found value.
    """
    view = view_of(result)
    work = case.work
    aligned_bytes = _alignment_bytes(view, work)
    digest, *values = _compare_values(view, work)
    for name, wanted, found, good in (
        ("shape", work.shape, view.shape, view.shape == work.shape),
        ("dtype", work.dtype, view.dtype.name, view.dtype == np.dtype(work.dtype)),
        ("values", *values),
        ("layout", work.layout, view.strides, _has_layout(view, work)),
        ("alignment", work.alignment_bytes, aligned_bytes, _is_aligned(view, work)),
        ("padding", *_compare_padding(work)),
    ):
        if not good:
            raise WrongWork(
                f"{case.id}: {entry.library} was to do other work than it did: {name} should be {wanted}, "
                f"found {found}, from `{entry.statement}`; correct the case, its times would mislead"
            )
    return Done(view.shape, view.dtype.name, digest, view.strides, aligned_bytes)


def check_yardstick(case: Case, entry: Entry, result: Any) -> Done:
    """Holds what a yardstick wrote, a pair of bytes expected and found, against each other.

    Raises:
      WrongWork: if they differ.
    """
    expected, found = result
    picks = _picks(found.shape)
    # As bytes: what was moved may be no numbers, of which none is equal to itself.
    if np.broadcast_to(expected, found.shape)[picks].tobytes() != found[picks].tobytes():
        raise WrongWork(
            f"{case.id}: {entry.library} did not move {found.nbytes} bytes as they were, from `{entry.statement}`;"
            " correct the case, its times would mislead"
        )
    digest = f"{zlib.crc32(found[picks].data):08x}"
    return Done(found.shape, found.dtype.name, digest, found.strides, 1)


def _picks(shape: tuple[int, ...]) -> Any:
    """An index of all elements; of _SAMPLED chosen at random, the first and the last among them, of large arrays.

    To compare a gigabyte element by element, across the layouts, would take longer than to measure it. What is
    wrong in more than one element of a thousand is found all the same.
    """
    total = math.prod(shape)
    if total <= _COMPARED_WHOLE:
        return ...
    some = np.random.default_rng(total).integers(0, total, _SAMPLED)
    some[:2] = 0, total - 1
    return np.unravel_index(np.sort(some), shape)


def _compare_values(view: npt.NDArray[Any], work: Work) -> tuple[str | None, str, str, bool]:
    """A checksum of the elements in C order, the value wanted, the one found, and whether all is right."""
    wanted = work.expected()
    if wanted is None or view.shape != work.shape:
        return None, "", "", True  # nothing to compare, or the shape has been reported already
    picks = _picks(view.shape)
    found = np.ascontiguousarray(view[picks])
    digest = f"{zlib.crc32(found.data):08x}"
    chosen = np.ascontiguousarray(wanted[picks]).astype(view.dtype)
    if found.tobytes() == chosen.tobytes():
        return digest, "", "", True
    wrong = found.reshape(-1).view(np.uint8) != chosen.reshape(-1).view(np.uint8)
    elements = np.flatnonzero(wrong.reshape(-1, view.itemsize).any(axis=1))
    first = int(elements[0])
    if picks is ...:
        index = tuple(int(i) for i in np.unravel_index(first, view.shape))
    else:
        index = tuple(int(axis[first]) for axis in picks)
    return (
        digest,
        f"{chosen.reshape(-1)[first]} at {index}",
        f"{found.reshape(-1)[first]} ({len(elements)} of {found.size} elements looked at differ)",
        False,
    )


def _compare_padding(work: Work) -> tuple[str, str, bool]:
    """Whether what follows the rows of a target in shared memory is as it was before."""
    target = work.target
    if target is None or target.rows == "dense" or target.step > 1 or 0 in work.shape:
        return "", "", True
    contiguous = target.layout.index(len(target.layout) - 1)
    row_bytes = work.shape[contiguous] * target.itemsize_bytes
    rows = math.prod(work.shape) // work.shape[contiguous]
    pitch_bytes = min(
        stride for dim, stride in enumerate(target.strides_bytes(work.shape)) if dim != contiguous
    )
    memory_bytes = memory.block("target", target.span_bytes(work.shape))[target.offset_bytes :]
    padded = memory_bytes[: rows * pitch_bytes].reshape(rows, pitch_bytes)
    wrong = np.flatnonzero((padded[:, row_bytes:] != memory.POISON).any(axis=1))
    if not len(wrong):
        return "", "", True
    return f"{memory.POISON:#x} behind every row", f"other bytes behind row {wrong[0]}", False


def _has_layout(view: npt.NDArray[Any], work: Work) -> bool:
    """Whether descending strides follow the layout map; extents of 1 have no say."""
    if work.layout is None:
        return True
    by_rank = sorted(range(view.ndim), key=lambda dim: work.layout[dim] if work.layout else dim)
    strides = [view.strides[dim] for dim in by_rank if view.shape[dim] > 1]
    return strides == sorted(strides, reverse=True)


def _address(view: npt.NDArray[Any], work: Work) -> int:
    index = work.aligned_index or (0,) * view.ndim
    start = int(view.__array_interface__["data"][0])
    return start + sum(i * stride for i, stride in zip(index, view.strides))


def _is_aligned(view: npt.NDArray[Any], work: Work) -> bool:
    return _address(view, work) % work.alignment_bytes == 0


def _alignment_bytes(view: npt.NDArray[Any], work: Work) -> int:
    address = _address(view, work)
    return min(4096, address & -address) if address else 4096
