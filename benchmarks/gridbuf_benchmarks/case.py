"""What a benchmark case is: one piece of work, and how each library is asked to do it.

A case states its work once, apart from any library: shape, dtype, the values that must come out, the
layout and the alignment that must be kept. Each entry is one Python expression that does that work.
Before anything is timed every entry's result is held against the statement (see `work`), so that a ratio
never compares two different jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gridbuf_benchmarks import memory
from gridbuf_benchmarks.libraries import BASELINE
from gridbuf_benchmarks.placement import Placement
from gridbuf_benchmarks.promises import PROMISES

__all__ = ["Case", "Entry", "Names", "Work"]

Names = Callable[[ModuleType], Mapping[str, Any]]
"""Makes the names an entry's expression uses, from its library's module."""


@dataclass(frozen=True)
class Work:
    """The job that every entry of a case does.

    `values` is what the elements must be: a number for all, "arange" for 0, 1, 2, … in C order, "source" for those
    of the array at `source`, or None where the contents are undefined. `layout` is the layout map (rank of each
    dimension: 0 has the largest stride) the result must have, or None for any. `aligned_index` names the element
    whose address must be a multiple of `alignment_bytes`. `bytes_moved` counts bytes read plus written by the job
    itself, for cases whose speed is a bandwidth; None elsewhere.

    `source` and `target` say where the arrays lie that the entries read and write, in the memory that all
    contenders share (see `memory`); None where each has its own.
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
        """The elements that must come out, of this shape; None where they are undefined."""
        if self.values is None:
            return None
        if self.values == "source":
            assert self.source is not None
            return memory.array("source", self.shape, self.source)
        if self.values == "arange":
            return np.arange(math.prod(self.shape), dtype=self.dtype).reshape(self.shape)
        return np.broadcast_to(np.asarray(self.values, dtype=self.dtype), self.shape)

    @property
    def array_bytes(self) -> int:
        """The bytes of all elements of the result, without padding."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def to_json(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "values": self.values,
            "layout": None if self.layout is None else list(self.layout),
            "alignment_bytes": self.alignment_bytes,
            "aligned_index": None if self.aligned_index is None else list(self.aligned_index),
            "bytes_moved": self.bytes_moved,
            "array_bytes": self.array_bytes,
            "source": None if self.source is None else self.source.to_json(),
            "target": None if self.target is None else self.target.to_json(),
        }


@dataclass(frozen=True)
class Entry:
    """One library's way to do the work of a case.

    `statement` is one expression, timed as it stands: making its result and dropping it again. `names`
    gives the globals it uses, looked up once and before the clock runs. `result` is the expression of what was
    made, where the statement writes instead of returning; `setup` runs before every sample, untimed. `note` says
    what differs from the other entries.
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

    `yardsticks` move the same bytes without minding where elements lie: the faster of them stands for the speed of
    the memory, and the ratio to it has the key "memory". `promises` names those that this case bears on.
    `consumer` is a library that takes part in every entry, so that the case needs it. `fresh_process` times the
    first call of a process, in a new one for every sample (see `fresh`). Where `processes` is not 0, so many of them are started one
    after another, each with arrays of its own, and the rounds of all count (see `apart`). `ranks` processes do the work together under
    mpiexec (see `ranks`). `memory_bytes` must be available, or the case is left out.
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
                f"case {self.id} has the entries {libraries}; the first must be {BASELINE} and no library"
                " may enter twice"
            )
        unknown = set(self.promises) - set(PROMISES)
        if unknown:
            raise ValueError(
                f"case {self.id} names the promises {sorted(unknown)}; promises.py has no such"
            )

    @property
    def group(self) -> str:
        """The part of the id before the last slash: cases of a group stand together."""
        return self.id.rpartition("/")[0]

    @property
    def chapter(self) -> str:
        """The part of the id before the first slash, by which `--only` chooses."""
        return self.id.partition("/")[0]
