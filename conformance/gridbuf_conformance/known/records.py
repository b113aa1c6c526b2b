"""Known failures of a library, each pinned to a plan: a gate passes until something else fails.

A file contains TOML records (`KEYS`):

```toml
[[known]]
rule = "XA-08"
producer = "mylib"                # or: consumer = "mylib.asarray"
versions = ">=1.2,<2"             # optional: PEP 440; default: every version
plan = '{"shape":[2,1]}'          # as in the replay command
outcome = "FAIL"                  # or CRASH, TIMEOUT, UNSTABLE; this is the default
actual = "0000000000000000 (AI)"  # optional: a part of the text of the failure
reason = "strides leave out the padding of the rows"
link = "https://…/issues/12"      # optional
```

A run replays each pinned plan of its library and version once, before all other plans and without
shrinking. If the rule has the recorded outcome and text there, it *fails as known*: XFAIL. If the
rule holds, it is XPASS, and the run fails, because the record is out of date. Any other failure is
reported as such. On every other plan, a record that fails as known explains each failure of its
rule with its outcome. The suite cannot tell more failures of one rule apart. It reports failures
without explanation, so a rule with both is FAIL.

A record that does not match anything is an error (KnownError, exit code 2): an unknown rule, an
unknown library, a plan that the library declines. If the machine or another failure prevents the
judgement, the report has a note instead. It also has a note if all records of the library are about
other versions. A process that dies at its end does not belong to a plan; a record of a CRASH covers
it.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from .. import libraries, plugins
from ..outcomes import Outcome, Verdict
from ..plan import Plan
from ..rules import catalogue
from ..targets import Target, canonical, is_path
from ..text import shorten

if TYPE_CHECKING:
    from importlib.abc import Traversable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = (
    *("rule", "producer", "consumer", "versions", "plan", "outcome", "actual", "reason", "link"),
)
SIDES = ("producer", "consumer")
OUTCOMES = tuple(map(str, (Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNSTABLE)))
"""The outcomes that a record may have."""

_MAX_MESSAGE_CHARS = 400
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*known[ \t]*\]\]", re.MULTILINE)


class KnownError(ValueError):
    """A file of known failures is not usable; the message names file, place and remedy."""


@dataclass(frozen=True)
class Known:
    """One record. `place` is its position: "known.toml, entry 2, line 9"."""

    rule: str
    side: str
    target: str
    plan: Plan
    outcome: Outcome = Outcome.FAIL
    versions: str = ""
    actual: str = ""
    reason: str = ""
    link: str = ""
    place: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str, Plan]:
        """Of two records with the same identity, the later layer is used."""
        return self.rule, self.side, self.target, self.versions, self.plan

    @property
    def note(self) -> str:
        """The note of a report next to the failure."""
        reason = self.reason or "no reason recorded"
        return f"known: {reason}" + (f" ({self.link})" if self.link else "")

    def is_same(self, verdict: Verdict) -> bool:
        """Whether a failure on the pinned plan is the recorded one."""
        return verdict.outcome in alike(self.outcome) and self.actual in verdict.actual

    def is_of(self, origin: str) -> bool:
        """Whether a type and its version ("numpy.ndarray 2.4.6") are of this record's library."""
        kind, _, version = origin.partition(" ")
        return library_of(kind) == library_of(self.target) and _admits(self, version)


def library_of(name: str) -> str:
    """The first part of the name of a target or a type."""
    return name.partition(".")[0]


def alike(outcome: Outcome) -> tuple[Outcome, ...]:
    """The outcomes that a record covers: a process that dies sometimes (UNSTABLE) may CRASH."""
    if outcome is Outcome.UNSTABLE:
        return (Outcome.UNSTABLE, Outcome.CRASH)
    return (outcome,)


# Files
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownFailures:
    """The records of all files, in order. If `lenient`, a record that matches nothing is a note."""

    entries: tuple[Known, ...] = ()
    lenient: bool = False

    @classmethod
    def load(cls, paths: Iterable[str | Path]) -> KnownFailures:
        """Reads files; later override earlier ones. Raises KnownError for an invalid record."""
        layered: dict[tuple[Any, ...], Known] = {}
        for path in paths:
            for known in read(Path(path)):
                layered[known.identity] = known
        return cls(tuple(layered.values()))

    @classmethod
    def of(cls, given: Any) -> KnownFailures:
        """Converts the argument `known` of callers: one path, several paths, records, or None."""
        if isinstance(given, KnownFailures):
            return given
        return cls.load([given] if isinstance(given, (str, Path)) else given or ())

    def of_target(self, side: str, names: Collection[str]) -> list[Known]:
        """The records of one library, for all its versions."""
        return [one for one in self.entries if one.side == side and one.target in names]

    def concerning(self, side: str, names: Collection[str], version: str) -> list[Known]:
        """A library's records in its version; raises KnownError if it cannot be ordered."""
        return [known for known in self.of_target(side, names) if _admits(known, version)]

    def require_names(self, side: str, judged: Collection[str]) -> None:
        """Raises KnownError for a record of a library that is not judged and unknown to the suite.

        It checks only records of the judged side: a file may contain records of both.
        """
        for known in self.entries:
            if known.side != side:
                continue
            if (
                known.target in judged
                or is_path(known.target)
                or known.target in _registered(known.side)
            ):
                continue
            candidates = [*judged, *_registered(known.side)]
            close = difflib.get_close_matches(known.target, candidates, n=3) or sorted(judged)
            raise KnownError(
                f"{known.place}: {known.side} {known.target!r} is neither judged here nor known; "
                f"write one of {', '.join(close)}, or remove the record"
            )


