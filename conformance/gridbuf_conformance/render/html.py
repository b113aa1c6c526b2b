"""Reports as one HTML page: no other file, no network, readable without scripts.

The page is rule-centred: above, the matrix of libraries by rule groups; below, each rule once, with
its explanation and the result of every library. The script only filters existing content.
Templates, styles and script are in `templates/` and are put into the page; a content security
policy forbids it to load anything. Everything that came from a producer is escaped by Jinja and
cleaned by `text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ..plan import Plan
from ..text import clean, describe_plan, one_line, plural, shorten
from .drawing import to_svg
from .summary import (
    GROUPS,
    KINDS,
    Absent,
    Cell,
    RuleText,
    conclusion,
    group_of,
    kind_of,
    labels,
    matrices,
    rule_text,
    side_of,
)

_TOLD = ("failed", "error", "known", "fragile", "advisory")
_LETTERS = {kind: "r" if kind == "fragile" else kind[0] for kind in KINDS}
_MANY_ROWS = 14
_MAX_VALUE_CHARS = 20_000
_MAX_SEARCH_CHARS = 2_000


@dataclass(frozen=True)
class _Failure:
    """One failing plan as the page shows it."""

    expected: str
    actual: str
    note: str
    plan: str
    drawing: Markup
    replay: str


@dataclass(frozen=True)
class _Entry:
    """What one library did under one rule."""

    library: str
    outcome: str
    kind: str
    plans: int
    note: str
    failures: tuple[_Failure, ...]


@dataclass(frozen=True)
class _Card:
    """One rule: its explanation and an entry for each library that was asked, by its label."""

    id: str
    level: str
    group: str
    text: RuleText
    entries: list[_Entry] = field(default_factory=list)
    consumer_fixes: set[str] = field(default_factory=set)
    """How a consumer keeps the rule, if one was asked and it differs from a producer's way."""

    @property
    def kind(self) -> str:
        """The worst kind of any entry."""
        present = {entry.kind for entry in self.entries}
        return next((kind for kind in KINDS if kind in present), "silent")

    @property
    def consumer_fix(self) -> str:
        """The words for consumers; empty if they are the producers'."""
        return next(iter(self.consumer_fixes - {self.text.fix}), "")

    @property
    def broken(self) -> list[_Entry]:
        """The entries that are shown in full: failures, also known ones, advisories, errors."""
        return [entry for entry in self.entries if entry.kind in _TOLD]

    @property
    def passed(self) -> list[str]:
        """The libraries for which the rule holds."""
        return [entry.library for entry in self.entries if entry.kind == "passed"]

    @property
    def silent(self) -> list[str]:
        """The libraries for which the rule was not judged."""
        return [entry.library for entry in self.entries if entry.kind == "silent"]

    def letters(self, libraries: Sequence[str]) -> str:
        """What the page's script filters by: a letter for each library's kind, "-" if not asked."""
        kinds = {entry.library: _LETTERS[entry.kind] for entry in self.entries}
        return "".join(kinds.get(library, "-") for library in libraries)

    @property
    def remarks(self) -> list[tuple[str, list[_Entry]]]:
        """Notes of the other entries, each with the libraries that have it."""
        grouped: dict[str, list[_Entry]] = {}
        for entry in self.entries:
            if entry.note and entry not in self.broken:
                grouped.setdefault(entry.note, []).append(entry)
        return list(grouped.items())


