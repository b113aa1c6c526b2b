"""Known failures: what a library breaks today, pinned to one plan each, so that a gate can be closed behind it.

A file holds TOML records (`KEYS`):

```toml
[[known]]
rule = "XA-08"
producer = "mylib"                # or: consumer = "mylib.asarray"
versions = ">=1.2,<2"             # optional: PEP 440; default: every version
plan = '{"shape":[2,1]}'          # as the replay command has it
outcome = "FAIL"                  # or CRASH, TIMEOUT, UNSTABLE; this is the default
actual = "0000000000000000 (AI)"  # optional: a piece of the failure's text
reason = "rows are taken for packed"
link = "https://…/issues/12"      # optional
```

In a run, each pinned plan that concerns its library and version is replayed once, before all others
and without search or shrinking. It *fails as known* if the rule has the recorded outcome there, with
the recorded text in it: XFAIL. If the rule holds: XPASS, and the run fails, for the record is stale. If
it fails in another way, that is the failure it is. On every other plan a failure of that rule counts as
explained exactly if it has the outcome of a record that fails as known; the suite cannot tell more
faults of one rule apart than that. What is not explained is reported as ever, so a rule with both is FAIL.

A record that can say nothing is an error (KnownError, exit code 2), not a silence: an unknown rule, a
library that is neither judged nor known by that name, a plan that the library declines. Only where
the machine or another failure keeps the rule from being judged there, the report notes it instead. A
process that dies as it ends belongs to no plan; a record of a CRASH stands for it as well.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import catalogue
from .outcomes import Outcome, Verdict
from .plan import Plan
from .specifiers import Specifiers
from .targets import Target
from .text import shorten

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "KEYS",
    "OUTCOMES",
    "SIDES",
    "Known",
    "KnownError",
    "KnownFailures",
    "alike",
    "parse",
    "plan_of",
    "read",
]

KEYS = (
    *("rule", "producer", "consumer", "versions", "plan", "outcome", "actual", "reason", "link"),
)
SIDES = ("producer", "consumer")
OUTCOMES = tuple(map(str, (Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNSTABLE)))
"""The outcomes that a record may have."""

_MAX_MESSAGE_CHARS = 400
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*known[ \t]*\]\]", re.MULTILINE)


class KnownError(ValueError):
    """A known-failures file that cannot be used as it is; the text names the file, the place and the remedy."""


@dataclass(frozen=True)
class Known:
    """One record. `place` says where it stands: "known.toml, entry 2, line 9"."""

    rule: str
    side: str
    target: str
    plan: Plan
    outcome: Outcome = Outcome.FAIL
    versions: Specifiers = Specifiers("", ())
    actual: str = ""
    reason: str = ""
    link: str = ""
    place: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str, Plan]:
        """Two records of the same identity speak of the same thing: the later layer's holds."""
        return self.rule, self.side, self.target, self.versions.text, self.plan

    @property
    def note(self) -> str:
        """What a report says beside the failure."""
        reason = self.reason or "no reason recorded"
        return f"known: {reason}" + (f" ({self.link})" if self.link else "")

    def is_same(self, verdict: Verdict) -> bool:
        """Whether a failure on the pinned plan is the recorded one."""
        return verdict.outcome in alike(self.outcome) and self.actual in verdict.actual


def alike(outcome: Outcome) -> tuple[Outcome, ...]:
    """What dies only sometimes may die twice: a CRASH is an UNSTABLE's failure too."""
    if outcome is Outcome.UNSTABLE:
        return (Outcome.UNSTABLE, Outcome.CRASH)
    return (outcome,)


# Files -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownFailures:
    """The records of all given files, in order. With `lenient`, what matches nothing is told, not raised."""

    entries: tuple[Known, ...] = ()
    lenient: bool = False

    @classmethod
    def load(cls, paths: Iterable[str | Path]) -> KnownFailures:
        """Reads the files, later ones over earlier ones; raises KnownError for what is no record."""
        layered: dict[tuple[Any, ...], Known] = {}
        for path in paths:
            for known in read(Path(path)):
                layered[known.identity] = known
        return cls(tuple(layered.values()))

    @classmethod
    def of(cls, given: Any) -> KnownFailures:
        """What callers may pass as `known`: a path, several, the loaded records, or None."""
        if isinstance(given, KnownFailures):
            return given
        return cls.load([given] if isinstance(given, (str, Path)) else given or ())

    def concerning(self, side: str, names: Collection[str], version: str) -> list[Known]:
        """The records of one library in its version; KnownError if that version cannot be ordered."""
        return [
            known
            for known in self.entries
            if known.side == side and known.target in names and _admits(known, version)
        ]

    def require_names(self, side: str, judged: Collection[str]) -> None:
        """Raises KnownError for a record of a library that is neither judged nor known to the suite.

        Only records of the side that was judged are looked at: a file may hold both.
        """
        for known in self.entries:
            if known.side != side:
                continue
            is_written = ":" in known.target or known.target.endswith(".py")
            if known.target in judged or is_written or known.target in _registered(known.side):
                continue
            candidates = [*judged, *_registered(known.side)]
            close = difflib.get_close_matches(known.target, candidates, n=3) or sorted(judged)
            raise KnownError(
                f"{known.place}: {known.side} {known.target!r} is neither judged here nor known; "
                f"write one of {', '.join(close)}, or remove the record"
            )


