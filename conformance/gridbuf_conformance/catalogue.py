"""The catalogue of requirements: one row a rule, read from `catalogue.toml`.

The ids are stable: a rule is never renumbered and an id is never used for another requirement, so that
reports, known-failure files and other people's bug trackers can name them. A row carries what a person
wants to know about the rule (`why`, `fix`, `example`: what `explain` prints) and what the judge needs
(`level`, `preconditions`, the name of its check).

Rows of `scope` "later" hold an id and a requirement that this version of the suite does not judge yet.
They are listed, and they are not selected.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["GROUPS", "LEVELS", "Rule", "UnknownRule", "load", "select"]

LEVELS = ("MUST", "SHOULD", "SUITE")
GROUPS = MappingProxyType(
    {
        "AI": "NumPy array interface, the dict",
        "AS": "NumPy array interface, the C struct",
        "CAI": "CUDA array interface",
        "PB": "buffer protocol",
        "DL": "DLPack, the C structs",
        "DP": "DLPack, the Python methods",
        "DX": "DLPack, the C exchange table",
        "GT": "GT4Py and allocation",
        "XA": "agreement of interfaces",
    }
)
"""Rule groups in the order of the catalogue, with what each is about."""


class UnknownRule(ValueError):
    """A pattern that matches no rule of the catalogue."""


@dataclass(frozen=True)
class Rule:
    """One requirement.

    `since` is the version of the published text that introduced it; `preconditions` are the ids that have
    to hold before this rule can say anything of its own; `oracle` names the ways the check uses; `check`
    is the name of the function that decides (`module.function` of `gridbuf_conformance.rules`), or None
    with a reason in `untestable`; `consumer_check` is the same for a
    consumer. A rule may be judged on one side only, or on both; then `fix` speaks to producers and
    `consumer_fix` to consumers.
    """

    id: str
    level: str
    requirement: str
    source: str
    since: str = ""
    preconditions: tuple[str, ...] = ()
    oracle: tuple[str, ...] = ()
    why: str = ""
    fix: str = ""
    example: str = ""
    check: str | None = None
    consumer_check: str | None = None
    consumer_fix: str = ""
    untestable: str | None = None
    scope: str = "now"

    @property
    def group(self) -> str:
        """The letters before the hyphen: a key of `GROUPS`."""
        return self.id.partition("-")[0]

    def judges(self, side: str) -> bool:
        """Whether the rule says something of a "producer" or of a "consumer"."""
        if side == "consumer":
            return self.consumer_check is not None
        return self.check is not None or self.untestable is not None

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that the rule is judged on."""
        return tuple(side for side in ("producer", "consumer") if self.judges(side))

    @property
    def in_scope(self) -> bool:
        """Whether this version of the suite judges the rule."""
        return self.scope == "now"


@lru_cache(maxsize=1)
def _rules() -> MappingProxyType[str, Rule]:
    text = files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8")
    rules: dict[str, Rule] = {}
    for row in tomllib.loads(text)["rule"]:
        for key in ("preconditions", "oracle"):
            row[key] = tuple(row.get(key, ()))
        rule = Rule(**row)
        if rule.id in rules:
            raise ValueError(f"catalogue.toml: {rule.id} stands twice; an id names one requirement")
        rules[rule.id] = rule
    return MappingProxyType(rules)


def load() -> dict[str, Rule]:
    """All rules by id, in the order of the catalogue (the ones of scope "later" included)."""
    return dict(_rules())


def select(patterns: str | None = None, side: str = "producer") -> list[Rule]:
    """The rules in scope that match a comma-separated list of ids and wildcards, in catalogue order,
    and that are judged on a side, "producer" or "consumer".

    `None` or an empty string selects all. Raises `UnknownRule` for a pattern that matches no rule at all;
    a pattern that only matches rules of scope "later" selects nothing.
    """
    rules = _rules().values()
    wanted = [part.strip() for part in (patterns or "*").split(",") if part.strip()] or ["*"]
    for pattern in wanted:
        if not any(fnmatchcase(rule.id, pattern) for rule in rules):
            raise UnknownRule(
                f"no rule matches {pattern!r}; ids look like PB-01, patterns like 'DL-*,XA-03', "
                f"groups are {', '.join(GROUPS)}"
            )
    return [
        rule
        for rule in rules
        if rule.in_scope
        and rule.judges(side)
        and any(fnmatchcase(rule.id, pattern) for pattern in wanted)
    ]