def render(
    reports: Sequence[Mapping[str, Any]],
    absent: Sequence[Absent] = (),
    *,
    catalogue: Mapping[str, Any] | None = None,
) -> str:
    """The page for these reports. Same reports, same page: it holds no date and no random part."""
    if catalogue is None:
        from ..rules.catalogue import load

        catalogue = load()
    tables = matrices(reports)
    rows = [row for _, table in tables for row in table.rows]
    present = {group for _, table in tables for group in table.groups}
    cards = _cards(reports, catalogue)
    counts = {kind: sum(row.total.of_kind(kind) for row in rows) for kind in KINDS}
    has_problems = any(counts[kind] for kind in _TOLD)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            title=_title(reports),
            info=_info(reports),
            tables=tables,
            rows=rows,
            libraries=[one_line(row.label) for row in rows],
            many_rows=_MANY_ROWS,
            groups={
                group: GROUPS.get(group, group)
                for group in [*GROUPS, *sorted(present - GROUPS.keys())]
                if group in present
            },
            kinds=KINDS,
            counts=counts,
            letters=_LETTERS,
            first_kinds=list(_TOLD) if has_problems else list(KINDS),
            conclusions=[conclusion(report) for report in reports],
            notes=[
                (name, note)
                for report, name in zip(reports, labels(reports))
                for note in report.get("notes") or ()
            ],
            cards=cards,
            absent=absent,
            empty_cell=Cell(),
        )
    )


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates, which escape everything that comes from a library."""
    environment = Environment(
        loader=PackageLoader("gridbuf_conformance.render", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["clean"] = clean
    environment.filters["one_line"] = one_line
    environment.filters["plural"] = plural
    environment.filters["breakable"] = _breakable
    environment.filters["prose"] = _prose
    environment.globals["verbatim"] = lambda name: Markup(_source(environment, name))
    return environment


def _breakable(name: object) -> Markup:
    """A name that may be broken where its parts begin: package.module:Class in a narrow column."""
    return Markup(re.sub(r"([.:/_])(?=\w)", r"\1<wbr>", str(escape(one_line(name)))))


def _prose(text: str) -> Markup:
    """A text of the catalogue: text between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _source(environment: Environment, name: str) -> str:
    """The style sheet or the script, which go into the page unchanged."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _title(reports: Sequence[Mapping[str, Any]]) -> str:
    if len(reports) != 1:
        return "Survey of array libraries"
    target = reports[0]["target"]
    return " ".join(filter(None, (clean(target["name"]), clean(target.get("version") or ""))))


def _info(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """What all the reports have in common: suite, profile, Python, platform."""
    info: dict[str, None] = {}
    for report in reports:
        target, suite = report["target"], report["suite"]
        info[f"{suite['name']} {suite['version']}"] = None
        info[f"profile {report['profile']}"] = None
        if target.get("python"):
            info[f"Python {target['python']}"] = None
        if target.get("platform"):
            info[target["platform"]] = None
    return [clean(part) for part in info]


def _cards(reports: Sequence[Mapping[str, Any]], catalogue: Mapping[str, Any]) -> list[_Card]:
    """One card a rule, grouped as the matrix's columns, in the catalogue's order in a group."""
    cards: dict[str, _Card] = {}
    for report, label in zip(reports, labels(reports)):
        for rule in report["rules"]:
            card = cards.get(rule["id"])
            if card is None:
                text = rule_text(catalogue, rule["id"])
                card = cards[rule["id"]] = _Card(
                    rule["id"], rule["level"], group_of(rule["id"]), text
                )
            if side_of(report) == "consumer":
                card.consumer_fixes.add(rule_text(catalogue, rule["id"], "consumer").fix)
            card.entries.append(_entry(one_line(label), rule))
    columns = {group: column for column, group in enumerate(GROUPS)}
    places = {rule_id: place for place, rule_id in enumerate(catalogue)}
    last = len(places)
    return sorted(
        cards.values(),
        key=lambda card: (
            columns.get(card.group, len(columns)),
            places.get(card.id, last),
            card.id,
        ),
    )


def _entry(library: str, rule: Mapping[str, Any]) -> _Entry:
    failures = tuple(map(_failure, rule.get("failures") or ()))
    outcome = rule["outcome"]
    return _Entry(
        library, outcome, kind_of(outcome), rule["plans"], _value(rule.get("note")), failures
    )


def _failure(failure: Mapping[str, Any]) -> _Failure:
    plan = failure.get("plan")
    drawing = failure.get("drawing")
    return _Failure(
        _value(failure.get("expected")),
        _value(failure.get("actual")),
        _value(failure.get("note")),
        shorten(describe_plan(plan, Plan()), _MAX_SEARCH_CHARS) if plan else "",
        Markup(to_svg(drawing)) if drawing else Markup(""),
        clean(failure.get("replay") or ""),
    )


def _value(value: object) -> str:
    return shorten(clean(value), _MAX_VALUE_CHARS) if value else ""