def _admits(known: Known, version: str) -> bool:
    try:
        return known.versions.admit(version.partition(" ")[0])
    except ValueError as error:
        raise KnownError(
            f"{known.place}: versions is {known.versions.text!r}, but {known.target} calls itself "
            f"{version!r}: {error}; remove the key"
        ) from None


def _registered(side: str) -> Collection[str]:
    if side == "consumer":
        from . import named_consumers as registry
    else:
        from . import producers as registry  # type: ignore[no-redef]
    return registry.entries()


def read(path: Path) -> list[Known]:
    """The records of one file, in order; raises KnownError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise KnownError(
            f"cannot read known failures {str(path)!r}: {reason}; name a TOML file"
        ) from None
    return parse(text, path.name)


def parse(text: str, name: str) -> list[Known]:
    """The records of a file's text; `name` is what messages call it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise KnownError(f"{name} is no TOML: {error}; correct it there") from None
    other = [key for key in document if key != "known"]
    if other:
        raise KnownError(f"{name}: unknown key {other[0]!r}; a file holds [[known]] records only")
    records = document.get("known", [])
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise KnownError(f"{name}: known is no list of records; write [[known]], in two brackets")
    lines = [text.count("\n", 0, found.start()) + 1 for found in _HEADER.finditer(text)]
    seen: dict[tuple[Any, ...], str] = {}
    entries = []
    for number, record in enumerate(records):
        line = f", line {lines[number]}" if len(lines) == len(records) else ""
        known = _known(record, f"{name}, entry {number + 1}{line}")
        if known.identity in seen:
            raise KnownError(
                f"{known.place}: the same record stands at {seen[known.identity]}; keep one"
            )
        seen[known.identity] = known.place
        entries.append(known)
    return entries


def _known(record: Mapping[str, Any], place: str) -> Known:
    """One record, checked key by key."""
    for key, value in record.items():
        if key not in KEYS:
            close = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(KEYS)}"
            raise KnownError(f"{place}: unknown key {key!r}; {hint}")
        if not isinstance(value, str):
            raise KnownError(f"{place}: {key} is {value!r}, must be a string; put it into quotes")
    sides = [side for side in SIDES if record.get(side)]
    if len(sides) != 1:
        raise KnownError(
            f"{place}: it must name either a producer or a consumer; write one of them"
        )
    missing = [key for key in ("rule", "plan") if key not in record] + (
        [] if "reason" in record else ["reason"]
    )
    if missing:
        raise KnownError(f"{place}: the key {missing[0]} is missing; add it")
    try:
        return Known(
            rule=_rule(record["rule"], record.get("outcome", "FAIL")),
            side=sides[0],
            target=Target(record[sides[0]]).shown,
            plan=plan_of(record["plan"], sides[0]),
            outcome=_outcome(record.get("outcome", "FAIL")),
            versions=Specifiers.of(record.get("versions", "")),
            actual=record.get("actual", ""),
            reason=record["reason"].strip(),
            link=record.get("link", "").strip(),
            place=place,
        )
    except RecursionError:
        raise KnownError(f"{place}: the plan is nested too deeply; see plan.schema.json") from None
    except ValueError as error:
        raise KnownError(f"{place}: {shorten(str(error), _MAX_MESSAGE_CHARS)}") from None


def _rule(text: str, outcome: str) -> str:
    rules = catalogue.load()
    if text not in rules:
        close = ", ".join(difflib.get_close_matches(text.upper(), rules, n=3, cutoff=0.5))
        hint = f"did you mean {close}?" if close else "see: gridbuf-conformance list rules"
        raise ValueError(f"rule is {text!r}, which is no rule; {hint}")
    if rules[text].level != "MUST" and outcome == Outcome.FAIL:
        level = rules[text].level
        raise ValueError(
            f"{text} is a {level}: breaking it is an advisory and fails no run; remove the record"
        )
    return text


def _outcome(text: str) -> Outcome:
    if text not in OUTCOMES:
        raise ValueError(f"outcome is {text!r}, must be one of {', '.join(OUTCOMES)}; correct it")
    return Outcome(text)


def plan_of(text: str, side: str) -> Plan:
    """The plan, or for a consumer the export, of a record's JSON; raises ValueError."""
    if side == "producer":
        return Plan.from_json(text)
    from .exports.export import plan_of_dict  # only consumers' plans are exports

    return plan_of_dict(text, side=side)
