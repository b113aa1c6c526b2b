"""The names of libraries: the tables of `libraries.toml`, and how a written name finds
its library.

A library has an import name (`PIL`), a package (`pillow`) and a name for people (Pillow). Each of
the three is accepted wherever a library is named. Case does not count; hyphens, underscores and
spaces are equal.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from . import plugins
from .tables import table

_MAX_MATCHES = 4
_STANDARD = "python"


class UnknownLibrary(LookupError):
    """A name that no library has. The message has the nearest names."""


@dataclass(frozen=True)
class Library:
    """One library.

    `needs` is what is imported (empty for the standard library), `install` a command, and `row` the
    table of the file, which also has the producers and consumers. `home` is the package of that
    file.
    """

    name: str
    needs: str = ""
    package: str = ""
    install: str = ""
    row: Mapping[str, Any] = field(default_factory=dict, compare=False)
    home: str = field(default="", compare=False)

    @property
    def module(self) -> str:
        """The top module: the name in records of the scoreboard."""
        return self.needs.partition(".")[0] or (_STANDARD if self.row else self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """All accepted names. Of libraries that share one, that with the earlier place is meant."""
        return self.needs or self.module, self.name, self.package, self.module

    def __str__(self) -> str:
        others = dict.fromkeys(name for name in self.names[::2] if name and name != self.name)
        return f"{self.name} ({', '.join(others)})" if others else self.name


@lru_cache(maxsize=1)
def load() -> tuple[Library, ...]:
    """All libraries, in the order of the files of the plug-ins."""
    with_rows = [
        one for one in plugins.packages() if files(one).joinpath("libraries.toml").is_file()
    ]
    return tuple(
        _library(row, package)
        for package in with_rows
        for row in table(package, "libraries.toml")["library"]
    )


def _library(row: dict[str, Any], home: str) -> Library:
    needs = row.get("needs", "")
    package = row.get("package", needs)
    install = row.get("install", f"pip install {package}" if package else "")
    return Library(row.get("name", needs), needs, package, install, row, home)


def find(name: str, others: Iterable[str] = ()) -> Library:
    """The library of any of its names; raises UnknownLibrary.

    `others` are names of libraries that are not in the file, for example of an installed package
    with entry points.
    """
    known = {**{plain(other): Library(other) for other in others}, **_index()}
    if plain(name) not in known:
        close = ", ".join(dict.fromkeys(known[one].name for one in nearest(name, known)))
        hint = f"did you mean {close}? " if close else ""
        raise UnknownLibrary(
            f"{name!r} is not a library; {hint}See: gridbuf-conformance list libraries"
        )
    return known[plain(name)]


@lru_cache(maxsize=1)
def _index() -> dict[str, Library]:
    index: dict[str, Library] = {}
    for names in zip(*(library.names for library in load())):
        for name, library in zip(names, load()):
            if name:
                index.setdefault(plain(name), library)
    return index


def plain(name: str) -> str:
    """A name as names are compared."""
    return name.lower().replace("-", "_").replace(" ", "_")


def nearest(name: str, known: Iterable[str], count: int = _MAX_MATCHES) -> list[str]:
    """The names that are most like `name`, whatever their case; of equal ones the first."""
    by_plain = {plain(one): one for one in reversed([*known])}
    close = difflib.get_close_matches(plain(name), by_plain, n=count, cutoff=0.5)
    return [by_plain[one] for one in close]
