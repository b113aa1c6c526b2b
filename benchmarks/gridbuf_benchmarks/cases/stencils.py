"""Compiled stencils of GT4Py, the same for all, on gridbuf's fields and on those of `gt4py.storage`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gridbuf_benchmarks.case import Case, Entry, Work
from gridbuf_benchmarks.kernels import HALO, KERNELS, agreement, frozen, values_of

__all__ = ["CASES"]

_NOTE = (
    "One compiled stencil with origin and domain fixed, a halo of 3 in I and J; the fields are gridbuf's storages or arrays of "
    "gt4py.storage, each as its library lays out and places them for the backend. What differs is where their elements lie: padding, "
    "alignment, the size of pages, and how the fields lie to each other. (The loops of gt:cpu_ifirst move their elements one by one, wherever "
    "they begin: unit_strides.py.) What is timed is a time step: the stencil called for each of some "
    "tracers, which have fields of their own, as a model does, whose fields no cache holds; one call that is not timed wakes the threads. "
    "Measured in three processes: where fields happen to lie there weighs as much as what is looked for."
)
_NOTE_CACHED = _NOTE.replace(
    "a time step: the stencil called for each of some tracers, which have fields of their own, as a model does, whose fields no cache "
    "holds; one call",
    "the same call some times in a row, on fields that stay in the caches of many machines; one call",
)
_UNALIGNED = frozenset({"gt:cpu_ifirst"})
"""Backends whose fields GT4Py neither aligns nor pads, where gridbuf's preset does."""

_PROCESSES = 3


@dataclass(frozen=True)
class _Step:
    """What a sample is: so many calls for each of so many tracers, some 5 to 40 ms."""

    name: str
    domain: tuple[int, int, int]
    tracers: int = 8
    calls: int = 1
    quick: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.domain[0] + 2 * HALO, self.domain[1] + 2 * HALO, self.domain[2]

    @property
    def title(self) -> str:
        what = f"{self.tracers} tracers" if self.tracers > 1 else f"{self.calls} calls"
        return f"{'×'.join(map(str, self.domain))}, {what}"


_STEPS = (
    _Step("cached", (64, 64, 60), tracers=1, calls=40),
    _Step("small", (64, 64, 60)),
    _Step("large", (128, 128, 80), quick=True),
    _Step("odd", (123, 117, 79)),
    _Step("wide", (160, 160, 64)),
)
# Rows that are whole cache lines with their halos: nothing to pad, and what gridbuf's fields have is their start.
_LINES = _Step("lines", (130, 130, 80))


def _march(run: Callable[..., None], tracers: Sequence[dict[str, Any]], calls: int) -> None:
    for fields in tracers:
        for _ in range(calls):
            run(**fields)


def _entries(kernel: str, backend: str, step: _Step) -> Iterator[Entry]:
    def names(place: Callable[[Any], Any]) -> dict[str, Any]:
        def make() -> dict[str, Any]:
            return {name: place(values) for name, values in values_of(kernel, step.shape).items()}

        return {
            "run": frozen(kernel, backend, step.domain),
            "march": _march,
            "tracers": [make() for _ in range(step.tracers)],
            "calls": step.calls,
            "agreement": agreement,
            "kernel": kernel,
        }

    def storages(_: ModuleType) -> dict[str, Any]:
        from gridbuf.storage import storage

        return names(lambda values: storage(values, defaults=backend, halo=(HALO, HALO, 0)))

    def arrays(module: ModuleType) -> dict[str, Any]:
        index = (HALO, HALO, 0)
        return names(lambda data: module.from_array(data, backend=backend, aligned_index=index))

    for library, makes in (("gridbuf", storages), ("gt4py", arrays)):
        yield Entry(
            library,
            "march(run, tracers, calls)",
            makes,
            result="agreement(kernel, tracers[0]['out'])",
            setup="run(**tracers[-1])",
        )


def _cases() -> Iterator[Case]:
    for kernel in KERNELS:
        for backend in ("gt:cpu_kfirst", "gt:cpu_ifirst"):
            unaligned = backend in _UNALIGNED
            for step in (*_STEPS, _LINES) if unaligned else _STEPS:
                yield Case(
                    id=f"stencil/{kernel}/{backend.rpartition('_')[2]}/{step.name}",
                    title=f"{kernel}, {backend}, {step.title}",
                    note=_NOTE if step.tracers > 1 else _NOTE_CACHED,
                    work=Work(step.shape, values=1.0),
                    entries=tuple(_entries(kernel, backend, step)),
                    quick=step.quick and kernel == "hdiff" and unaligned,
                    promises=("stencil", "stencil-unaligned") if unaligned else ("stencil",),
                    consumer="gt4py",
                    processes=_PROCESSES,
                )


CASES: tuple[Case, ...] = tuple(_cases())
