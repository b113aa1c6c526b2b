"""The summary of reports: the matrix of libraries by rule groups, and the findings, worst first.

The console and the HTML page show the same matrix and the same order of findings, because both ask
here. Nothing in this module knows how anything looks, apart from the words and signs for an
outcome, which must be the same everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from ..outcomes import FAILED, Outcome
from ..rules import catalogue
from ..rules.catalogue import Rule
from ..text import plural

_MAX_IDS_LISTED = 8

ReportDict = Mapping[str, Any]

GROUPS: dict[str, str] = {
    group.id: group.heading
    for group in sorted(catalogue.GROUPS.values(), key=lambda group: not group.is_published)
}
"""Rule groups in the order of the matrix's columns, each with the title its heading has."""

KINDS: dict[str, tuple[str, str, str]] = {
    "failed": ("✗", "x", "a MUST is broken, or the producer crashed or hung"),
    "error": ("‼", "E", "the suite itself went wrong"),
    "known": ("≈", "~", "a failure on record, and it still fails as known"),
    "fragile": ("△", "^", "legal, but a robust library handles the case better"),
    "advisory": ("!", "!", "a SHOULD is not met, or published texts disagree"),
    "passed": ("✓", "+", "holds on every plan"),
    "silent": ("·", ".", "not judged: unsupported, untested, or blocked by another failure"),
}
"""What an outcome means for the reader: (sign, sign without Unicode, meaning), worst first."""


def side_of(report: ReportDict) -> str:
    """Whether a report is a "producer"'s or a "consumer"'s; without the key it is a producer's."""
    return str(report["target"].get("side") or "producer")


def kind_of(outcome: str) -> str:
    """Which of `KINDS` an outcome belongs to; outcomes of a later suite version count as silent."""
    if outcome in {str(failed) for failed in FAILED}:
        return "failed"
    return {
        str(Outcome.ERROR): "error",
        str(Outcome.FRAGILE): "fragile",
        str(Outcome.ADVISORY): "advisory",
        str(Outcome.PASS): "passed",
        str(Outcome.XFAIL): "known",
    }.get(outcome, "silent")


def group_of(rule_id: str) -> str:
    """The matrix column of a rule: the letters of its id."""
    return rule_id.split("-", 1)[0]


@dataclass(frozen=True)
class RuleText:
    """What a reader needs to know of a rule; empty fields where the catalogue says nothing."""

    requirement: str = ""
    source: str = ""
    url: str = ""
    verb: str = ""
    says: str = ""
    since: str = ""
    why: str = ""
    fix: str = ""
    example: str = ""


def side_of_rule(rule: Mapping[str, Any]) -> str:
    """Whether a rule's failures are a "producer"'s or a "consumer"'s, which have exports."""
    plans = [failure.get("plan") or {} for failure in rule.get("failures") or ()]
    return "consumer" if any("export" in plan for plan in plans) else "producer"


def rule_text(catalogue: Mapping[str, Any], rule_id: str, side: str = "producer") -> RuleText:
    """The catalogue's words on a rule, or empty ones for an id that a newer suite wrote."""
    rule = catalogue.get(rule_id)
    if rule is None:
        return RuleText(requirement="(this version of the suite does not know this rule)")
    words = {name: str(getattr(rule, name, "") or "") for name in RuleText.__dataclass_fields__}
    source = rule.source_of(side) if isinstance(rule, Rule) else None
    if source is not None:
        words.update(source=str(source), url=source.url, verb=source.verb, says=source.says)
    if side == "consumer":
        words["fix"] = str(getattr(rule, "consumer_fix", "") or words["fix"])
    return RuleText(**words)


def remedy(rule: Mapping[str, Any], text: RuleText) -> str:
    """How to comply with a broken rule; nothing after a death or hang, which has another cause."""
    return "" if rule["outcome"] in ("CRASH", "TIMEOUT", "UNSTABLE") else text.fix


