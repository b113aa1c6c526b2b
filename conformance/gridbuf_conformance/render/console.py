"""Reports on a terminal: the matrix, each failure in full, and a last line with the conclusion.

Nothing depends on colour alone: every outcome has a sign and a word. Nothing depends on Unicode
either: a terminal whose encoding lacks a character gets a plain one. Replay commands are never
wrapped, so that they can be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from rich.box import ASCII_DOUBLE_HEAD, SIMPLE_HEAD
from rich.console import Console, OverflowMethod
from rich.table import Table
from rich.text import Text

from ..plan import Plan
from ..text import clean, describe_plan, one_line, plural, shorten
from .drawing import to_text
from .summary import (
    GROUPS,
    KINDS,
    Absent,
    Cell,
    Finding,
    Matrix,
    Row,
    conclusion,
    findings,
    kind_of,
    matrices,
    matrix,
    remedy,
    rule_text,
    side_of_rule,
    telling,
)

_STYLES = {
    "failed": "bold red",
    "error": "bold magenta",
    "known": "blue",
    "fragile": "dark_orange",
    "advisory": "yellow",
    "passed": "green",
    "silent": "dim",
}
_LABEL_COLUMNS = 15
_MAX_VALUE_CHARS = 700
_MAX_SURVEY_VALUE_CHARS = 160
_FEWEST_FINDINGS, _MOST_FINDINGS = 2, 8
_SURVEY_EXTRA_LINES = 4
"""A blank line, the title of the failures, how many more there are, and the shell's next prompt."""
_MAX_PLAN_CHARS = 400
_OF_A_LIVE_OBJECT = (
    "Not looked at, because there is no plan: values, views and second arrays. "
    "A class of five lines with a method produce(plan) shows them: gridbuf-conformance check --help"
)
_PLAIN = str.maketrans(
    {
        "█": "#",
        "╳": "x",
        "─": "-",
        "├": "|",
        "┤": "|",
        "╵": "|",
        "▲": "^",
        "△": "^",
        "■": "o",
        "×": "x",
    }
    | {
        "·": ".",
        "…": "...",
        "–": "-",
        "—": "-",
        "→": "->",
        "≤": "<=",
        "≥": ">=",
        "Σ": "sum",
        "∈": "in",
    }
)


class Printer:
    """Prints to one console in the signs its encoding has."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.unicode = (console.encoding or "").lower().replace("-", "").startswith("utf")

    def table(self) -> Table:
        """A table with a rule under its head; plain ASCII where the terminal knows nothing else."""
        box = SIMPLE_HEAD if self.unicode else ASCII_DOUBLE_HEAD
        return Table(box=box, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 1))

    def sign(self, kind: str) -> str:
        return KINDS[kind][0 if self.unicode else 1]

    def encodable(self, text: str) -> str:
        """`text` in characters the console's encoding has; the rest spelled as escapes."""
        if self.unicode:
            return text
        encoding = self.console.encoding or "ascii"
        return text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)

    def line(self, *parts: str | tuple[str, str], wrap: bool = True) -> None:
        """One line of pieces of text, each plain or with its style. Markup in it stays text."""
        text = Text()
        for part in parts:
            content, style = (part, "") if isinstance(part, str) else part
            text.append(self.encodable(content), style)
        if wrap:
            self.console.print(text, overflow="fold")
        else:
            self.console.print(text, soft_wrap=True)

    def field(self, label: str, value: str, style: str = "", *, wrap: bool = True) -> None:
        """A labelled value, its further lines indented under the first."""
        if not value:
            return
        if len(label) >= _LABEL_COLUMNS:
            self.line((f"  {label}", "dim"))
            label = ""
        if not wrap:
            self.line((f"  {label:<{_LABEL_COLUMNS}}", "dim"), (value, style), wrap=False)
            return
        width = max(20, self.console.width - _LABEL_COLUMNS - 2)
        lines = Text(self.encodable(value), style).wrap(self.console, width, overflow="fold")
        for number, line in enumerate(lines):
            line.rstrip()
            head = f"  {label if number == 0 else '':<{_LABEL_COLUMNS}}"
            self.console.print(Text(head, "dim") + line, soft_wrap=True)

    def paragraph(self, text: str, indent: int) -> None:
        """Text with all its lines indented."""
        for line in Text(self.encodable(text)).wrap(
            self.console, max(20, self.console.width - indent), overflow="fold"
        ):
            line.rstrip()
            self.console.print(Text(" " * indent) + line, soft_wrap=True)

    def flow(self, items: Sequence[str], gap: str = "   ") -> None:
        """Dim items side by side, on as many lines as they need, none broken in two."""
        line = ""
        for item in map(self.encodable, items):
            if line and len(line) + len(gap) + len(item) > self.console.width:
                self.line((line, "dim"))
                line = ""
            line = f"{line}{gap}{item}" if line else item
        self.line((line, "dim"))


