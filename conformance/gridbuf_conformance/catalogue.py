"""The catalogue of requirements: one row for each rule, read from `catalogue.toml`.

The ids are stable: a rule never gets another id, and an id never gets another requirement. So reports, files
of known failures and bug trackers can use them. A row has texts for readers (`why`, `fix`, `example`, which
`explain` prints) and data for the judge (`level`, `preconditions`, the name of its check).

A row of `scope` "later" has an id and a requirement that this version of the suite does not judge yet.
`list` shows it, and `select` leaves it out.
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
"""Rule groups in the order of the catalogue, with the subject of each group."""


class UnknownRule(ValueError):
    """A pattern that does not match any rule of the catalogue."""


@dataclass(frozen=True)
class Rule:
    """One requirement.

    `since` is the version of the published text that introduced it. `preconditions` are the ids of rules
    that must hold before the suite can judge this rule. `oracle` names the methods of the check. `check` is
    the name of the function that judges a producer (`module.function` of `gridbuf_conformance.rules`), or
    None with a reason in `untestable`. `consumer_check` is the function for a consumer. If a rule applies to
    both sides, `fix` is for producers and `consumer_fix` for consumers.
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
        """Whether the rule applies to a "producer" or to a "consumer"."""
        if side == "consumer":
            return self.consumer_check is not None
        return self.check is not None or self.untestable is not None

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that the rule applies to."""
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
            raise ValueError(f"catalogue.toml: {rule.id} is repeated; an id names one requirement")
        rules[rule.id] = rule
    return MappingProxyType(rules)


def load() -> dict[str, Rule]:
    """All rules by id, in the order of the catalogue, including rules of scope "later"."""
    return dict(_rules())


def select(patterns: str | None = None, side: str = "producer") -> list[Rule]:
    """Selects the rules in scope for a side, in the order of the catalogue.

    Parameters
    ----------
    patterns : str, optional
        A comma-separated list of ids and wildcards. None or an empty string selects all rules. A pattern that
        matches only rules of scope "later" selects nothing.
    side : {"producer", "consumer"}, optional
        The side that the rules apply to.

    Returns
    -------
    list of Rule
        The selected rules.

    Raises
    ------
    UnknownRule
        If a pattern does not match any rule.

    Examples
    --------
    >>> [rule.id for rule in select("XA-03,DL-0*")][:2]
    ['DL-01', 'DL-02']
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
