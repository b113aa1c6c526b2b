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
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "BINDING",
    "GROUPS",
    "KINDS",
    "LEVELS",
    "VERBS",
    "Document",
    "Rule",
    "Source",
    "UnknownRule",
    "documents",
    "load",
    "select",
]

LEVELS = MappingProxyType(
    {
        "MUST": "a text demands it, or breaking it makes memory access undefined; breaking it fails a run",
        "SHOULD": "a text recommends it, or texts disagree; breaking it is an advisory",
        "ROBUST": "no text demands it, and a good library survives the case; breaking it is reported as fragile",
        "SUITE": "no text mentions it; breaking it is an advisory",
    }
)
"""The levels of rules, with their meaning."""

VERBS = MappingProxyType(
    {
        "must": "the sentence says must, must not, is not allowed, or only … is accepted",
        "shall": 'the sentence says "shall"',
        "required": "the sentence says required, requires or requirement",
        "undefined": "the sentence states a fact about memory; if it is wrong, memory access is undefined",
        "should": "the sentence says should or recommended",
        "may": "the sentence says may or can",
        "none": "the sentence has no verb of obligation, or there is no sentence",
    }
)
"""The modal verbs of sources. The word itself can have another form, such as "must not" or "disallowed"."""

BINDING = frozenset({"must", "shall", "required", "undefined"})
"""The verbs on which a MUST can rest."""

KINDS = MappingProxyType(
    {
        "published": "a published text that binds every library",
        "gt4py": "a document of GT4Py; it binds only libraries that have its attributes",
        "own": "gridbuf's own specification; it binds only producers that promise its allocation rules",
    }
)
"""Kinds of documents. A broken rule on a document that is not "published" is never a finding about another library."""

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
class Document:
    """A text that rules rest on. `url` is the page or folder to which `Source.at` is appended."""

    id: str
    title: str
    version: str
    url: str
    kind: str = "published"


@dataclass(frozen=True)
class Source:
    """The sentence that a rule rests on: where it is, its modal verb, and what it says in our words.

    `at` is an anchor, or a file with lines, relative to the URL of the document.
    """

    document: str
    section: str
    at: str
    verb: str
    says: str

    @property
    def text(self) -> Document:
        """The document of the sentence."""
        return documents()[self.document]

    @property
    def url(self) -> str:
        """A link to the sentence."""
        return self.text.url + self.at

    def __str__(self) -> str:
        return f"{self.text.title} ({self.text.version}), {self.section}"


@dataclass(frozen=True)
class Rule:
    """One requirement.

    `since` is the version of the published text that introduced it. `preconditions` are the ids of rules
    that must hold before the suite can judge this rule. `oracle` names the methods of the check. `check` is
    the name of the function that judges a producer (`module.function` of `gridbuf_conformance.rules`), or
    None with a reason in `untestable`. `consumer_check` is the function for a consumer. If a rule applies to
    both sides, `fix` is for producers and `consumer_fix` for consumers.

    `source` is the sentence that the rule rests on. `consumer_level` and `consumer_source` are those of the
    consumers' half where they differ.
    """

    id: str
    level: str
    requirement: str
    source: Source
    since: str = ""
    preconditions: tuple[str, ...] = ()
    oracle: tuple[str, ...] = ()
    why: str = ""
    fix: str = ""
    example: str = ""
    check: str | None = None
    consumer_check: str | None = None
    consumer_fix: str = ""
    consumer_level: str = ""
    consumer_source: Source | None = None
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

    def level_of(self, side: str) -> str:
        """The level for a "producer" or a "consumer"."""
        return (self.consumer_level if side == "consumer" else "") or self.level

    def source_of(self, side: str) -> Source:
        """The sentence that binds a "producer" or a "consumer"."""
        return (self.consumer_source if side == "consumer" else None) or self.source

    @property
    def is_published(self) -> bool:
        """Whether the rule rests on a text for every library. If not, it is never a finding about another library."""
        return self.source.text.kind == "published"

    @property
    def in_scope(self) -> bool:
        """Whether this version of the suite judges the rule."""
        return self.scope == "now"


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    text = files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = tomllib.loads(text)
    return tables


@lru_cache(maxsize=1)
def documents() -> MappingProxyType[str, Document]:
    """The texts that rules rest on, by id."""
    return MappingProxyType({row["id"]: Document(**row) for row in _tables()["document"]})


@lru_cache(maxsize=1)
def _rules() -> MappingProxyType[str, Rule]:
    rules: dict[str, Rule] = {}
    for table in _tables()["rule"]:
        row = dict(table)
        for key in ("source", "consumer_source"):
            if key in row:
                row[key] = Source(**row[key])
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
        A comma-separated list of ids, wildcards and levels ("ROBUST"). None or an empty string selects all
        rules. A pattern that matches only rules of scope "later" selects nothing.
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
        if pattern not in LEVELS and not any(fnmatchcase(rule.id, pattern) for rule in rules):
            raise UnknownRule(
                f"no rule matches {pattern!r}; ids look like PB-01, patterns like 'DL-*,XA-03', "
                f"groups are {', '.join(GROUPS)}, levels {', '.join(LEVELS)}"
            )
    return [
        rule
        for rule in rules
        if rule.in_scope
        and rule.judges(side)
        and any(
            pattern == rule.level_of(side) or fnmatchcase(rule.id, pattern) for pattern in wanted
        )
    ]
