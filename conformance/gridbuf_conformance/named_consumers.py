"""The consumers that have a name: built-in ones, and those that installed packages announce.

A consumer is a function of one exporter (`consumer`). A built-in one is a row in `libraries.toml`
of a plug-in. Packages announce theirs in the entry-point group `gridbuf_conformance.consumers`.
"""

from __future__ import annotations

from .producers.registry import Registry


class UnknownConsumer(LookupError):
    """A name that is neither built in nor announced; the message lists close matches."""


_REGISTRY = Registry(
    "consumer", UnknownConsumer, "package.module:function or path/to/file.py:function"
)
BUILT_IN, ENTRY_POINT_GROUP = _REGISTRY.built_in, _REGISTRY.group
entries, find, names = _REGISTRY.entries, _REGISTRY.find, _REGISTRY.names
of_library = _REGISTRY.of_library
