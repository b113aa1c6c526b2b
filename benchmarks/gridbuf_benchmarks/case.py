"""A benchmark case: one piece of work, an expression for each library, and a check of the results.

A case states its work once, apart from any library: shape, dtype, values, layout and alignment. Each entry is one Python
expression that does that work. Before anything is timed, every entry's result is compared with the statement: a ratio
never compares two different jobs.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gridbuf_benchmarks import memory
from gridbuf_benchmarks.libraries import BASELINE
from gridbuf_benchmarks.memory import Placement
from gridbuf_benchmarks.promises import PROMISES

Names = Callable[[ModuleType], Mapping[str, Any]]
"""Makes the names that an entry's expression uses, from its library's module."""


def uses(*functions: str, make: Any = dict, **constants: Any) -> Names:
    """The names of an expression: functions of its library, constants, and what `make` returns when they are needed."""
    return lambda module: {
        **{function: getattr(module, function) for function in functions},
        **constants,
        **make(),
    }


@dataclass(frozen=True)
class Work:
    """The job that every entry of a case does.

    `values` is what the elements must be: a number for all, "arange" for 0, 1, 2, … in C order, "source" for those of
    the array at `source`, None for undefined contents. `layout` is the layout map of the result, None for any.
    `aligned_index` names the element whose address must be a multiple of `alignment_bytes`. `bytes_moved` counts bytes
    read plus written, for cases whose speed is a bandwidth. `source` and `target` place the arrays in the shared memory
    (see `memory`); None where each contender has its own.
    """

    shape: tuple[int, ...]
    dtype: str = "float64"
    values: float | Literal["arange", "source"] | None = None
    layout: tuple[int, ...] | None = None
    alignment_bytes: int = 1
    aligned_index: tuple[int, ...] | None = None
    bytes_moved: int | None = None
    source: Placement | None = None
    target: Placement | None = None

    def expected(self) -> npt.NDArray[Any] | None:
        """The expected elements; None if the contents are undefined."""
        if self.values is None:
            return None
        if self.source is not None:
            return memory.array("source", self.shape, self.source)
        if self.values == "arange":
            return np.arange(math.prod(self.shape), dtype=self.dtype).reshape(self.shape)
        return np.broadcast_to(np.asarray(self.values, dtype=self.dtype), self.shape)

    @property
    def array_bytes(self) -> int:
        """The bytes of all elements of the result, without padding."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def placements(self) -> list[Placement]:
        return [one for one in (self.source, self.target) if one is not None]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "array_bytes": self.array_bytes}


@dataclass(frozen=True)
class Entry:
    """One library's way to do the work of a case.

    `statement` is one expression; the timed part is making its result and dropping it. `names` gives its globals, looked
    up before the clock runs. `result` is the expression of the result, where the statement writes instead of returning.
    `setup` runs before every sample, untimed. `note` says what differs from the other entries.
    """

    library: str
    statement: str
    names: Names
    note: str = ""
    result: str = ""
    setup: str = "pass"


@dataclass(frozen=True)
class Case:
    """One row of the table. The first entry is gridbuf's; `quick` cases are part of `--quick`.

    `yardsticks` move the same bytes whatever the layout: the faster of them is the speed of the memory, and the ratio
    to it has the key "memory". `promises` names those that this case bears on. `consumer` is a library that every entry
    needs. `fresh_process` times the first call of a process, in a new one for every sample. With `processes`, so many
    are started one after another, each with separate arrays, and the rounds of all count. `ranks` processes do the
    work together under mpiexec. A case is left out where fewer than `memory_bytes` are available.
    """

    id: str
    title: str
    note: str
    work: Work
    entries: tuple[Entry, ...]
    quick: bool = True
    yardsticks: tuple[Entry, ...] = ()
    promises: tuple[str, ...] = ()
    consumer: str | None = None
    fresh_process: bool = False
    processes: int = 0
    ranks: int = 1
    memory_bytes: int = 0

    def __post_init__(self) -> None:
        libraries = [entry.library for entry in self.entries + self.yardsticks]
        if libraries[0] != BASELINE or len(set(libraries)) != len(libraries):
            raise ValueError(
                f"case {self.id} has the entries {libraries}; the first must be {BASELINE}, and each library may have one"
            )
        if unknown := set(self.promises) - set(PROMISES):
            raise ValueError(f"case {self.id} names promises that promises.py lacks: {unknown}")

    @property
    def group(self) -> str:
        """The part of the id before the last slash."""
        return self.id.rpartition("/")[0]

    @property
    def chapter(self) -> str:
        """The part of the id before the first slash, by which `--only` chooses."""
        return self.id.partition("/")[0]


# The check

_COMPARED_WHOLE = 1 << 20
_SAMPLED = 1 << 14


class WrongWork(Exception):
    """The result of an entry is not that of its case, so its time has no meaning."""


def view_of(result: Any) -> npt.NDArray[Any]:
    """A NumPy view of a library's result: array, tensor, buffer, memoryview, array-interface dict or DLPack capsule."""
    if isinstance(result, dict):
        result = SimpleNamespace(__array_interface__=result)
    if type(result).__name__ == "PyCapsule":
        capsule = result
        result = SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0))
    if isinstance(result, (np.ndarray, memoryview)) or not hasattr(result, "__dlpack__"):
        return np.asarray(result)
    return np.from_dlpack(result)


