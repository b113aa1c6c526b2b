"""`explain --format md`: rules as Markdown, one section for each; for all rules, the page docs/reference/rules.md.

The texts of the catalogue may contain code between backticks. All other markup is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..catalogue import GROUPS, Rule
from ..text import plural
from .markdown import block, prose
from .reference import ORACLES
from .summary import GROUPS as TITLES

__all__ = ["page", "sections"]

_INTRODUCTION = """\
Every rule of the suite, as `gridbuf-conformance explain ID` prints it. An id never changes its meaning and is never reused.
A broken MUST fails a run. A broken SHOULD is an advisory. SUITE marks rules of this suite beyond the published texts.

Generated from the catalogue: `gridbuf-conformance explain '*' --format md`."""


def page(rules: Sequence[Rule]) -> str:
    """The reference page of these rules: contents, then the rules by group."""
    parts = ["# The rules", _INTRODUCTION, _contents(rules)]
    for group in dict.fromkeys(rule.group for rule in rules):
        parts.append(f"## {group} · {TITLES.get(group, GROUPS.get(group, group))}")
        parts += [_section(rule, "###") for rule in rules if rule.group == group]
    return "\n\n".join(parts) + "\n"


def sections(rules: Sequence[Rule]) -> str:
    """The sections of the rules only, for a comment or an issue."""
    return "\n\n".join(_section(rule, "##") for rule in rules) + "\n"


def _contents(rules: Sequence[Rule]) -> str:
    lines = ["| group | rules | for producers | for consumers |", "|---|--:|--:|--:|"]
    for group in dict.fromkeys(rule.group for rule in rules):
        members = [rule for rule in rules if rule.group == group]
        title = TITLES.get(group, group)
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


def _section(rule: Rule, mark: str) -> str:
    """One rule: first the requirement, then reason, source and how to comply."""
    since = f" (since {prose(rule.since)})" if rule.since else ""
    info = [
        ("Level", rule.level),
        ("Applies to", " and ".join(f"{side}s" for side in rule.sides) or "not judged yet"),
        ("Source", prose(rule.source) + since),
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
