"""The consumers that have a name: built-in ones, and those that installed packages announce.

A consumer is a function of one exporter (`consumer`). An entry says where it is found, which import
name it needs, how that is installed, and, where its documentation says so, which interfaces it
takes. Packages announce theirs in the entry-point group `gridbuf_conformance.consumers`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from ..producers import Entry as _ProducerEntry

__all__ = ["BUILT_IN", "ENTRY_POINT_GROUP", "Entry", "UnknownConsumer", "entries", "find", "names"]

ENTRY_POINT_GROUP = "gridbuf_conformance.consumers"


@dataclass(frozen=True)
class Entry(_ProducerEntry):
    """One consumer by name: as a producer's entry, and `takes`, the interfaces it is documented to
    take (None: found out)."""

    takes: tuple[str, ...] | None = None


class UnknownConsumer(LookupError):
    """A name that is neither built in nor announced; the message lists close matches."""


def _entry(name: str, target: str, summary: str, **more: Any) -> Entry:
    return Entry(name, target, summary, **more)


_NUMPY = {"needs": "numpy", "install": "pip install numpy"}
_TORCH = {"needs": "torch", "install": "pip install torch"}
_JAX = {"needs": "jax", "install": "pip install jax"}
_GRIDBUF = {"needs": "gridbuf", "install": "pip install gridbuf"}

BUILT_IN: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _entry(
            "numpy.from_dlpack",
            "numpy:from_dlpack",
            "NumPy's import from DLPack",
            takes=("dlpack",),
            **_NUMPY,
        ),
        _entry(
            "torch.from_dlpack",
            "torch:from_dlpack",
            "PyTorch's import from DLPack",
            takes=("dlpack",),
            **_TORCH,
        ),
        _entry(
            "jax.dlpack.from_dlpack",
            "jax.dlpack:from_dlpack",
            "JAX's import from DLPack",
            takes=("dlpack",),
            **_JAX,
        ),
    )
}
"""The consumers of this package by name, in the order in which they are shown."""


def entries() -> dict[str, Entry]:
    """All consumers by name: the built-in ones, then those of entry points, by name."""
    announced = {
        point.name: Entry(point.name, point.value, f"announced by {_origin(point)}")
        for point in sorted(metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name)
        if point.name not in BUILT_IN
    }
    return {**BUILT_IN, **announced}


def find(name: str) -> Entry:
    """The entry of a name; UnknownConsumer if there is none."""
    known = entries()
    if name not in known:
        close = difflib.get_close_matches(name, known) or list(known)
        raise UnknownConsumer(
            f"{name!r} is no consumer; use one of {', '.join(close)}, "
            "or name your own as package.module:function or path/to/file.py:function"
        )
    return known[name]


def names() -> tuple[str, ...]:
    """All names that `check --consumer` takes."""
    return tuple(entries())


def _origin(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
