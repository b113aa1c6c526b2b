"""Producers and consumers by name: the rows of `libraries.toml`, and what packages announce.

A name is that of a row or an entry point, or any name of a library (`libraries`). It refers to a
target (`package.module:Class`), which the worker loads. Whether its library is installed is found
out without importing it: an import may take seconds, and a broken library must fail in the worker,
not here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata, util
from typing import Any

from .. import libraries
from ..abi.gpu import has_gpu
from ..libraries import Library, plain


@dataclass(frozen=True)
class Entry:
    """One producer or consumer by name.

    `target` is loaded by a worker, and `library` is the library that it drives. `also` has the
    import names that it needs and the library does not. `install` is the command that installs them
    all. `needs_gpu` says that nothing is made without a CUDA device. `rules` is a producer's
    default selection of rules: a library whose plain arrays are NumPy arrays is judged by the
    allocation, not by the exports. `takes` has the interfaces that a consumer is documented to take
    (None: found out).
    """

    name: str
    target: str
    summary: str
    library: Library
    install: str = ""
    rules: str | None = None
    needs_gpu: bool = False
    also: tuple[str, ...] = ()
    takes: tuple[str, ...] | None = None

    @property
    def needs(self) -> str:
        """The import name of the library; empty for the standard library."""
        return self.library.needs

    @property
    def is_usable(self) -> bool:
        """Whether the library is installed, and the device that it needs is there."""
        return self.is_installed and (not self.needs_gpu or has_gpu())

    @property
    def is_installed(self) -> bool:
        """Whether all that it needs can be found; nothing is imported. It may still be broken."""
        return not self.missing

    @property
    def missing(self) -> str:
        """The first import name that cannot be found, or an empty text."""
        needs = (self.needs, *self.also) if self.needs else self.also
        return next((name for name in needs if not _is_found(name)), "")


@dataclass(frozen=True)
class Registry:
    """The entries of one side: "producer" or "consumer". `find` raises `unknown`; `own` says how to
    name another target.
    """

    side: str
    unknown: type[LookupError]
    own: str

    @property
    def group(self) -> str:
        """The entry points by which a package announces its own."""
        return f"gridbuf_conformance.{self.side}s"

    @cached_property
    def built_in(self) -> dict[str, Entry]:
        """The entries of this package by name, in the order in which they are shown."""
        return {entry.name: entry for library in libraries.load() for entry in self._of(library)}

    def entries(self) -> dict[str, Entry]:
        """All entries by name: the built-in ones, then those of entry points, by name.

        A built-in name cannot be taken over by an entry point.
        """
        announced = {
            point.name: _announced(point)
            for point in sorted(metadata.entry_points(group=self.group), key=lambda p: p.name)
            if point.name not in self.built_in
        }
        return {**self.built_in, **announced}

    def find(self, name: str) -> Entry:
        """The entry of a name.

        The name of a library is that of its first producer, or of its only consumer.

        Raises an error with the nearest names if there is none, or if a library has several
        consumers.
        """
        if name in self.built_in:
            return self.built_in[name]
        known = self.entries()
        if name in known:
            return known[name]
        by_plain = {plain(one): one for one in reversed(known)}
        if plain(name) in by_plain:
            return known[by_plain[plain(name)]]
        own = self.of_library(name)
        if own and (self.side == "producer" or len(own) == 1):
            return own[0]
        if own:
            names = ", ".join(entry.name for entry in own)
            raise self.unknown(f"{name} has {len(own)} {self.side}s; name one of {names}")
        named = (n for one in libraries.load() if self._has(one) for n in one.names)
        close = libraries.nearest(name, [*known, *named]) or list(known)
        raise self.unknown(
            f"{name!r} is not a {self.side}; use one of {', '.join(close)}, "
            f"or name your own as {self.own}"
        )

    def of_library(self, name: str) -> list[Entry]:
        """The entries of a library, by any of its names; the standard library has no main array."""
        try:
            library = libraries.find(name)
        except libraries.UnknownLibrary:
            return []
        return [one for one in self.entries().values() if library.needs and one.library == library]

    def names(self) -> tuple[str, ...]:
        """All names that `find` takes."""
        return tuple(self.entries())

    def _has(self, library: Library) -> bool:
        return bool(library.needs and library.row.get(f"{self.side}s"))

    def _of(self, library: Library) -> Iterator[Entry]:
        """The entries of one library."""
        for name, row in library.row.get(f"{self.side}s", {}).items():
            also = tuple(row.get("also", ()))
            yield Entry(
                name,
                _target(library.home, row),
                row["summary"],
                library,
                install=" ".join((library.install, *also)),
                rules=row.get("rules"),
                needs_gpu=library.row.get("needs_gpu", False),
                also=also,
                takes=tuple(row["takes"]) if "takes" in row else None,
            )


def _target(home: str, row: dict[str, Any]) -> str:
    if "class" in row:
        return f"{home}.{row['class']}"
    function: str = row["function"]
    return function if ":" in function else f"{home}.functions:{function}"


def _is_found(name: str) -> bool:
    """Whether a package can be found.

    A folder of that name without a module on the path (a namespace package, without origin) is not
    the library.
    """
    package, _, module = name.partition(".")
    found = util.find_spec(package)
    if module and found is not None:
        # Such a package is only a folder (`mlx`, `iree`), which is the only kind that this imports.
        found = util.find_spec(name)
    return found is not None and found.origin is not None


def _announced(point: metadata.EntryPoint) -> Entry:
    """The entry of an entry point; its library is the top of its name."""
    summary = f"announced by {_origin(point)}"
    return Entry(point.name, point.value, summary, Library(point.name.partition(".")[0]))


def _origin(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
