"""Reports as Markdown for a pull request's comment: the verdict, the matrix, folded failures.

Written for GitHub's dialect, and plain enough for others. What a producer said is only ever put
into code: spans whose fence is longer than any run of backticks in them, the same for blocks, and
`<code>` in the headings of folds. Nothing in code is a link, a mention, an issue number or markup,
so no error text can notify a person or break out of its place. A comment holds 65,536 characters;
`_LIMIT_CHARS` keeps below that, and what is left out is counted and named.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..plan import Plan
from ..text import clean, describe_plan, plural, shorten
from .drawing import to_text
from .summary import (
    GROUPS,
    KINDS,
    Absent,
    Cell,
    Finding,
    Matrix,
    ReportDict,
    conclusion,
    findings,
    kind_of,
    labels,
    matrices,
    remedy,
    rule_text,
    side_of_rule,
)

_LIMIT_CHARS = 60_000
_MAX_VALUE_CHARS = 1_500
_MAX_NOTE_CHARS = 300
_MAX_LIBRARIES = 12
_SHOWN = ("failed", "error", "known", "fragile", "advisory")


def render(
    reports: Sequence[ReportDict],
    absent: Sequence[Absent] = (),
    *,
    catalogue: Mapping[str, Any] | None = None,
) -> str:
    """The document of these reports, ended by a newline."""
    if catalogue is None:
        from ..rules.catalogue import load

        catalogue = load()
    parts = [_head(reports), *_tables(reports), *_notes(reports), *_absent(absent)]
    found = findings(reports, _SHOWN)
    names = labels(reports)
    return _bounded(parts, [_finding(one, names, catalogue) for one in found], found)


def _bounded(parts: Sequence[str], folds: Sequence[str], found: Sequence[Finding]) -> str:
    """The parts, then as many folds as a comment has room for; the rest by name."""
    text = "\n\n".join(part for part in parts if part)
    for number, fold in enumerate(folds):
        if len(text) + len(fold) > _LIMIT_CHARS:
            left = found[number:]
            ids = ", ".join(one.rule_id for one in left)
            text += f"\n\n… and {plural(len(left), 'more rule')}: {shorten(ids, _MAX_VALUE_CHARS)}."
            break
        text += f"\n\n{fold}"
    return text + "\n"


# The head
# --------------------------------------------------------------------------------------------------


def _head(reports: Sequence[ReportDict]) -> str:
    if not reports:
        return "## Conformance\n\nNo library was judged."
    verdicts = [_verdict(report, name) for report, name in zip(reports, labels(reports))]
    if len(reports) == 1:
        return f"## {verdicts[0]}\n\n{_info(reports[0])}"
    return "## Conformance\n\n" + "\n".join(f"- {verdict}" for verdict in verdicts)


def _verdict(report: ReportDict, name: str) -> str:
    """ "✗ `numpy` does not conform: 1 of 30 rules failed (XA-08)."."""
    kind, sentence = conclusion(report)
    version = clean(report["target"].get("version") or "")
    shown = name if name != report["target"]["name"] else f"{name} {version}".rstrip()
    return f"{KINDS[kind][0]} {span(shown)} {sentence}"


def _info(report: ReportDict) -> str:
    target, suite = report["target"], report["suite"]
    info = [f"{suite['name']} {suite['version']}", f"profile {report['profile']}"]
    info += [f"Python {target['python']}"] if target.get("python") else []
    info += [str(target["platform"])] if target.get("platform") else []
    return " · ".join(map(span, info))


def _notes(reports: Sequence[ReportDict]) -> list[str]:
    lines = [
        f"- {span(name)}: {span(note, _MAX_VALUE_CHARS)}"
        for report, name in zip(reports, labels(reports))
        for note in report.get("notes") or ()
    ]
    return ["\n".join(lines)] if lines else []


def _absent(absent: Sequence[Absent]) -> list[str]:
    lines = [
        f"- {span(library.name)}: {span(library.reason, _MAX_VALUE_CHARS)}"
        + (f"; {span(library.remedy)}" if library.remedy else "")
        for library in absent
    ]
    return ["### Not judged\n\n" + "\n".join(lines)] if lines else []


# The matrix
# ------------------------------------------------------------------------------------------------


def _tables(reports: Sequence[ReportDict]) -> list[str]:
    tables = [(side, table) for side, table in matrices(reports) if table.groups]
    if len(reports) == 1:
        return [_groups(table) for _, table in tables]
    title = len(tables) > 1
    return [
        f"### {side.capitalize()}s\n\n{_matrix(table)}" if title else _matrix(table)
        for side, table in tables
    ]


def _groups(table: Matrix) -> str:
    """One library: a row a rule group."""
    row = table.rows[0]
    kinds = [
        kind for kind in KINDS if kind in ("failed", "passed", "silent") or row.total.of_kind(kind)
    ]
    heads = [
        "group",
        "",
        *({"silent": "not judged", "error": "suite errors"}.get(k, k) for k in kinds),
    ]
    lines = [_line(heads), _line(["---", "---", *["--:"] * len(kinds)])]
    for group in table.groups:
        cell = row.cells[group]
        counts = [str(cell.of_kind(kind) or "·") for kind in kinds]
        lines.append(_line([_in_table(span(group)), GROUPS.get(group, ""), *counts]))
    return "\n".join(lines)


def _matrix(table: Matrix) -> str:
    """Many libraries: a row each, a column a rule group."""
    lines = [
        _line(["", *(_in_table(span(group)) for group in table.groups)]),
        _line(["---", *["--:"] * len(table.groups)]),
    ]
    for row in table.rows:
        name = row.label if row.label != row.name else f"{row.name} {row.version}".rstrip()
        sign = KINDS[row.total.kind][0]
        cells = (_cell(row.cells.get(group, Cell())) for group in table.groups)
        lines.append(_line([f"{sign} {_in_table(span(name))}", *cells]))
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    """`✗ 3 of 27`, or `✓ 27`; known failures and advisories follow."""
    if not cell.judged:
        return KINDS["silent"][0]
    broken = cell.of_kind("failed") + cell.of_kind("error")
    sign = KINDS["failed" if cell.of_kind("failed") else "error"][0]
    text = f"**{sign} {broken}** of {cell.judged}" if broken else f"✓ {cell.of_kind('passed')}"
    for kind in ("known", "fragile", "advisory"):
        text += f" {KINDS[kind][0]} {cell.of_kind(kind)}" if cell.of_kind(kind) else ""
    return text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


# Findings
# --------------------------------------------------------------------------------------------------


def _finding(finding: Finding, names: Sequence[str], catalogue: Mapping[str, Any]) -> str:
    """One rule, folded: what it asks, and what each library did."""
    sides = {side_of_rule(rule) for _, rule in finding.entries}
    text = rule_text(catalogue, finding.rule_id, sides.pop() if len(sides) == 1 else "producer")
    sign = KINDS[kind_of(finding.outcome)][0]
    who = (
        ""
        if len(names) == 1
        else " "
        + ", ".join(
            f"<code>{_escaped(name)}</code>" for name, _ in finding.entries[:_MAX_LIBRARIES]
        )
    )
    more = len(finding.entries) - _MAX_LIBRARIES
    who += f" and {more} more" if more > 0 else ""
    rule_id, level, outcome = map(_escaped, (finding.rule_id, finding.level, finding.outcome))
    head = f"{sign} <b>{rule_id}</b> {level} {outcome}{who}"
    parts = [f"<details><summary>{head}: {_requirement(text.requirement)}</summary>"]
    for name, rule in finding.entries[:_MAX_LIBRARIES]:
        parts += _entry(name if len(names) > 1 else "", rule)
    if fix := remedy({"outcome": finding.outcome}, text):
        parts.append(f"To fix it: {prose(fix)}")
    parts.append("</details>")
    return "\n\n".join(parts)


def _entry(name: str, rule: Mapping[str, Any]) -> list[str]:
    """What one library did under a rule."""
    parts = [f"**{span(name)}** {rule['outcome']}"] if name else []
    failures = rule.get("failures") or ()
    if not failures and rule.get("note"):
        parts.append(span(rule["note"], _MAX_NOTE_CHARS))
    for failure in failures:
        parts += _failure(failure)
    return parts


def _failure(failure: Mapping[str, Any]) -> list[str]:
    """Expected, actual, plan and drawing in one block, the command to copy in another."""
    fields = [
        (label, shorten(clean(failure[label]), _MAX_VALUE_CHARS))
        for label in ("expected", "actual", "note")
        if failure.get(label)
    ]
    if plan := failure.get("plan"):
        fields.append(("plan", shorten(describe_plan(plan, Plan()), _MAX_NOTE_CHARS)))
    lines = [f"{label:<9} {value}".replace("\n", "\n" + " " * 10) for label, value in fields]
    if drawing := failure.get("drawing"):
        lines += ["", *to_text(drawing)]
    parts = [block("\n".join(lines), "text")] if lines else []
    if replay := failure.get("replay"):
        parts.append(block(shorten(clean(replay), _MAX_VALUE_CHARS), "sh"))
    return parts


# What others said
# ------------------------------------------------------------------------------------------


def span(value: object, limit_chars: int = 200) -> str:
    """Any text as one code span: its fence is longer than what it holds."""
    text = shorten(clean(value), limit_chars).replace("\n", " ").strip()
    if not text:
        return ""
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _in_table(text: str) -> str:
    """A table's own escape, which holds inside code spans too; only there."""
    return text.replace("|", "\\|")


def block(text: str, language: str) -> str:
    """Any text as a code block: its fence is longer than what it holds."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _escaped(text: object) -> str:
    return html.escape(clean(text).replace("\n", " "), quote=False)


def prose(text: str) -> str:
    """The catalogue's own words: code between backticks stays code, what else is markup is text."""
    parts = re.split(r"(`[^`]+`)", clean(text).replace("\n", " "))
    return "".join(
        p if n % 2 else re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", p) for n, p in enumerate(parts)
    )


def _requirement(text: str) -> str:
    """The catalogue's words inside an HTML heading, where Markdown is not read."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _escaped(text))
