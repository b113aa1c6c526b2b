"""The output of `list` and `explain` on a terminal: the catalogue and the producers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ..rules.catalogue import GROUPS, KINDS, Rule, Source
from ..text import clean, plural
from .console import Printer

ORACLES = {
    "META": "types and grammar of the values that the interface returns",
    "ARITH": "arithmetic on shape, strides and item size",
    "WALK": "the suite reads and compares the bytes of every element",
    "POKE": "the suite writes an element through one interface, reads it through another, "
    "and restores it",
    "MAP": "the system reports which memory is mapped, and with which permission",
    "LIFE": "the suite drops objects in every order and counts deleters",
    "AGAIN": "the suite repeats the same request",
    "VIEW": "the suite also judges slices, transposes and broadcasts of the object",
    "FAKE": "a special exporter with one controlled property",
    "FORK": "a separate process, so that a crash is a result",
    "SLOW": "a long-running kernel is still pending when the array is exported",
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
    """The producers: what each makes, and the command that installs an absent library."""
    printer = _print_entries(entries, ("producer", "makes", "installed"), console)
    printer.line(
        "Your own: gridbuf-conformance check package.module:Class, or path/to/file.py:Class"
    )


def print_consumers(entries: Sequence[Any], console: Console) -> None:
    """The consumers, in the form of `print_producers`."""
    printer = _print_entries(entries, ("consumer", "description", "installed"), console)
    printer.line(
        "Your own: gridbuf-conformance check --consumer package.module:function, "
        "or path/to/file.py:function"
    )


def print_libraries(libraries: Sequence[Any], console: Console) -> None:
    """The names of each library, in any case: every option takes each of them."""
    printer = Printer(console)
    table = printer.table()
    for heading in ("library", "import", "package"):
        table.add_column(heading)
    for one in sorted(libraries, key=lambda library: library.name.lower()):
        table.add_row(Text(one.name, "bold"), one.needs or one.module, one.package)
    console.print(table)


def print_exports(interfaces: Sequence[Any], console: Console) -> None:
    """Each export: its rule, the results that it allows, and its description."""
    printer = Printer(console)
    table = printer.table()
    for heading in ("export", "rule", "asks for", "description"):
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


def print_findings(findings: Sequence[Any], console: Console) -> None:
    """Each finding below its library: name for `reproduce` and `issue`, severity, what it is."""
    printer = Printer(console)
    library = None
    for finding in sorted(findings, key=lambda finding: (finding.library.lower(), finding.id)):
        if finding.library != library:
            library = finding.library
            printer.line((library, "bold"))
        severity = "contested" if finding.contested else finding.severity
        printer.line(f"  {finding.id}  ", (severity, "dim"))
        printer.paragraph(clean(finding.title), indent=4)
    printer.line()
    printer.line((plural(len(findings), "finding"), "dim"))


def print_finding(finding: Any, console: Console) -> None:
    """What is known of a finding, but for its script."""
    printer = Printer(console)
    printer.line((finding.id, "bold"), (f"  {finding.severity}", "bold"))
    printer.field("finding", clean(finding.title))
    printer.field("library", f"{finding.library} {', '.join(finding.versions)}")
    printer.field("releases", finding.releases)
    printer.field("rules", ", ".join([finding.rule, *finding.also_rules]))
    printer.field("rests on", finding.source)
    printer.field("link", finding.source_link, wrap=False)
    for label in ("expected", "impact", "fix", "status", "contested"):
        printer.field(label, clean(getattr(finding, label)))
    printer.field("tracker", finding.tracker, wrap=False)
    printer.field("script", f"gridbuf-conformance reproduce {finding.id}", wrap=False)
    printer.field("issue", f"gridbuf-conformance issue {finding.id}", wrap=False)


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
    """One line for each rule, below the heading of its group."""
    printer = Printer(console)
    group = None
    for rule in rules:
        if rule.group != group:
            if group is not None:
                printer.line()
            group = rule.group
            printer.line((f"{group}", "bold"), (f"  {GROUPS[group].subject}", "bold"))
        printer.field(f"{rule.id:<7} {rule.level:<6}", rule.requirement, "")
    printer.line()
    printer.line((f"{plural(len(rules), 'rule')}, {len(rules)} judged by this version", "dim"))


def levels(rule: Rule) -> str:
    """The level of a rule; with the consumers' if it differs: "MUST, for consumers ROBUST"."""
    if rule.consumer_level in ("", rule.level):
        return rule.level
    return f"{rule.level}, for consumers {rule.consumer_level}"


def _sources(rule: Rule) -> list[tuple[str, Source]]:
    """The source, and that of the consumers' half if it has its own."""
    found = [("producer", rule.source)]
    return found if rule.consumer_source is None else [*found, ("consumer", rule.consumer_source)]


def print_rule(rule: Rule, console: Console) -> None:
    """All entries of a rule in the catalogue."""
    printer = Printer(console)
    printer.line(
        (rule.id, "bold"), (f"  {levels(rule)}", "bold"), (f"  {GROUPS[rule.group].subject}", "dim")
    )
    since = f" (since {rule.since})" if rule.since else ""
    printer.field("requirement", rule.requirement)
    printer.field("applies to", " and ".join(f"{side}s" for side in rule.sides))
    for side, source in _sources(rule):
        about = "source" if side == "producer" else "for consumers"
        printer.field(about, f"{source}{since if side == 'producer' else ''}")
        printer.field("link", source.url, wrap=False)
        printer.field("says", f"{source.says} (verb: {source.verb})")
    if not rule.is_published:
        printer.field("binds", KINDS[rule.source.text.kind])
    printer.field("why", rule.why)
    printer.field("to comply", rule.fix)
    printer.field("as a consumer", rule.consumer_fix)
    printer.field("broken by", rule.example)
    printer.field("how checked", "; ".join(ORACLES.get(name, name) for name in rule.oracle))
    printer.field("needs first", ", ".join(rule.preconditions))
    if rule.untestable:
        printer.field("untestable", rule.untestable)
