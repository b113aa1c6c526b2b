"""Stencils of GT4Py: what a call costs besides computing, and the loops of compiled stencils on both libraries' fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Names, Work
from gridbuf_benchmarks.cases.kernels import (
    FIVE,
    HALO,
    KERNELS,
    agreement,
    compiled,
    frozen,
    values_of,
)

# Calls

_SHAPE = (4, 4, 4)
_BACKEND = "gt:cpu_kfirst"
_EMPTY_NOTE = (
    "A call with five fields of 4³ elements, 1 everywhere; the same objects for both. gridbuf's stencil is a Python function that "
    "does nothing, so all of its time is the call's. GT4Py's is a compiled stencil, whose 64 points take about a microsecond of it; "
    "it keeps its checks by shapes and origins, and gridbuf makes its own at every call. "
)
_WRAPPED_NOTE = (
    "The same compiled stencil of GT4Py with five fields of 4³ elements, called by gridbuf.stencil, which makes its own checks "
    "at every call and then runs it with GT4Py's freeze, and alone. Both include what is below a microsecond of computing."
)


def _storage() -> Any:
    from gridbuf.storage import ones

    return ones(_SHAPE, backend=_BACKEND)


def _empty(module: ModuleType) -> Any:
    def nothing(a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
        """Computes nothing."""

    nothing.__annotations__ = dict.fromkeys(FIVE, module.Field[np.float64])
    return module.stencil(nothing, backend=_BACKEND, writes=FIVE[-1])


def _calls() -> Iterator[Case]:
    fields: dict[str, Callable[[], Any]] = {
        "ndarrays": partial(np.ones, _SHAPE),
        "storages": _storage,
    }

    def called(stencil: Callable[[ModuleType], Any], field: Callable[[], Any]) -> Names:
        return lambda module: {
            "call": stencil(module),
            "fields": [field() for _ in FIVE],
            "asarray": np.asarray,
        }

    def mean(_: ModuleType) -> Any:
        return compiled("mean", _BACKEND)

    def wrapped(module: ModuleType) -> Any:
        return module.stencil(mean(module))

    for name, title, ours, note, promises in (
        ("empty", "a call with five", _empty, _EMPTY_NOTE, ("call",)),
        ("compiled", "GT4Py's stencil called with five", wrapped, _WRAPPED_NOTE, ()),
    ):
        for kind, field in fields.items():
            yield Case(
                id=f"call/{name}/{kind}",
                title=f"{title} {kind}",
                note=note,
                work=Work(_SHAPE, values=1.0),
                entries=tuple(
                    Entry(key, "call(*fields)", called(one, field), result="asarray(fields[-1])")
                    for key, one in (("gridbuf", ours), ("gt4py", mean))
                ),
                promises=promises,
                consumer="gt4py",
            )


# Loops

_NOTE = (
    "One compiled stencil with origin and domain fixed, a halo of 3 in I and J; the fields are gridbuf's storages or arrays of "
    "gt4py.storage, each as its library lays out and places them for the backend. What differs is where their elements are: padding, "
    "alignment, the size of pages, and the distances of the fields. (The loops of gt:cpu_ifirst move their elements one by one, wherever "
    "they begin: see docs/explanation/layout.md.) What is timed is {}; one call that is not timed wakes the threads. "
    "Measured in three processes: the places of the fields there weigh as much as the difference of interest."
)
_STEP = (
    "a time step: the stencil called for each of some tracers, which have separate fields, as in a model, whose fields no "
    "cache holds"
)
_CACHED = "the same call some times in a row, on fields that stay in the caches of many machines"


class _Step(NamedTuple):
    """A sample: this number of calls for each tracer, about 5 to 40 ms."""

    name: str
    domain: tuple[int, int, int]
    tracers: int = 8
    calls: int = 1


_STEPS = (
    _Step("cached", (64, 64, 60), tracers=1, calls=40),
    _Step("small", (64, 64, 60)),
    _Step("large", (128, 128, 80)),
    _Step("odd", (123, 117, 79)),
    _Step("wide", (160, 160, 64)),
)
# Rows that are whole cache lines with their halos: nothing to pad; gridbuf's fields differ by their start.
_LINES = _Step("lines", (130, 130, 80))


def _march(run: Callable[..., None], tracers: list[dict[str, Any]], calls: int) -> None:
    for fields in tracers:
        for _ in range(calls):
            run(**fields)


def _names(kernel: str, backend: str, step: _Step, shape: tuple[int, int, int]) -> Names:
    def names(module: ModuleType) -> dict[str, Any]:
        def place(values: Any) -> Any:
            if module.__name__ != "gridbuf":
                return module.from_array(values, backend=backend, aligned_index=(HALO, HALO, 0))
            from gridbuf.storage import storage

            return storage(values, backend=backend, halo=(HALO, HALO, 0))

        return {
            "run": frozen(kernel, backend, step.domain),
            "march": _march,
            "tracers": [
                {name: place(values) for name, values in values_of(kernel, shape).items()}
                for _ in range(step.tracers)
            ],
            "calls": step.calls,
            "agreement": agreement,
            "kernel": kernel,
        }

    return names


def _loops() -> Iterator[Case]:
    for kernel in KERNELS:
        for backend in ("gt:cpu_kfirst", "gt:cpu_ifirst"):
            # GT4Py neither aligns nor pads the fields of gt:cpu_ifirst; gridbuf's preset does.
            unaligned = backend == "gt:cpu_ifirst"
            for step in (*_STEPS, _LINES) if unaligned else _STEPS:
                shape = (step.domain[0] + 2 * HALO, step.domain[1] + 2 * HALO, step.domain[2])
                cached = step.tracers == 1
                times = f"{step.calls} calls" if cached else f"{step.tracers} tracers"
                yield Case(
                    id=f"stencil/{kernel}/{backend[7:]}/{step.name}",
                    title=f"{kernel}, {backend}, {'×'.join(map(str, step.domain))}, {times}",
                    note=_NOTE.format(_CACHED if cached else _STEP),
                    work=Work(shape, values=1.0),
                    entries=tuple(
                        Entry(
                            library,
                            "march(run, tracers, calls)",
                            _names(kernel, backend, step, shape),
                            result="agreement(kernel, tracers[0]['out'])",
                            setup="run(**tracers[-1])",
                        )
                        for library in ("gridbuf", "gt4py")
                    ),
                    quick=step.name == "large" and kernel == "hdiff" and unaligned,
                    promises=("stencil",),
                    consumer="gt4py",
                    processes=3,
                )


CASES: tuple[Case, ...] = (*_calls(), *_loops())
