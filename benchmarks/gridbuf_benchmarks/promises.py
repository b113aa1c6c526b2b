"""What the project promises about speed: data, judged against every run, met or missed.

A promise is about one peer and any number of cases; a case names the promises that it bears on. Each is judged
by its worst case, so that "met" means every case of the run; median and geometric mean inform. `aim` is what lies
beyond it: wished for, not promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any, Literal

from gridbuf_benchmarks.libraries import MEMORY, title_of

__all__ = ["LINEAR", "PROMISES", "Promise", "judge", "judged_case", "points_of_lines"]


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
    aim: float | None = None

    @property
    def limit(self) -> float:
        return 1 / self.bound if self.kind == "speed" else self.bound

    def figure(self, ratio: float) -> float:
        """A ratio of times in the terms of the promise."""
        return 1 / ratio if self.kind == "speed" else ratio

    def words(self) -> str:
        """What the bound is about, for people."""
        if self.kind == "time":
            return f"at most {self.bound:g} × the time of {title_of(self.peer)}"
        if self.peer == MEMORY:
            return f"at least {self.bound:g} of the speed of memcpy or memset"
        return f"at least {self.bound:g} × the speed of {title_of(self.peer)}"


def _speed(id: str, text: str, peer: str, bound: float, aim: float | None = None) -> Promise:
    return Promise(id, text, peer, "speed", bound, aim)


def _time(id: str, text: str, peer: str, bound: float) -> Promise:
    return Promise(id, text, peer, "time", bound)


_MOVED = "copies of 64 MiB and more that move the contiguous dimension, items of"

PROMISES: Mapping[str, Promise] = {
    promise.id: promise
    for promise in (
        _speed("copy-8-lines", f"{_MOVED} 8 bytes, rows of whole lines", MEMORY, 0.8, 0.9),
        _speed(
            "copy-8-other",
            f"{_MOVED} 8 bytes, power-of-two or odd extents without padding",
            MEMORY,
            0.6,
            0.75,
        ),
        _speed("copy-4-lines", f"{_MOVED} 4 bytes, rows of whole lines", MEMORY, 0.6),
        _speed(
            "copy-4-other",
            f"{_MOVED} 4 bytes, power-of-two or odd extents without padding",
            MEMORY,
            0.5,
        ),
        _speed("copy-2", f"{_MOVED} 2 bytes", MEMORY, 0.4),
        _speed("copy-numpy", "every case of the matrix of copies", "numpy", 0.95),
        _speed("reversed-numpy", "512³ float64 into the reversed layout", "numpy", 25.0),
        _speed("reversed-torch", "512³ float64 into the reversed layout", "torch", 8.0),
        _speed("copy-padded", "copies between padded arrays of the same layout", MEMORY, 0.95),
        _speed("fill-full", "full, warm", MEMORY, 0.9),
        _speed("cast", "casts between float32 and float64, same layout", MEMORY, 0.7),
        _speed("copy-cache", "copies of 8-byte items up to 256 KiB", MEMORY, 0.5),
        _time("copyto-tiny", "copyto of tiny arrays", "numpy", 1.5),
        _time("allocate-small", "empty of 4 KiB", "numpy", 1.5),
        _speed("zeros-large", "zeros of 1 GiB and a write to it, warm", "numpy", 2.5),
        _speed("full-large", "full of 1 GiB, warm", "numpy", 2.0),
        _speed("zeros-cold", "zeros of 1 GiB and a write to it, cold", "numpy", 1.5),
        _time("asarray", "np.asarray(x) and np.from_dlpack(x)", "numpy", 1.2),
        _time("as-buffer", "gridbuf.as_buffer(ndarray)", "numpy", 2.0),
        _time("c-table", "exports through DLPack's C exchange table", "gridbuf_dlpack", 0.5),
        _time("ufunc", "arithmetic on storages", "numpy", 1.15),
        _time("index", "indexing a storage", "numpy", 3.0),
        _time("storage-export", "handing a storage over", "numpy", 1.5),
        _time("halo-ghex", "exchanges of halos of 64 × 64 × 40 points and more", "ghex", 1.25),
        _time("call", "calls of stencils with five fields", "gt4py", 0.2),
        _speed("stencil", "compiled stencils", "gt4py", 0.97),
        _speed(
            "stencil-unaligned",
            "compiled stencils whose fields GT4Py leaves unaligned",
            "gt4py",
            1.0,
        ),
    )
}

LINEAR = 1.5
"""Beyond the caches, the time per byte of no size is this many times that of another of the same line."""

_LINEAR_FROM_BYTES = 128 << 20


def judged_case(
    promises: Sequence[str], ratios: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """What a case says about its promises; nothing of those whose peer is absent."""
    found = []
    for promise in (PROMISES[key] for key in promises):
        if promise.peer in ratios:
            reached = ratios[promise.peer]["median"]
            found.append(
                {
                    "promise": promise.id,
                    "peer": promise.peer,
                    "limit": round(promise.limit, 4),
                    "reached": reached,
                    "met": reached <= promise.limit,
                }
            )
    return found


def judge(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every promise with its worst case and how many meet it by themselves; `met` is None where no case was run."""
    return [_judge_one(promise, cases) for promise in PROMISES.values()] + [_judge_lines(cases)]


