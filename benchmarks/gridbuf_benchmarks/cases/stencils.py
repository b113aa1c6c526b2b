"""Compiled stencils of GT4Py, the same for all, on gridbuf's fields and on those of `gt4py.storage`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from gridbuf_benchmarks.case import Case, Entry, Work
from gridbuf_benchmarks.kernels import HALO, KERNELS, agreement, frozen, values_of

__all__ = ["CASES"]

_NOTE = (
    "One compiled stencil with origin and domain fixed, a halo of 3 in I and J; the fields are gridbuf's storages or arrays of "
    "gt4py.storage, each as its library lays out and places them for the backend. What differs is where their elements lie: padding, "
    "alignment, the size of pages, and how the fields lie to each other. Measured in three processes, each with four sets of fields of each "
    "library, taken in turns: where fields happen to lie weighs more than what is looked for. What is timed are some calls in a row, as "
    "in a loop over time steps, after one that is not timed: threads are awake, and what fits into the caches is in them."
)
_UNALIGNED = frozenset({"gt:cpu_ifirst"})
"""Backends whose fields GT4Py neither aligns nor pads, where gridbuf's preset does."""

_SETS = 4
_PROCESSES = 3

# Names, extents, time steps (some 30 ms of them), whether a quick run has it. The first stays in the caches of many machines.
_DOMAINS: tuple[tuple[str, tuple[int, int, int], int, bool], ...] = (
    ("cached", (64, 64, 60), 60, False),
    ("large", (128, 128, 80), 10, True),
    ("odd", (123, 117, 79), 12, False),
    ("wide", (160, 160, 64), 8, False),
)
# Where rows are whole cache lines with their halos there is nothing to pad: what gridbuf's fields have is their start.
_LINES = ("lines", (130, 130, 80), 10, False)


class Rotation:
    """Some sets of the same fields, each sample on the next: where the system happens to put one set weighs a few per cent."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._sets = itertools.cycle([make() for _ in range(_SETS)])
        self.turn()

    def turn(self) -> None:
        self.fields = next(self._sets)


def _march(run: Callable[..., None], fields: dict[str, Any], steps: int) -> None:
    for _ in range(steps):
        run(**fields)


def _entries(
    kernel: str, backend: str, domain: tuple[int, int, int], steps: int
) -> Iterator[Entry]:
    shape = (domain[0] + 2 * HALO, domain[1] + 2 * HALO, domain[2])

    def names(place: Callable[[Any], Any]) -> dict[str, Any]:
        def make() -> dict[str, Any]:
            return {name: place(values) for name, values in values_of(kernel, shape).items()}

        run = frozen(kernel, backend, domain)
        rotation = Rotation(make)
        return {
            "run": run,
            "march": _march,
            "steps": steps,
            "rotation": rotation,
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
            "march(run, rotation.fields, steps)",
            makes,
            result="agreement(kernel, rotation.fields['out'])",
            setup="rotation.turn(); run(**rotation.fields)",
        )


def _cases() -> Iterator[Case]:
    for kernel in KERNELS:
        for backend in ("gt:cpu_kfirst", "gt:cpu_ifirst"):
            unaligned = backend in _UNALIGNED
            for name, domain, steps, quick in (*_DOMAINS, _LINES) if unaligned else _DOMAINS:
                shape = (domain[0] + 2 * HALO, domain[1] + 2 * HALO, domain[2])
                short = backend.rpartition("_")[2]
                yield Case(
                    id=f"stencil/{kernel}/{short}/{name}",
                    title=f"{kernel}, {backend}, {'×'.join(map(str, domain))}, {steps} steps",
                    note=_NOTE,
                    work=Work(shape, values=1.0),
                    entries=tuple(_entries(kernel, backend, domain, steps)),
                    quick=quick and kernel == "hdiff" and unaligned,
                    promises=("stencil", "stencil-unaligned") if unaligned else ("stencil",),
                    consumer="gt4py",
                    processes=_PROCESSES,
                )


CASES: tuple[Case, ...] = tuple(_cases())