@dataclass(frozen=True)
class Absent:
    """A library the survey could not judge: its name, why, and the command that helps.

    `failed` says that it had to be judged, because it is installed or was named: the exit code is
    then 4.
    """

    name: str
    reason: str
    remedy: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Cell:
    """The outcomes of one library in one rule group, counted."""

    outcomes: Counter[str] = field(default_factory=Counter)

    def of_kind(self, kind: str) -> int:
        """How many rules have an outcome of that kind (see `KINDS`)."""
        return sum(n for outcome, n in self.outcomes.items() if kind_of(outcome) == kind)

    @property
    def judged(self) -> int:
        """How many rules said anything about the library."""
        return sum(self.outcomes.values()) - self.of_kind("silent")

    @property
    def kind(self) -> str:
        """The worst kind present; `silent` for a group in which nothing was judged."""
        return next((kind for kind in KINDS if self.of_kind(kind)), "silent")


@dataclass(frozen=True)
class Row:
    """One library: its name, version, a cell per group, and the cell over all groups.

    `label` is the name, with as much of version, Python, platform and profile as no other row has.
    """

    name: str
    version: str
    label: str
    cells: Mapping[str, Cell]
    report: ReportDict

    @cached_property
    def total(self) -> Cell:
        """All the outcomes of the library, whatever their group."""
        return Cell(sum((cell.outcomes for cell in self.cells.values()), Counter()))


@dataclass(frozen=True)
class Matrix:
    """Rows in the order of the reports, columns in the order of `GROUPS` (unknown ones last)."""

    groups: tuple[str, ...]
    rows: tuple[Row, ...]


def labels(reports: Sequence[ReportDict]) -> list[str]:
    """A unique name for each report: the library's, and what tells it from the others."""
    info = [
        [
            str(report["target"]["name"]),
            str(report["target"].get("version") or ""),
            f"Python {report['target'].get('python') or '?'}",
            str(report["target"].get("platform") or ""),
            str(report["profile"]),
            side_of(report),
        ]
        for report in reports
    ]
    found = [parts[0] for parts in info]
    for place in range(1, len(info[0]) if info else 1):
        counts = Counter(found)
        found = [
            f"{label} {parts[place]}".rstrip() if counts[label] > 1 else label
            for label, parts in zip(found, info)
        ]
    counts = Counter(found)
    return [
        f"{label} #{found[: n + 1].count(label)}" if counts[label] > 1 else label
        for n, label in enumerate(found)
    ]


def matrices(reports: Sequence[ReportDict]) -> list[tuple[str, Matrix]]:
    """The producers' and the consumers' matrix, if they have rows; else one without rows."""
    names = labels(reports)
    found = []
    for side in ("producer", "consumer"):
        chosen = [number for number, report in enumerate(reports) if side_of(report) == side]
        if chosen:
            part = [reports[number] for number in chosen]
            found.append((side, matrix(part, [names[number] for number in chosen])))
    return found or [("producer", Matrix((), ()))]


def matrix(reports: Sequence[ReportDict], names: Sequence[str] | None = None) -> Matrix:
    """Counts every rule of every report under its library and group; leaves out empty groups.

    `names` are the rows' labels, by default those among these reports.
    """
    rows = []
    for report, label in zip(reports, names or labels(reports)):
        cells: dict[str, Cell] = {}
        for rule in report["rules"]:
            cells.setdefault(group_of(rule["id"]), Cell()).outcomes[rule["outcome"]] += 1
        target = report["target"]
        rows.append(Row(target["name"], target.get("version") or "", label, cells, report))
    present = {group for row in rows for group in row.cells}
    known = [group for group in GROUPS if group in present]
    return Matrix(tuple(known + sorted(present - set(known))), tuple(rows))


@dataclass(frozen=True)
class Finding:
    """One broken rule, with the entry of each library in its report."""

    rule_id: str
    level: str
    entries: tuple[tuple[str, Mapping[str, Any]], ...]

    @property
    def outcome(self) -> str:
        """The worst outcome among the libraries."""
        return min((str(rule["outcome"]) for _, rule in self.entries), key=_severity)

    @property
    def has_drawing(self) -> bool:
        """Whether any failure is one of layout."""
        failures = (failure for _, rule in self.entries for failure in rule.get("failures") or ())
        return any(failure.get("drawing") for failure in failures)


_ORDER = ("CRASH", "TIMEOUT", "UNSTABLE", "FAIL", "XPASS", "ERROR", "FRAGILE", "ADVISORY")


