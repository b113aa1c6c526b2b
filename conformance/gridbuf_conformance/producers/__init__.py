"""The built-in producers, and those of installed packages.

A built-in producer is a file in this folder and a row in `libraries.toml`. A package announces its
own producer by an entry point in the group `gridbuf_conformance.producers`:

```toml
[project.entry-points."gridbuf_conformance.producers"]
mylib = "mylib.testing:Producer"
```
"""

from __future__ import annotations

import importlib
from typing import Any

from .registry import Entry, Registry

__all__ = [
    "BUILT_IN",
    "ENTRY_POINT_GROUP",
    "Entry",
    "NotInstalled",
    "UnknownProducer",
    "entries",
    "find",
    "load",
    "names",
    "of_library",
]


class UnknownProducer(LookupError):
    """A name that is neither built in nor announced; the message lists close matches."""


class NotInstalled(ImportError):
    """A known producer whose library is absent; the message says how to install it."""


_REGISTRY = Registry("producer", UnknownProducer, "package.module:Class or path/to/file.py:Class")
BUILT_IN, ENTRY_POINT_GROUP = _REGISTRY.built_in, _REGISTRY.group
entries, find, names = _REGISTRY.entries, _REGISTRY.find, _REGISTRY.names
of_library = _REGISTRY.of_library


def load(name: str) -> Any:
    """Import a producer class by name: no other function here imports the library (worker's use).

    Raises UnknownProducer, NotInstalled, and whatever the library's own import raises.
    """
    entry = find(name)
    if not entry.is_installed:
        raise NotInstalled(f"{entry.missing} is not installed; {entry.install}")
    module, _, attribute = entry.target.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found
