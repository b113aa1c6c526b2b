"""What `list` and `explain` print: the catalogue and the producers, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ..catalogue import GROUPS, Rule
from ..text import clean, plural
from .console import Printer

__all__ = [
    "ORACLES",
    "print_consumers",
    "print_exports",
    "print_producers",
    "print_rule",
    "print_rules",
]

ORACLES = {
    "META": "types and grammar of what the interface returned",
    "ARITH": "arithmetic on shape, strides and item size",
    "WALK": "the bytes of every element are read and compared",
    "POKE": "one element is written through one interface, read through another, and restored",
    "MAP": "the system is asked what is mapped there, and with which permission",
    "LIFE": "objects are dropped in every order, deleters are counted",
    "AGAIN": "the same question is asked twice",
    "VIEW": "slices, transposes and broadcasts of the object are judged as well",
    "FAKE": "a hand-made exporter with one controlled property",
    "FORK": "a process of its own, so that a crash is a result",
    "SLOW": "a long-running kernel is still at work when the array is handed over",
}
"""The ways in which rules are checked, in words."""


_ASKS = {
    "right": "the array",
    "right-or-error": "the array, or an error",
    "error": "an error",
}


def _availability(entry: Any) -> Text:
    if not entry.is_installed:
        return Text(f"no: {entry.install}", "yellow")
    if not entry.is_usable:
        return Text("yes, but it needs a CUDA device", "yellow")
    return Text("yes", "green")


def print_producers(entries: Sequence[Any], console: Console) -> None:
    """The producers: installed ones first named with what they are, absent ones with how to get them."""
    printer = _print_entries(entries, ("producer", "makes", "installed"), console)
    printer.line(
        "Your own: gridbuf-conformance check package.module:Class, or path/to/file.py:Class"
    )


def print_consumers(entries: Sequence[Any], console: Console) -> None:
    """The consumers in the same way."""
    printer = _print_entries(entries, ("consumer", "what", "installed"), console)
    printer.line(
        "Your own: gridbuf-conformance check --consumer package.module:function, "
        "or path/to/file.py:function"
    )


def print_exports(interfaces: Sequence[Any], console: Console) -> None:
    """Each export: what is said, what a consumer may make of it, and the rule that it is about."""
    printer = Printer(console)
    table = printer.table()
    for heading in ("export", "rule", "asks for", "what is said"):
        table.add_column(heading)
    exports = [(i, variant) for i in interfaces for variant in i.variants.values()]
    for interface, variant in exports:
        name = Text(interface.written(variant.name), "bold")
        about = printer.encodable(clean(variant.about))
        table.add_row(name, variant.rules[0], _ASKS[variant.expects], about)
    console.print(table)
    console.print()
    counted = f"{plural(len(interfaces), 'interface')}, {plural(len(exports), 'export')}"
    printer.line((counted, "dim"))


def _print_entries(
    entries: Sequence[Any], headings: tuple[str, str, str], console: Console
) -> Printer:
    printer = Printer(console)
    table = printer.table()
    for heading in headings:
        table.add_column(heading)
    for entry in entries:
        state = _availability(entry)
        table.add_row(Text(entry.name, "bold"), printer.encodable(clean(entry.summary)), state)
    console.print(table)
    console.print()
    return printer


def print_rules(rules: Sequence[Rule], console: Console) -> None:
    """One line a rule, under the heading of its group."""
    printer = Printer(console)
    group = None
    for rule in rules:
        if rule.group != group:
            if group is not None:
                printer.line()
            group = rule.group
            printer.line((f"{group}", "bold"), (f"  {GROUPS.get(group, '')}", "bold"))
        style = "" if rule.in_scope else "dim"
        remark = "" if rule.in_scope else " (not judged by this version)"
        printer.field(f"{rule.id:<7} {rule.level:<6}", f"{rule.requirement}{remark}", style)
    judged = sum(rule.in_scope for rule in rules)
    printer.line()
    printer.line((f"{plural(len(rules), 'rule')}, {judged} judged by this version", "dim"))


def print_rule(rule: Rule, console: Console) -> None:
    """Everything the catalogue holds on a rule."""
    printer = Printer(console)
    printer.line(
        (rule.id, "bold"), (f"  {rule.level}", "bold"), (f"  {GROUPS.get(rule.group, '')}", "dim")
    )
    since = f" (since {rule.since})" if rule.since else ""
    printer.field("requirement", rule.requirement)
    printer.field("judged of", " and ".join(f"{side}s" for side in rule.sides) or "nobody yet")
    printer.field("source", f"{rule.source}{since}")
    printer.field("why", rule.why)
    printer.field("to keep it", rule.fix)
    printer.field("as a consumer", rule.consumer_fix)
    printer.field("breaks it", rule.example)
    printer.field("how checked", "; ".join(ORACLES.get(name, name) for name in rule.oracle))
    printer.field("needs first", ", ".join(rule.preconditions))
    if rule.untestable:
        printer.field("untestable", rule.untestable)
    elif not rule.in_scope:
        printer.field("status", "in the catalogue, not judged by this version")
