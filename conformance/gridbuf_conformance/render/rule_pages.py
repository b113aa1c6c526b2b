"""`explain --format md`: rules as Markdown, one section for each; for all rules, a page, which the
documentation site splits.

The texts of the catalogue may contain code between backticks. All other markup is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..rules.catalogue import GROUPS, KINDS, LEVELS, Rule, Source
from ..text import plural
from .markdown import block, prose
from .reference import ORACLES, levels

_INTRODUCTION = """\
Every rule of the suite, as `gridbuf-conformance explain ID` prints it. \
An id never changes its meaning and is never reused.
Each rule links the sentence that it rests on, with the modal verb of that sentence \
and what it says in our words. The verb `undefined`
means that the sentence states a fact about memory, and that memory access is undefined \
if it is wrong.

| level | meaning |
|---|---|
{levels}

Rules on documents of GT4Py, or on gridbuf's own specification, say so. \
They are never findings about other libraries.

Generated from the catalogue: `gridbuf-conformance explain '*' --format md`."""


def page(rules: Sequence[Rule]) -> str:
    """The reference page of these rules: contents, then the rules by group."""
    table = "\n".join(f"| {level} | {meaning} |" for level, meaning in LEVELS.items())
    parts = ["# The rules", _INTRODUCTION.format(levels=table), _contents(rules)]
    for group in dict.fromkeys(rule.group for rule in rules):
        parts.append(f"## {group} · {GROUPS[group].heading}")
        parts += [_section(rule, "###") for rule in rules if rule.group == group]
    return "\n\n".join(parts) + "\n"


def sections(rules: Sequence[Rule]) -> str:
    """The sections of the rules only, for a comment or an issue."""
    return "\n\n".join(_section(rule, "##") for rule in rules) + "\n"


def _contents(rules: Sequence[Rule]) -> str:
    lines = ["| group | rules | for producers | for consumers |", "|---|--:|--:|--:|"]
    for group in dict.fromkeys(rule.group for rule in rules):
        members = [rule for rule in rules if rule.group == group]
        title = GROUPS[group].heading
        sides = (sum(rule.judges(side) for rule in members) for side in ("producer", "consumer"))
        counts = " | ".join(str(count or "·") for count in sides)
        lines.append(
            f"| [{group}](#{_anchor(f'{group} · {title}')}) {title} | {len(members)} | {counts} |"
        )
    judged = sum(bool(rule.sides) for rule in rules)
    lines.append(f"\n{plural(len(rules), 'rule')}, {judged} of them judged by this version.")
    return "\n".join(lines)


def _anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _linked(source: Source) -> str:
    """A source as link, verb and what it says. Own documents are linked from docs/reference."""
    own = source.text.kind == "own"
    url = source.url.replace("docs/", "../", 1) if own else source.url
    return f"[{prose(str(source))}]({url}): {prose(source.says)} (*{source.verb}*)"


def _section(rule: Rule, mark: str) -> str:
    """One rule: first the requirement, then reason, source and how to comply."""
    since = f" (since {prose(rule.since)})" if rule.since else ""
    info = [
        ("Level", levels(rule)),
        ("Applies to", " and ".join(f"{side}s" for side in rule.sides)),
        ("Source", _linked(rule.source) + since),
        ("Source for consumers", _linked(rule.consumer_source) if rule.consumer_source else ""),
        ("Binds", "" if rule.is_published else KINDS[rule.source.text.kind]),
        ("Why", prose(rule.why)),
        ("To comply", prose(rule.fix)),
        ("As a consumer", prose(rule.consumer_fix)),
        ("How checked", "; ".join(ORACLES.get(name, name) for name in rule.oracle)),
        ("Needs first", ", ".join(rule.preconditions)),
        ("Not decided", prose(rule.untestable or "")),
    ]
    lines = "\n".join(f"- **{label}**: {value}" for label, value in info if value)
    parts = [f"{mark} {rule.id}", prose(rule.requirement), lines]
    if rule.example:
        parts += ["Example that breaks the rule:", block(rule.example, "text")]
    return "\n\n".join(parts)
