"""Which rules judge an object: those of the chosen editions; those of storages only in scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from ..info import Observation
from ..tables import table

_NOT_A_STORAGE = (
    "for arrays with GT4Py's attributes, and producers that declare layouts, alignment, dims "
    "or halo; ask for it with --storage (storage=True)"
)


class UnknownEdition(ValueError):
    """A document or an edition that the rules do not cite; the message lists those that they do."""


@lru_cache(maxsize=1)
def editions() -> MappingProxyType[str, tuple[str, ...]]:
    """The editions of each document, oldest first."""
    rows = table(__package__, "editions.toml").items()
    return MappingProxyType({name: tuple(row["editions"]) for name, row in rows})


def chosen(spec: str | Iterable[str] | None) -> dict[str, str]:
    """The edition of each document that a text such as "array-api-2024.12,dlpack-1.0" chooses.

    Raises UnknownEdition.
    """
    parts = (spec or "").split(",") if spec is None or isinstance(spec, str) else spec
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in parts)):
        name, _, edition = part.lower().rpartition("-")
        if edition not in editions().get(name, ()):
            raise UnknownEdition(_unknown(part))
        if found.setdefault(name, edition) != edition:
            raise UnknownEdition(f"{name} has two editions, {found[name]} and {edition}; keep one")
    return found


def _unknown(part: str) -> str:
    name = part.lower().rpartition("-")[0]
    shown = {name: editions()[name]} if name in editions() else editions()
    known = "; ".join(f"{name}-{', '.join(numbers)}" for name, numbers in shown.items())
    return f"no rule cites an edition {part!r}; the known ones are {known}"


class _Rule(Protocol):
    """What is asked of a rule of the catalogue, which imports this module."""

    @property
    def since(self) -> str: ...

    @property
    def is_for_storages(self) -> bool: ...


@dataclass(frozen=True)
class Scope:
    """`storage`: the producer declares features of storages, or the user asks for their rules.

    `editions`: the chosen edition of a document; rules whose text is newer do not judge.
    """

    storage: bool = False
    editions: Mapping[str, str] = field(default_factory=dict)

    def has_storage(self, observation: Observation) -> bool:
        """Whether the rules of storages judge an object."""
        return self.storage or speaks_gt4py(observation)

    def newer(self, rule: _Rule) -> str:
        """Why a rule is too new for the chosen editions; empty if it is not."""
        name, _, edition = rule.since.rpartition("-")
        if name not in self.editions:
            return ""
        order = editions()[name].index
        is_newer = order(edition) > order(self.editions[name])
        return f"its text is of {rule.since}, newer than --spec" if is_newer else ""

    def excluded(self, rule: _Rule, observation: Observation) -> str:
        """Why a rule does not judge an object; empty if it does."""
        is_for_others = rule.is_for_storages and not self.has_storage(observation)
        return _NOT_A_STORAGE if is_for_others else self.newer(rule)


def speaks_gt4py(observation: Observation) -> bool:
    """Whether the object has an attribute of GT4Py."""
    stated = {value.t for value in observation.gt4py.values()}
    return observation.root.gt_data is not None or bool(stated - {"none", "error"})