def check_work(case: Case, entry: Entry, result: Any) -> dict[str, Any]:
    """Compares one result with the case's statement, and describes it for the JSON result.

    `values_crc32` covers the elements in C order whatever the layout. `alignment_bytes` is the largest power of two (at
    most 4096) that divides the address of the aligned element.

    Raises:
      WrongWork: naming case, library, property, wanted and found value.
    """
    view, work = view_of(result), case.work
    index = work.aligned_index or (0,) * view.ndim
    offset_bytes = sum(i * stride for i, stride in zip(index, view.strides))
    address = int(view.__array_interface__["data"][0]) + offset_bytes
    aligned_bytes = min(4096, address & -address) if address else 4096
    by_rank = np.argsort(work.layout or range(view.ndim))
    strides = [view.strides[dim] for dim in by_rank if dim < view.ndim and view.shape[dim] > 1]
    for name, wanted, found, good in (
        ("shape", work.shape, view.shape, view.shape == work.shape),
        ("dtype", work.dtype, view.dtype.name, view.dtype == np.dtype(work.dtype)),
        ("values", *_compared_values(view, work)),
        (
            "layout",
            work.layout,
            view.strides,
            work.layout is None or strides == sorted(strides, reverse=True),
        ),
        ("alignment", work.alignment_bytes, aligned_bytes, address % work.alignment_bytes == 0),
        ("padding", *_compared_padding(work)),
    ):
        if not good:
            raise WrongWork(
                f"{case.id}: {entry.library} was to do other work than it did: {name} should be {wanted}, "
                f"found {found}, from `{entry.statement}`; correct the case, its times would mislead"
            )
    digest = None if work.values is None else _digest(view[_picks(view.shape)])
    return _description(view, digest, aligned_bytes)


def check_yardstick(case: Case, entry: Entry, result: Any) -> dict[str, Any]:
    """Compares the bytes that a yardstick wrote with the expected ones.

    Raises:
      WrongWork: if they differ.
    """
    expected, found = result
    picks = _picks(found.shape)
    # As bytes: the elements may be not-a-number, which is not equal to itself.
    if np.broadcast_to(expected, found.shape)[picks].tobytes() != found[picks].tobytes():
        raise WrongWork(
            f"{case.id}: {entry.library} did not move {found.nbytes} bytes as they were, from `{entry.statement}`;"
            " correct the case, its times would mislead"
        )
    return _description(found, _digest(found[picks]), 1)


def _description(view: npt.NDArray[Any], digest: str | None, aligned_bytes: int) -> dict[str, Any]:
    return {
        "shape": view.shape,
        "dtype": view.dtype.name,
        "values_crc32": digest,
        "strides_bytes": view.strides,
        "alignment_bytes": aligned_bytes,
    }


def _digest(elements: npt.NDArray[Any]) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(elements).data):08x}"


def _picks(shape: tuple[int, ...]) -> Any:
    """An index of all elements; in large arrays of _SAMPLED random ones, the first and the last among them.

    To compare a gigabyte element by element, across layouts, would take longer than to measure it. An error in more
    than one element of a thousand is still found.
    """
    total = math.prod(shape)
    if total <= _COMPARED_WHOLE:
        return ...
    some = np.random.default_rng(total).integers(0, total, _SAMPLED)
    some[:2] = 0, total - 1
    return np.unravel_index(np.sort(some), shape)


def _compared_values(view: npt.NDArray[Any], work: Work) -> tuple[str, str, bool]:
    """Expected and found value of the first wrong element, and whether all are right."""
    wanted = work.expected()
    if wanted is None or view.shape != work.shape:
        return "", "", True  # nothing to compare, or the shape is reported already
    picks = _picks(view.shape)
    found = np.ascontiguousarray(view[picks]).reshape(-1)
    chosen = np.ascontiguousarray(wanted[picks]).astype(view.dtype).reshape(-1)
    differ = found.view(np.uint8) != chosen.view(np.uint8)
    wrong = np.flatnonzero(differ.reshape(-1, view.itemsize).any(axis=1))
    if not wrong.size:
        return "", "", True
    first = wrong[0]
    at = np.unravel_index(first, view.shape) if picks is ... else [axis[first] for axis in picks]
    count = f"{wrong.size} of {found.size} elements looked at differ"
    return f"{chosen[first]} at {tuple(map(int, at))}", f"{found[first]} ({count})", False


def _compared_padding(work: Work) -> tuple[str, str, bool]:
    """Whether the bytes after the rows of a target in shared memory are unchanged."""
    target = work.target
    if target is None or target.rows == "dense" or target.step > 1 or 0 in work.shape:
        return "", "", True
    contiguous = target.layout.index(len(target.layout) - 1)
    row_bytes = work.shape[contiguous] * target.itemsize_bytes
    pitch_bytes = sorted(target.strides_bytes(work.shape))[1]
    rows = math.prod(work.shape) // work.shape[contiguous]
    written = memory.block("target", target.span_bytes(work.shape))[target.offset_bytes :]
    padding = written[: rows * pitch_bytes].reshape(rows, pitch_bytes)[:, row_bytes:]
    wrong = np.flatnonzero((padding != memory.POISON).any(axis=1))
    if not wrong.size:
        return "", "", True
    return f"{memory.POISON:#x} behind every row", f"other bytes behind row {wrong[0]}", False
