"""The promises of the project about speed: data, compared with every run, met or missed.

A promise is about one peer and any number of cases; a case names the promises that it bears on. Each is judged
by its worst case, so that "met" means every case of the run, or by the worst of the best nine tenths where it says
so (`share`); median and geometric mean inform.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gridbuf_benchmarks.libraries import MEMORY, title_of


@dataclass(frozen=True)
class Promise:
    """`bound` is the least speed relative to the peer's (kind "speed"), or the longest time (kind "time").

    Ratios in results are times, gridbuf's divided by the peer's; `limit` is the bound as such a ratio.
    """

    id: str
    text: str
    peer: str
    kind: Literal["speed", "time"]
    bound: float
    share: float = 1.0
    """How many of the cases must meet it."""

    @property
    def limit(self) -> float:
        return 1 / self.bound if self.kind == "speed" else self.bound

    def figure(self, ratio: float) -> float:
        """A ratio of times in the terms of the promise."""
        return 1 / ratio if self.kind == "speed" else ratio

    def words(self) -> str:
        """The bound in words."""
        some = "" if self.share == 1 else f", in {self.share:.0%} of the cases"
        if not self.peer:
            return f"at most {self.bound:g}{some}"
        if self.kind == "time":
            return f"at most {self.bound:g} × the time of {title_of(self.peer)}{some}"
        if self.peer == MEMORY:
            return f"at least {self.bound:g} of the speed of memcpy or memset{some}"
        return f"at least {self.bound:g} × the speed of {title_of(self.peer)}{some}"


def _speed(id: str, text: str, peer: str, bound: float, share: float = 1.0) -> Promise:
    return Promise(id, text, peer, "speed", bound, share)


def _time(id: str, text: str, peer: str, bound: float) -> Promise:
    return Promise(id, text, peer, "time", bound)


_MOVED = "copies of 64 KiB and more that move the contiguous dimension"
_LARGE = "the same of three dimensions and 64 MiB and more, items of"
_SMALL = "empty: a small array, or a small storage"

PROMISES: Mapping[str, Promise] = {
    promise.id: promise
    for promise in (
        _speed("moved-numpy", _MOVED, "numpy", 1.0),
        _speed("moved-torch", _MOVED, "torch", 1.0),
        _speed("moved-numpy-most", _MOVED, "numpy", 3.0, 0.9),
        _speed("moved-torch-most", _MOVED, "torch", 1.3, 0.9),
        _speed("moved-8", f"{_LARGE} 8 bytes", MEMORY, 0.5),
        _speed("moved-4-2", f"{_LARGE} 4 or 2 bytes", MEMORY, 0.4),
        _speed("copy-padded", "copies between padded arrays of the same layout", MEMORY, 0.95),
        _speed("fill-full", "full, warm", MEMORY, 0.9),
        _speed("cast", "casts between float32 and float64, same layout", MEMORY, 0.7),
        _speed("zeros-large", "zeros of 1 GiB and a write to it, warm", "numpy", 2.5),
        _speed("full-large", "full of 1 GiB, warm", "numpy", 2.0),
        _speed("zeros-cold", "zeros of 1 GiB and a write to it, cold", "numpy", 1.5),
        _time("create-numpy", _SMALL, "numpy", 4.0),
        _time("create-torch", _SMALL, "torch", 0.7),
        _time("create-gt4py", _SMALL, "gt4py", 0.03),
        _time("hand-over", "np.asarray and np.from_dlpack of an array or a storage", "numpy", 2.0),
        _time("c-table", "exports through DLPack's C exchange table", "numpy", 1.0),
        _time("subscript", "a part of an array or a storage", "numpy", 4.0),
        _time("copyto-tiny", "copyto of tiny arrays", "numpy", 4.0),
        _time("as-buffer", "gridbuf.as_buffer(ndarray)", "numpy", 4.0),
        _time("ufunc", "arithmetic on storages from 64³ points on", "numpy", 1.15),
        _time("halo-ghex", "exchanges of halos of 64 × 64 × 40 points and more", "ghex", 1.25),
        _time("call", "calls of stencils with five fields", "gt4py", 0.2),
        _speed("stencil", "compiled stencils", "gt4py", 0.97),
    )
}

_LINEAR_FROM_BYTES = 128 << 20

LINEAR = _time(
    "linear",
    f"cost grows linearly: time per byte at one size ÷ at another, {_LINEAR_FROM_BYTES >> 20} MiB and more",
    "",
    1.5,
)
"""For arrays larger than the caches, the largest allowed ratio of the times per byte of two sizes of a line."""


def judged_case(
    promises: Sequence[str], ratios: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """The promises of a case; without those whose peer is absent."""
    return [
        {
            "promise": promise.id,
            "peer": promise.peer,
            "limit": round(promise.limit, 4),
            "reached": ratios[promise.peer]["median"],
            "met": ratios[promise.peer]["median"] <= promise.limit,
        }
        for promise in (PROMISES[key] for key in promises)
        if promise.peer in ratios
    ]


def judge(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every promise with its worst case and how many cases meet it; `met` is None where no case was run."""
    reached: dict[str, dict[str, float]] = {key: {} for key in PROMISES}
    for case in cases:
        for target in case["targets"]:
            reached[target["promise"]][case["id"]] = target["reached"]
    lines: dict[str, list[float]] = {}
    for line, library, size_bytes, per_byte in points_of_lines(cases):
        if library == "gridbuf" and size_bytes >= _LINEAR_FROM_BYTES:
            lines.setdefault(line, []).append(per_byte)
    quotients = {line: max(some) / min(some) for line, some in lines.items() if len(some) > 1}
    found = [_judged(promise, reached[key]) for key, promise in PROMISES.items()]
    return [*found, _judged(LINEAR, quotients)]


def _judged(promise: Promise, reached: Mapping[str, float]) -> dict[str, Any]:
    """One promise in the result; `reached` are ratios of times, by case."""
    ordered = sorted(reached, key=lambda id: reached[id])
    counted = ordered[: math.ceil(promise.share * len(ordered))]
    ratios = [*reached.values()]
    info: dict[str, Any] = {
        "id": promise.id,
        "text": promise.text,
        "peer": promise.peer or None,
        "words": promise.words(),
        "cases": len(ratios),
        "cases_met": sum(ratio <= promise.limit for ratio in ratios),
        "met": reached[counted[-1]] <= promise.limit if counted else None,
    }
    if counted:
        figures = {
            "worst": reached[counted[-1]],
            "median": float(np.median(ratios)),
            "mean": float(np.exp(np.mean(np.log(ratios)))),
        }
        info |= {key: round(promise.figure(ratio), 3) for key, ratio in figures.items()}
        info["worst_case"] = counted[-1]
    return info


def points_of_lines(cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, int, float]]:
    """Of the cases of `sizes`: line, contender, bytes of one array, and nanoseconds per byte.

    The fastest yardstick is the contender "memory"; the others are left out.
    """
    for case in cases:
        for contender in case["contenders"] if case["group"].startswith("sizes/") else ():
            library = contender["library"]
            key = MEMORY if library == case["yardstick"] else library
            if key in {"gridbuf", *case["ratios"]}:
                size_bytes = case["work"]["array_bytes"]
                per_byte = contender["nanoseconds"]["median"] / size_bytes
                yield case["group"], key, size_bytes, per_byte
