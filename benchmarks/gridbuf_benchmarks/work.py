"""Reads what an entry produced and judges whether it is the work its case asks for."""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridbuf_benchmarks.case import Case, Entry, Work

__all__ = ["Done", "WrongWork", "check_work", "view_of"]


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
    for name, wanted, found, good in (
        ("shape", work.shape, view.shape, view.shape == work.shape),
        ("dtype", work.dtype, view.dtype.name, view.dtype == np.dtype(work.dtype)),
        ("values", *_compare_values(view, work)),
        ("layout", work.layout, view.strides, _has_layout(view, work)),
        ("alignment", work.alignment_bytes, aligned_bytes, _is_aligned(view, work)),
    ):
        if not good:
            raise WrongWork(
                f"{case.id}: {entry.library} was to do other work than it did: {name} should be {wanted}, "
                f"found {found}, from `{entry.statement}`; correct the case, its times would mislead"
            )
    digest = None if work.values is None else f"{zlib.crc32(np.ascontiguousarray(view).data):08x}"
    return Done(view.shape, view.dtype.name, digest, view.strides, aligned_bytes)


def _compare_values(view: npt.NDArray[Any], work: Work) -> tuple[str, str, bool]:
    wanted = work.expected()
    if wanted is None or view.shape != work.shape:
        return "", "", True  # nothing to compare, or the shape has been reported already
    wrong = view != wanted
    if not wrong.any():
        return "", "", True
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    found = f"{view[index]} ({np.count_nonzero(wrong)} elements differ)"
    return f"{wanted[index]} at {index}", found, False


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