def _judge_one(promise: Promise, cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = [
        (target["reached"], target["met"], case["id"])
        for case in cases
        for target in case["targets"]
        if target["promise"] == promise.id
    ]
    facts: dict[str, Any] = {
        "id": promise.id,
        "text": promise.text,
        "peer": promise.peer,
        "words": promise.words(),
        "aim": promise.aim,
        "cases": len(found),
        "cases_met": sum(met for _, met, _ in found),
        "met": None,
    }
    if not found:
        return facts
    worst, _, worst_case = max(found)
    reached = [one for one, *_ in found]
    return facts | {
        "met": facts["cases_met"] == len(found),
        "worst": round(promise.figure(worst), 3),
        "worst_case": worst_case,
        "median": round(promise.figure(median(reached)), 3),
        "mean": round(promise.figure(geometric_mean(reached)), 3),
    }


def points_of_lines(cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, int, float]]:
    """Of the cases of `sizes`: line, contender, bytes of one array, and nanoseconds per byte.

    The fastest yardstick is the contender "memory"; the others are left out.
    """
    for case in cases:
        if not case["group"].startswith("sizes/"):
            continue
        peers = {"gridbuf", *case["ratios"]}
        for contender in case["contenders"]:
            library = contender["library"]
            key = MEMORY if library == case["yardstick"] else library
            if key in peers:
                size_bytes = case["work"]["array_bytes"]
                yield (
                    case["group"],
                    key,
                    size_bytes,
                    contender["nanoseconds"]["median"] / size_bytes,
                )


def _judge_lines(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether cost grows linearly: the largest quotient of two times per byte on a line."""
    lines: dict[str, list[float]] = {}
    for line, library, size_bytes, per_byte in points_of_lines(cases):
        if library == "gridbuf" and size_bytes >= _LINEAR_FROM_BYTES:
            lines.setdefault(line, []).append(per_byte)
    quotients = {line: max(some) / min(some) for line, some in lines.items() if len(some) > 1}
    facts: dict[str, Any] = {
        "id": "linear",
        "text": f"cost grows linearly: time per byte at one size ÷ at another, {_LINEAR_FROM_BYTES >> 20} MiB and more",
        "peer": None,
        "words": f"at most {LINEAR:g}",
        "aim": None,
        "cases": len(quotients),
        "cases_met": sum(value <= LINEAR for value in quotients.values()),
        "met": None,
    }
    if not quotients:
        return facts
    worst_case = max(quotients, key=lambda line: quotients[line])
    return facts | {
        "met": facts["cases_met"] == len(quotients),
        "worst": round(quotients[worst_case], 3),
        "worst_case": worst_case,
        "median": round(median(quotients.values()), 3),
    }
