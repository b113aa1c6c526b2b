"""Which rules judge an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..info import Observation

if TYPE_CHECKING:
    from .catalogue import Rule

__all__ = ["Scope", "speaks_gt4py"]

_NOT_A_STORAGE = (
    "for arrays with GT4Py's attributes, and producers that declare layouts, alignment, dims or halo; "
    "ask for it with --storage (storage=True)"
)


@dataclass(frozen=True)
class Scope:
    """`storage`: the producer declares features of the storage specification, or the user asks for its rules."""

    storage: bool = False

    def has_storage(self, observation: Observation) -> bool:
        """Whether the rules of storages judge an object."""
        return self.storage or speaks_gt4py(observation)

    def excluded(self, rule: Rule, observation: Observation) -> str:
        """Why a rule does not judge an object; empty if it does."""
        is_excluded = rule.is_for_storages and not self.has_storage(observation)
        return _NOT_A_STORAGE if is_excluded else ""


def speaks_gt4py(observation: Observation) -> bool:
    """Whether the object has an attribute of GT4Py."""
    stated = [value.t for value in observation.gt4py.values()]
    return observation.root.gt_data is not None or bool({*stated} - {"none", "error"})
