"""Parts of the suite that its core does not name: GT4Py, CUDA, adapters of libraries, scoreboard.

A plug-in is a package in this folder, or one that an installed package announces in the
entry-point group `gridbuf_conformance.plugins`. It may have what an interface has (see
`interfaces`), and
- `libraries.toml`: libraries with their producers and consumers (`libraries`);
- `known`: files of known failures, one for each library;
- `command`: a command of the command line;
- `documents.toml`: the texts that its rules rest on.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from pkgutil import iter_modules

__all__ = ["GROUP", "packages"]

GROUP = "gridbuf_conformance.plugins"


@cache
def packages() -> tuple[str, ...]:
    """The packages of all plug-ins: those of this package, then those of entry points, by name."""
    own = sorted(f"{__name__}.{module.name}" for module in iter_modules(__path__))
    announced = {point.value for point in metadata.entry_points(group=GROUP)}
    return (*own, *sorted(announced.difference(own)))
