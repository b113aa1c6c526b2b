"""The catalogue of requirements: a view of the rules, which are in one folder for each group.

The ids are stable: a rule never gets another id, and an id never gets another requirement. So
reports, files of known failures and bug trackers can use them. A row of `rules.toml` has texts for
readers (`why`, `fix`, `example`, which `explain` prints) and data for the judge (`level`,
`preconditions`, `steps`). The decorators of `registry` join the checks to the rows; a row without a
check and a check without a row are errors when the package is imported.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
import difflib
from fnmatch import fnmatchcase
from functools import lru_cache
import hashlib
from importlib.resources import files
import json
from types import MappingProxyType
from typing import Any

from .. import interfaces
from ..info.steps import Stage
from .registry import CHECKS, CONSUMER_CHECKS
from ..tables import table

VERSION: str
"""The version of the catalogue: its `digest`. The package sets it when all checks are there."""

LEVELS = MappingProxyType(
    {
        "MUST": "a text demands it, or breaking it makes memory access undefined; "
        "breaking it fails a run",
        "SHOULD": "a text recommends it, or texts disagree; breaking it is an advisory",
        "ROBUST": "no text demands it, and a good library survives the case; "
        "breaking it is reported as fragile",
        "SUITE": "no text mentions it; breaking it is an advisory",
    }
)
"""The levels of rules, with their meaning."""

SEVERITIES = MappingProxyType(
    {
        "memory": "memory that does not belong to the array is read or written, "
        "or the process crashes",
        "values": "other values than those of the array are read, or writes are lost",
        "leak": "memory is never freed",
        "refusal": "input that the text allows is refused",
        "form": "the description breaks the text, without a known effect on a consumer",
    }
)
"""What a defect leads to, worst first: findings are ranked by it."""

VERBS = MappingProxyType(
    {
        "must": "the sentence says must, must not, is not allowed, or only … is accepted",
        "shall": 'the sentence says "shall"',
        "required": "the sentence says required, requires or requirement",
        "undefined": "the sentence states a fact about memory; "
        "if it is wrong, memory access is undefined",
        "should": "the sentence says should or recommended",
        "may": "the sentence says may or can",
        "none": "the sentence has no verb of obligation, or there is no sentence",
    }
)
"""The modal verbs of sources; the word itself can differ, such as "must not" or "disallowed"."""

ROLES = MappingProxyType(
    {
        "request": "a producer makes what a plan requests; "
        "it fails for a death before any other rule's step",
        "undescribed": "DLPack refuses elements that it cannot describe",
        "exit": "a process ends without a crash when no export is active",
        "probe": "asking for an attribute has an answer",
        "anything": "holds for any object, with an interface or without",
    }
)
"""What the engine asks the catalogue for: the rules that it needs by their meaning."""

BINDING = frozenset({"must", "shall", "required", "undefined"})
"""The verbs on which a MUST can rest."""

KINDS = MappingProxyType(
    {
        "published": "a published text that binds every library",
        "gt4py": "a document of GT4Py; it binds only libraries that have its attributes",
        "own": "gridbuf's own specification; "
        "it binds only producers that promise its allocation rules",
    }
)
"""Kinds of documents. A broken rule on a document that is not "published" is never a finding about
another library.
"""


@dataclass(frozen=True)
class Group:
    """The rules of one folder. `heading` is the group's name in reports, `interface` in findings.

    `position` is its place in the catalogue. `is_published`: its rules bind every library.
    """

    id: str
    position: int
    subject: str
    heading: str
    interface: str
    is_published: bool = True


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
    """The sentence that a rule rests on: its place, its modal verb, and what it says in our words.

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

    `since` is the edition that introduced its text (`editions.toml`; own texts have none there).
    `preconditions` are the ids of rules that must hold before the suite can judge this rule.
    `oracle` names the methods of the check. `steps` are the steps of a measurement (`info.steps`)
    at which a death or a hang of the process breaks this rule. `roles` are keys of `ROLES`.
    `on_device`: only the device's own answer settles it for device memory. `holds_for_all`: the
    rule judges every producer, although its text is not a published one. A rule without a check has
    the reason in `untestable`. If a rule applies to both sides, `fix` is for producers and
    `consumer_fix` for consumers.

    `source` is the sentence that the rule rests on. `consumer_level` and `consumer_source` are
    those of the consumers' half where they differ.
    """

    id: str
    level: str
    requirement: str
    source: Source
    since: str = ""
    preconditions: tuple[str, ...] = ()
    oracle: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    on_device: bool = False
    holds_for_all: bool = False
    why: str = ""
    fix: str = ""
    example: str = ""
    untestable: str | None = None
    consumer_level: str = ""
    consumer_source: Source | None = None
    consumer_fix: str = ""

    def __post_init__(self) -> None:
        for side in ("producer", "consumer"):
            if self.level_of(side) not in LEVELS:
                raise ValueError(
                    f"{self.id}: level {self.level_of(side)!r}; use one of {', '.join(LEVELS)}"
                )

    @property
    def group(self) -> str:
        """The letters before the hyphen: a key of `GROUPS`."""
        return self.id.partition("-")[0]

    def judges(self, side: str) -> bool:
        """Whether the rule applies to a "producer" or to a "consumer"."""
        if side == "consumer":
            return self.id in CONSUMER_CHECKS
        return self.id in CHECKS or self.untestable is not None

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
        """Whether it rests on a text for all libraries; other rules are not findings about them."""
        return self.source.text.kind == "published"

    @property
    def is_for_storages(self) -> bool:
        """Whether the rule judges only arrays with GT4Py's attributes and producers that declare
        features of storages (`scope`).
        """
        return not (self.is_published or self.holds_for_all)


@lru_cache(maxsize=1)
def documents() -> MappingProxyType[str, Document]:
    """The texts that rules rest on, by id."""
    packages = (__package__, *interfaces.packages())
    tables = [table(one, "documents.toml") for one in packages if _has(one, "documents.toml")]
    return MappingProxyType(
        {id_: Document(id_, **row) for one in tables for id_, row in one.items()}
    )


def rule_of(id_: str, row: dict[str, Any]) -> Rule:
    """The rule of a row.

    Raises ValueError for a row that is not complete, or whose rule nothing decides.
    """
    row = dict(row)
    for side in ("", "consumer_"):
        if f"{side}source" in row:
            row[f"{side}source"] = Source(**row[f"{side}source"], says=row.pop(f"{side}says"))
    for key in ("preconditions", "oracle", "steps", "roles"):
        row[key] = tuple(row.get(key, ()))
    missing = {f.name for f in fields(Rule)[1:4]} - row.keys()
    if missing:
        raise ValueError(f"{id_}: {', '.join(sorted(missing))} missing in its row of rules.toml")
    rule = Rule(id_, **row)
    for step in rule.steps:
        Stage.of(step)
    strange = set(rule.roles) - ROLES.keys()
    if strange:
        raise ValueError(f"{id_}: role {strange.pop()!r}; use one of {', '.join(ROLES)}")
    if not rule.sides:
        raise ValueError(
            f"{id_} has no check; decorate one with check({id_!r}), or say why as untestable"
        )
    return rule


def _has(package: str, file: str) -> bool:
    return files(package).joinpath(file).is_file()


_TABLES = {
    package: table(package, "rules.toml")
    for package in interfaces.packages()
    if _has(package, "rules.toml")
}
_BY_PACKAGE = {package: Group(**rows.pop("group")) for package, rows in _TABLES.items()}
PACKAGES = tuple(sorted(_TABLES, key=lambda package: _BY_PACKAGE[package].position))
"""The packages of the groups, in the order of the catalogue."""
GROUPS = MappingProxyType({_BY_PACKAGE[package].id: _BY_PACKAGE[package] for package in PACKAGES})
"""All groups by id, in the order of the catalogue."""


@lru_cache(maxsize=1)
def _rules() -> MappingProxyType[str, Rule]:
    rules = {}
    for package, group in zip(PACKAGES, GROUPS):
        for id_, row in _TABLES[package].items():
            rules[id_] = rule_of(id_, row)
            if rules[id_].group != group:
                raise ValueError(f"rules.toml of {package} has {id_}; its ids are {group}-nn")
    unknown = {*CHECKS, *CONSUMER_CHECKS} - rules.keys()
    if unknown:
        raise ValueError(f"checks without a row in rules.toml: {', '.join(sorted(unknown))}")
    return MappingProxyType(rules)


@lru_cache(maxsize=1)
def _steps() -> MappingProxyType[str, str]:
    return MappingProxyType({step: rule.id for rule in _rules().values() for step in rule.steps})


def rule_of_step(step: str) -> str:
    """The rule that a death or hang at a step breaks: of the step, or its part before "=" or ":".

    It is the rule with the role "request" if the process died before its first step, or overwrote
    its step.
    """
    steps = _steps()
    found = (steps.get(key) for key in (step, step.partition("=")[0], step.partition(":")[0]))
    return next(filter(None, found), "") or with_role("request")[0]


@lru_cache
def with_role(role: str) -> tuple[str, ...]:
    """The ids of the rules with a role (`ROLES`)."""
    return tuple(rule.id for rule in _rules().values() if role in rule.roles)


def load() -> dict[str, Rule]:
    """All rules by id, in the order of the catalogue."""
    return dict(_rules())


def digest() -> str:
    """What decides how a library is judged, as a short text: ids, levels and preconditions, not
    texts for readers.
    """
    rules = [
        (r.id, {side: r.level_of(side) for side in r.sides}, r.preconditions, r.is_for_storages)
        for r in load().values()
    ]
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:12]


def matching(patterns: str | None = None, side: str | None = None) -> list[Rule]:
    """The rules, judged or not, that match a pattern, in the order of the catalogue.

    Parameters
    ----------
    patterns : str, optional
        A comma-separated list of ids, wildcards, groups ("DL") and levels ("ROBUST"), in any case.
        None or an empty string matches all rules.
    side : {"producer", "consumer"}, optional
        The side whose levels count. By default a level of either side matches.

    Returns
    -------
    list of Rule
        The rules.

    Raises
    ------
    UnknownRule
        If a pattern does not match any rule.

    Examples
    --------
    >>> [rule.id for rule in matching("xa-03,DL-0*")][:2]
    ['DL-01', 'DL-02']
    """
    rules = _rules().values()
    wanted = [part.strip().upper() for part in (patterns or "").split(",")]
    wanted = list(filter(None, wanted)) or ["*"]
    for pattern in wanted:
        if not any(_matches(rule, pattern, None) for rule in rules):
            raise UnknownRule(_unknown(pattern))
    return [rule for rule in rules if any(_matches(rule, pattern, side) for pattern in wanted)]


def _matches(rule: Rule, pattern: str, side: str | None) -> bool:
    sides = ("producer", "consumer") if side is None else (side,)
    levels = (rule.level_of(one) for one in sides)
    return pattern == rule.group or pattern in levels or fnmatchcase(rule.id, pattern)


def _unknown(pattern: str) -> str:
    """The message for a pattern without a rule, with up to four similar words."""
    words = [*_rules(), *GROUPS, *LEVELS]
    neighbours = [word for word in words if len(pattern) > 3 and word.startswith(pattern[:4])]
    close = (neighbours or difflib.get_close_matches(pattern, words, cutoff=0.5))[:4]
    hint = f"did you mean {', '.join(close)}? " if close else ""
    return (
        f"no rule matches {pattern!r}; {hint}Ids look like PB-01, patterns like 'DL-*,XA-03', "
        f"groups are {', '.join(GROUPS)}, levels {', '.join(LEVELS)}"
    )


def select(patterns: str | None = None, side: str = "producer") -> list[Rule]:
    """The rules of `matching` that a side is judged by."""
    return [rule for rule in matching(patterns, side) if rule.judges(side)]