def render(
    report: Mapping[str, Any],
    console: Console,
    *,
    catalogue: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> None:
    """Prints one report: groups, failures, fragile rules and advisories in full, the conclusion.

    With `verbose` it lists every rule with its outcome, and the reason for rules that were not
    judged.
    """
    printer = Printer(console)
    catalogue = _catalogue(catalogue)
    _print_title(printer, report)
    if report["rules"]:
        _print_groups(printer, matrix([report]))
    if verbose:
        _print_rules(printer, report, catalogue)
    for finding in findings([report], ("failed", "error", "fragile", "advisory")):
        for _, rule in finding.entries:
            printer.line()
            _print_finding(printer, rule, catalogue)
    _print_known(printer, report)
    printer.line()
    for note in report.get("notes") or ():
        printer.line(("Note: ", "bold"), one_line(note))
    kind, sentence = conclusion(report)
    verdict = f"{printer.sign(kind)} {one_line(report['target']['name'])} {sentence}"
    printer.line((verdict, _STYLES[kind]), wrap=False)
    if report["target"].get("side") == "producer" and not report["plans"] and report["rules"]:
        printer.line((_OF_A_LIVE_OBJECT, "dim"))


def render_rule(
    rule: Mapping[str, Any], console: Console, *, catalogue: Mapping[str, Any] | None = None
) -> None:
    """Prints the entry of one rule: requirement, expected and actual result, replay command."""
    _print_finding(Printer(console), rule, _catalogue(catalogue))


def render_survey(
    reports: Sequence[Mapping[str, Any]],
    console: Console,
    *,
    absent: Sequence[Absent] = (),
    paths: Sequence[str] = (),
    catalogue: Mapping[str, Any] | None = None,
) -> None:
    """Prints the matrix of all libraries, the most informative failures, absent libraries, and the
    paths of the reports.

    On a terminal it fits the screen, if two failures fit; elsewhere it shows up to eight failures.
    """
    printer = Printer(console)
    catalogue = _catalogue(catalogue)
    tables = matrices(reports)
    head = partial(_print_survey_head, printer, tables, absent)
    foot = partial(_print_survey_foot, printer, tables, absent, paths)
    head()
    found = findings(reports, ("failed", "error"))
    shown = telling(found, _MOST_FINDINGS)
    if console.is_terminal:
        room = (
            console.height - _height(printer, head) - _height(printer, foot) - _SURVEY_EXTRA_LINES
        )
        heights = [
            _height(printer, partial(_print_shared_finding, printer, finding, catalogue))
            for finding in shown
        ]
        fitting = sum(1 for used in accumulate(heights) if used <= room)
        shown = shown[: max(_FEWEST_FINDINGS, fitting)]
    if shown:
        printer.line()
        printer.line(("The most informative failures", "bold"))
    for finding in shown:
        _print_shared_finding(printer, finding, catalogue)
    if len(found) > len(shown):
        more = plural(len(found) - len(shown), "more rule")
        printer.line((f"… and {more} with failures.", "dim"))
    foot()


def _height(printer: Printer, draw: Callable[[], None]) -> int:
    """How many lines of the terminal a part takes."""
    with printer.console.capture() as drawn:
        draw()
    lines = Text.from_ansi(drawn.get()).plain.rstrip("\n").split("\n")
    return sum(max(1, -(-len(line) // printer.console.width)) for line in lines)


def _catalogue(given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is not None:
        return given
    from ..rules.catalogue import load  # read from disk only if the caller does not pass it

    return load()


# The head of a report
# --------------------------------------------------------------------------------------


def _print_title(printer: Printer, report: Mapping[str, Any]) -> None:
    target, suite = report["target"], report["suite"]
    name = " ".join(filter(None, (one_line(target["name"]), one_line(target.get("version") or ""))))
    python = target.get("python")
    where = [
        f"{one_line(suite['name'])} {one_line(suite['version'])}",
        f"profile {one_line(report['profile'])}",
        f"Python {one_line(python)}" if python else "",
        one_line(target.get("platform") or ""),
    ]
    printer.line((name, "bold"), ("  ·  " + "  ·  ".join(filter(None, where)), "dim"))


def _print_groups(printer: Printer, table: Matrix) -> None:
    printer.line()
    view = printer.table()
    total = table.rows[0].total
    rare = ("known", "fragile")
    shown = [k for k in KINDS if k != "error" and (k not in rare or total.of_kind(k))]
    for heading in ("group", "rules on", *shown, "in all"):
        right = heading not in ("group", "rules on")
        view.add_column(
            "not judged" if heading == "silent" else heading, justify="right" if right else "left"
        )
    for group in table.groups:
        cell = table.rows[0].cells[group]
        if not cell.judged and not cell.of_kind("error"):
            continue
        counts = []
        for kind in shown:
            number = cell.of_kind(kind) + (cell.of_kind("error") if kind == "failed" else 0)
            counts.append(Text(str(number), _STYLES[kind] if number else "dim"))
        title = Text(GROUPS.get(group, ""))
        view.add_row(group, title, *counts, str(sum(cell.outcomes.values())))
    if view.row_count:
        printer.console.print(view)
    cells = table.rows[0].cells
    silent = [g for g in table.groups if not cells[g].judged and not cells[g].of_kind("error")]
    if silent:
        rules = plural(sum(sum(cells[group].outcomes.values()) for group in silent), "rule")
        printer.line((f"not judged: {', '.join(silent)} ({rules})", "dim"))


def _print_rules(printer: Printer, report: Mapping[str, Any], catalogue: Mapping[str, Any]) -> None:
    """Every rule in a line, with the number of plans that reached it, or why it was not judged."""
    printer.line()
    printer.line((f"  {'rule':<7}{'outcome':<12}{'plans':>6}  requirement", "dim"))
    for rule in report["rules"]:
        kind = kind_of(rule["outcome"])
        why = clean(rule.get("note") or "") if kind == "silent" else ""
        words = why or rule_text(catalogue, rule["id"]).requirement
        style = _STYLES[kind]
        printer.line(
            (f"{printer.sign(kind)} {rule['id']:<7}", style),
            (f"{rule['outcome']:<12}", style),
            (f"{rule['plans']:>6,}  ", "dim"),
            (shorten(words, 140), "dim" if kind == "silent" else ""),
        )


def _print_known(printer: Printer, report: Mapping[str, Any]) -> None:
    """One line for each known failure: the gate passes, and the report still shows it."""
    for number, (_, rule) in enumerate(
        entry for finding in findings([report], ("known",)) for entry in finding.entries
    ):
        if not number:
            printer.line()
        notes = "; ".join(clean(failure.get("note") or "") for failure in rule["failures"])
        style = _STYLES["known"]
        head = f"{printer.sign('known')} {rule['id']}  {rule['level']}  {rule['outcome']}"
        printer.line((head, style), f"  {shorten(notes, _MAX_VALUE_CHARS)}")


# The matrix
# ------------------------------------------------------------------------------------------------


def _print_matrix(printer: Printer, table: Matrix, what: str = "library") -> None:
    """A row for each library, a column for each rule group; groups that do not fit follow below."""
    cells = {
        group: [_matrix_cell(printer, row.cells.get(group, Cell())) for row in table.rows]
        for group in table.groups
    }
    widest = max(20, printer.console.width // 3)
    name_width = (
        printer.console.width - _PLANS_WIDTH - sum(map(_column_width, cells, cells.values()))
    )
    if _NARROWEST_NAME <= name_width:  # one table, with names cut shorter, rather than two
        widest = min(widest, name_width)
    names = [_matrix_name(printer, row) for row in table.rows]
    overflow: OverflowMethod = "ellipsis" if printer.encodable("…") == "…" else "crop"
    for name in names:
        name.truncate(widest, overflow=overflow)
    room = printer.console.width - max((len(name) for name in names), default=0) - _PLANS_WIDTH
    blocks = _blocks(cells, room)
    for block in blocks:
        view = printer.table()
        view.add_column(what, no_wrap=True)
        for group in block:
            view.add_column(group, justify="right", no_wrap=True)
        if block is blocks[-1]:
            view.add_column("plans", justify="right", no_wrap=True, style="dim")
        for number, (row, name) in enumerate(zip(table.rows, names)):
            plans = max((rule["plans"] for rule in row.report["rules"]), default=0)
            last = [f"{plans:,}"] if block is blocks[-1] else []
            view.add_row(name, *(cells[group][number] for group in block), *last)
        printer.console.print(view)
        printer.line()


def _print_legend(printer: Printer, tables: Sequence[Matrix]) -> None:
    if not tables:
        return
    rows = [row for table in tables for row in table.rows]
    rare = {"known": "known failures", "fragile": "fragile"}
    seen = [kind for kind in rare if any(row.total.of_kind(kind) for row in rows)]
    legend = (
        f"{printer.sign('passed')} rules that hold",
        f"{printer.sign('failed')} failed/judged",
        *(f"{printer.sign(kind)} {rare[kind]}" for kind in seen),
        f"{printer.sign('advisory')} advisories",
        f"{printer.sign('silent')} nothing to judge",
    )
    printer.flow(legend)
    present = {group for table in tables for group in table.groups}
    printer.flow([f"{group} {title}" for group, title in GROUPS.items() if group in present])


_COLUMN_GAP, _PLANS_WIDTH, _NARROWEST_NAME = 3, 9, 24


def _column_width(group: str, column: Sequence[Text]) -> int:
    return max([len(group), *map(len, column)]) + _COLUMN_GAP


def _blocks(cells: Mapping[str, Sequence[Text]], room: int) -> list[list[str]]:
    """The groups in order, as many in each block as its columns leave room for; at least one."""
    blocks: list[list[str]] = [[]]
    used = 0
    for group, column in cells.items():
        width = _column_width(group, column)
        if blocks[-1] and used + width > room:
            blocks.append([])
            used = 0
        blocks[-1].append(group)
        used += width
    return blocks


def _matrix_name(printer: Printer, row: Row) -> Text:
    kind = row.total.kind
    version = one_line(row.version) if row.label == row.name else ""
    return Text.assemble(
        (f"{printer.sign(kind)} ", _STYLES[kind]),
        (
            printer.encodable(shorten(one_line(row.label), 24 if row.label == row.name else 40)),
            "bold",
        ),
        (printer.encodable(shorten(f" {version}".rstrip(), 16)), "dim"),
    )


def _matrix_cell(printer: Printer, cell: Cell) -> Text:
    """`✓27`, or `✗3/27` where 3 of 27 judged rules failed; advisories follow as `!2`."""
    if not cell.judged:
        return Text(printer.sign("silent"), _STYLES["silent"])
    text = Text()
    broken = cell.of_kind("failed") + cell.of_kind("error")
    if broken:
        kind = "failed" if cell.of_kind("failed") else "error"
        text.append(f"{printer.sign(kind)}{broken}/{cell.judged}", _STYLES[kind])
    else:
        text.append(f"{printer.sign('passed')}{cell.of_kind('passed')}", _STYLES["passed"])
    if known := cell.of_kind("known"):
        text.append(f" {printer.sign('known')}{known}", _STYLES["known"])
    if fragile := cell.of_kind("fragile"):
        text.append(f" {printer.sign('fragile')}{fragile}", _STYLES["fragile"])
    if advisories := cell.of_kind("advisory"):
        text.append(f" {printer.sign('advisory')}{advisories}", _STYLES["advisory"])
    return text


def _print_survey_head(
    printer: Printer, tables: Sequence[tuple[str, Matrix]], absent: Sequence[Absent]
) -> None:
    for side, table in tables:
        if table.rows:
            titled = len(tables) > 1 or side != "producer"
            _print_matrix(printer, table, side if titled else "library")
        else:
            printer.line("No library was judged.")
    for library in absent:
        if library.failed:
            _print_failed(printer, library)
    _print_legend(printer, [table for _, table in tables if table.rows])


def _print_failed(printer: Printer, library: Absent) -> None:
    """A library that could not be judged, instead of its row."""
    printer.line(
        (f"{printer.sign('failed')} ", _STYLES["failed"]),
        (one_line(library.name), "bold"),
        ("  BROKEN  ", _STYLES["failed"]),
        _value(library.reason),
        f"; {one_line(library.remedy)}" if library.remedy else "",
    )
    printer.line()


def _print_survey_foot(
    printer: Printer,
    tables: Sequence[tuple[str, Matrix]],
    absent: Sequence[Absent],
    paths: Sequence[str],
) -> None:
    names = [shorten(one_line(library.name), 40) for library in absent if not library.failed]
    if names:
        is_of_consumers = {side for side, _ in tables} == {"consumer"}
        printer.line()
        printer.line((_unavailable(names, is_of_consumers, printer.console.width), "dim"))
    elif paths:
        printer.line()
    for path in paths:
        printer.line((f"Report: {path}", "bold"), wrap=False)


def _unavailable(names: Sequence[str], is_of_consumers: bool, width: int) -> str:
    """One line, with as many names as fit and at least one."""
    command = "gridbuf-conformance list" + (" consumers" if is_of_consumers else "")
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        line = f"Not available: {', '.join(names[:shown])}{more}; see {command}"
        if len(line) <= width:
            break
    return line


# Failures
# --------------------------------------------------------------------------------------------------


def _print_finding(printer: Printer, rule: Mapping[str, Any], catalogue: Mapping[str, Any]) -> None:
    """Prints a failure: rule, requirement, expected, actual, plan, drawing, replay."""
    kind = kind_of(rule["outcome"])
    failures = rule.get("failures") or ()
    printer.line(
        (f"{printer.sign(kind)} {rule['id']}", _STYLES[kind]),
        (f"  {rule['level']}  {rule['outcome']}", _STYLES[kind]),
        (_how_often(rule), "dim"),
    )
    text = rule_text(catalogue, rule["id"], side_of_rule(rule))
    printer.field("requirement", text.requirement)
    printer.field("rests on", " ".join(filter(None, (text.says, f"({text.source})"))))
    printer.field("link", text.url, wrap=False)
    if not failures:
        printer.field("note", _value(rule.get("note")))
    for number, failure in enumerate(failures):
        if number:
            printer.line()
            printer.field("also", clean(failure.get("outcome", rule["outcome"])))
        _print_failure(printer, failure)
    printer.field("to fix it", remedy(rule, text))


def _how_often(rule: Mapping[str, Any]) -> str:
    """On how many of the judged plans a rule has its outcome; older reports do not say that."""
    if not rule["plans"] or "failing" not in rule:
        return f"  on {plural(rule['plans'], 'plan')} tried" if rule["plans"] else ""
    return f"  on {rule['failing']:,} of {plural(max(rule['plans'], rule['failing']), 'plan')}"


def _print_failure(printer: Printer, failure: Mapping[str, Any]) -> None:
    printer.field("expected", _value(failure.get("expected")), "green")
    printer.field("actual", _value(failure.get("actual")), "red")
    printer.field("note", _value(failure.get("note")))
    if plan := failure.get("plan"):
        printer.field("smallest plan", shorten(describe_plan(plan, Plan()), _MAX_PLAN_CHARS))
    if drawing := failure.get("drawing"):
        printer.line()
        width = max(24, min(64, printer.console.width - 24))
        for line in to_text(drawing, width):
            style = "red" if line.startswith("hull") and ("╳" in line) else ""
            printer.line((f"    {line}", style), wrap=False)
        printer.line()
    if replay := failure.get("replay"):
        printer.field("replay", clean(replay), "cyan", wrap=False)


def _print_shared_finding(printer: Printer, finding: Finding, catalogue: Mapping[str, Any]) -> None:
    """Prints one broken rule in three lines, with the failure of the first library."""
    kind = kind_of(finding.outcome)
    names = [one_line(name) for name, _ in finding.entries]
    printer.line(
        (f"{printer.sign(kind)} {finding.rule_id}", _STYLES[kind]),
        (f"  {finding.level}  {finding.outcome}", _STYLES[kind]),
        (f"  {', '.join(names)}", "bold"),
        f": {rule_text(catalogue, finding.rule_id).requirement}",
    )
    name, rule = next(
        (entry for entry in finding.entries if entry[1]["outcome"] == finding.outcome)
    )
    failure = next(iter(rule.get("failures") or ()), None)
    if failure is None:
        printer.field("note", _value(rule.get("note")))
        return
    printer.field(
        f"{name}:" if len(names) > 1 and len(name) < 12 else "actual",
        shorten(_value(failure.get("actual")), _MAX_SURVEY_VALUE_CHARS),
        "red",
    )
    if replay := failure.get("replay"):
        printer.field("replay", clean(replay), "cyan", wrap=False)


def _value(value: object) -> str:
    return shorten(clean(value), _MAX_VALUE_CHARS) if value else ""