def covered(entries: Iterable[Known]) -> str:
    """The versions that the records name, as in "2.4.6" or "2.4.6 or >=3,<4"."""
    return " or ".join(dict.fromkeys(one.versions.removeprefix("==") for one in entries))


def _admits(known: Known, version: str) -> bool:
    if not known.versions:
        return True
    try:
        public = Version(version.partition(" ")[0])
        return SpecifierSet(known.versions).contains(public, prereleases=True)
    except ValueError as error:
        raise KnownError(
            f"{known.place}: versions is {known.versions!r}, but {known.target} calls itself "
            f"{version!r}: {error}; remove the key"
        ) from None


def _registered(side: str) -> Collection[str]:
    if side == "consumer":
        from .. import named_consumers as registry
    else:
        from .. import producers as registry  # type: ignore[no-redef]
    return registry.entries()


def shipped() -> dict[str, Traversable]:
    """The files that come with the suite, by the name of their library."""
    folders = [files(package).joinpath("known") for package in plugins.packages()]
    found = [file for folder in folders if folder.is_dir() for file in folder.iterdir()]
    return {file.name.removesuffix(".toml"): file for file in sorted(found, key=lambda f: f.name)}


def read(path: Path) -> list[Known]:
    """The records of one file (or of a shipped file, by name), in order; raises KnownError."""
    place: Path | Traversable = path
    if not path.exists():
        with contextlib.suppress(libraries.UnknownLibrary):
            place = shipped().get(libraries.find(str(path)).module, path)
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise KnownError(
            f"cannot read known failures {str(path)!r}: {reason}; name a TOML file, or one of "
            f"{', '.join(shipped())}"
        ) from None
    return parse(text, place.name)


def parse(text: str, name: str) -> list[Known]:
    """The records of the text of a file; messages call the file `name`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise KnownError(f"{name} is not TOML: {error}; correct it there") from None
    other = [key for key in document if key != "known"]
    if other:
        raise KnownError(f"{name}: unknown key {other[0]!r}; a file holds [[known]] records only")
    records = document.get("known", [])
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise KnownError(
            f"{name}: known is not a list of records; write [[known]], in two brackets"
        )
    lines = [text.count("\n", 0, found.start()) + 1 for found in _HEADER.finditer(text)]
    seen: dict[tuple[Any, ...], str] = {}
    entries = []
    for number, record in enumerate(records):
        line = f", line {lines[number]}" if len(lines) == len(records) else ""
        known = _known(record, f"{name}, entry {number + 1}{line}")
        if known.identity in seen:
            raise KnownError(
                f"{known.place}: the same record is at {seen[known.identity]}; keep one"
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
            rule=_rule(record["rule"], record.get("outcome", "FAIL"), sides[0]),
            side=sides[0],
            target=Target(canonical(record[sides[0]], sides[0])).shown,
            plan=plan_of(record["plan"], sides[0]),
            outcome=_outcome(record.get("outcome", "FAIL")),
            versions=_versions(record.get("versions", "")),
            actual=record.get("actual", ""),
            reason=record["reason"].strip(),
            link=record.get("link", "").strip(),
            place=place,
        )
    except RecursionError:
        raise KnownError(f"{place}: the plan is nested too deeply; see plan.schema.json") from None
    except ValueError as error:
        raise KnownError(f"{place}: {shorten(str(error), _MAX_MESSAGE_CHARS)}") from None


def _rule(text: str, outcome: str, side: str) -> str:
    rules = catalogue.load()
    if text not in rules:
        close = ", ".join(difflib.get_close_matches(text.upper(), rules, n=3, cutoff=0.5))
        hint = f"did you mean {close}?" if close else "see: gridbuf-conformance list rules"
        raise ValueError(f"rule is {text!r}, which does not exist; {hint}")
    level = rules[text].level_of(side)
    if level != "MUST" and outcome == Outcome.FAIL:
        word = "fragile" if level == "ROBUST" else "an advisory"
        raise ValueError(
            f"{text} is a {level}: breaking it is {word} and does not fail a run; remove the record"
        )
    return text


def _outcome(text: str) -> Outcome:
    if text not in OUTCOMES:
        raise ValueError(f"outcome is {text!r}, must be one of {', '.join(OUTCOMES)}; correct it")
    return Outcome(text)


def _versions(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(
            f"{text!r} is not a version specifier; "
            "write clauses such as >=2.0, ==2.1.* or ~=2.1.3, with commas between"
        ) from None
    return text


def plan_of(text: str, side: str) -> Plan:
    """The plan (for a consumer the export) of the JSON of a record; raises ValueError."""
    if side == "producer":
        return Plan.from_json(text)
    from ..exports.export import plan_of_dict  # only consumers' plans are exports

    return plan_of_dict(text, side=side)