def _severity(outcome: str) -> int:
    return _ORDER.index(outcome) if outcome in _ORDER else len(_ORDER)


def findings(reports: Iterable[ReportDict], kinds: Iterable[str]) -> list[Finding]:
    """The rules with an outcome of one of these kinds, one finding a rule, the most telling first.

    Crashes come before failures, and a cause before what may follow from it. Among equals come
    layout failures (they have a drawing, and reach memory that is not theirs), then the rule that
    more libraries break, then the group's order.
    """
    wanted = set(kinds)
    entries: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    judged = list(reports)
    for report, label in zip(judged, labels(judged)):
        for rule in report["rules"]:
            if kind_of(rule["outcome"]) in wanted:
                entries.setdefault(rule["id"], []).append((label, rule))
    groups = list(GROUPS)

    def rank(finding: Finding) -> tuple[int, int, bool, int, int, str]:
        group = group_of(finding.rule_id)
        column = groups.index(group) if group in groups else len(groups)
        breadth = -len(finding.entries)
        return (
            _severity(finding.outcome),
            len(_causes(finding.rule_id) & entries.keys()),
            not finding.has_drawing,
            breadth,
            column,
            finding.rule_id,
        )

    found = (Finding(rule_id, es[0][1]["level"], tuple(es)) for rule_id, es in entries.items())
    return sorted(found, key=rank)


@cache
def _causes(rule_id: str) -> frozenset[str]:
    """The preconditions of a rule, and theirs."""
    rule = catalogue.load().get(rule_id)
    before = frozenset(rule.preconditions if rule is not None else ())
    return before.union(*map(_causes, before))


def telling(found: Sequence[Finding], most: int, most_per_library: int = 3) -> list[Finding]:
    """The findings to show if there is room for a few, of each library only its share."""
    shown: list[Finding] = []
    counts: Counter[str] = Counter()
    for finding in found:
        libraries = {name for name, _ in finding.entries}
        if len(shown) < most and any(counts[name] < most_per_library for name in libraries):
            shown.append(finding)
            counts.update(libraries)
    return shown


def conclusion(report: ReportDict) -> tuple[str, str]:
    """The conclusion of a report as (kind, sentence): "conforms: 34 rules judged."."""
    cell = matrix([report]).rows[0].total
    if not report["rules"]:
        return "error", "was not judged: nothing was selected."
    if broken := cell.of_kind("error"):
        total, also = plural(len(report["rules"]), "rule"), cell.of_kind("failed")
        remark = f", and it failed {plural(also, 'rule')}" if also else ""
        return (
            "error",
            f"was not fully judged: the suite failed on {broken} of {total}{remark}.",
        )
    if failed := cell.of_kind("failed"):
        ids = [rule["id"] for rule in report["rules"] if kind_of(rule["outcome"]) == "failed"]
        listed = ", ".join(ids[:_MAX_IDS_LISTED])
        if len(ids) > _MAX_IDS_LISTED:
            listed += f" and {len(ids) - _MAX_IDS_LISTED} more"
        total = plural(cell.judged, "rule")
        return "failed", f"does not conform: {failed} of {total} failed ({listed})."
    if set(report.get("plans") or ()) == {"unsupported"}:
        return "error", "was not judged: it declined every plan."
    if set(report.get("plans") or ()) == {"refused"}:
        return "error", "was not judged: it refused every export."
    blocked = [rule for rule in report["rules"] if rule["outcome"] == "BLOCKED"]
    if blocked and not cell.judged:
        first = blocked[0]
        return (
            "error",
            f"was not judged: {first['id']} is blocked ({first['note']}); "
            "select what blocks it, too.",
        )
    if not cell.judged:
        return "silent", "was not judged: no rule applies to its interfaces."
    advisories, known = cell.of_kind("advisory"), cell.of_kind("known")
    fragile = cell.of_kind("fragile")
    remark = f", {fragile} fragile" if fragile else ""
    remark += f", {advisories} with an advisory" if advisories else ""
    remark += f", {plural(known, 'known failure')}" if known else ""
    return "passed", f"conforms: {plural(cell.judged, 'rule')} judged{remark}."
