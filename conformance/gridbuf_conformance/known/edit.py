"""`known --update`: brings a file of known failures up to date, and leaves the rest of it alone.

The file belongs to people: comments, order, reasons and links are theirs. So its text is edited
record by record and never rewritten. What passes is cut out, with the comment lines right above it;
what fails otherwise than recorded gets new values of `outcome` and `actual`; new failures are
appended with an empty `reason` that a person fills in (until then every run notes that it is
missing).
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import String

from ..outcomes import FAILED, Outcome
from ..render.events import Event
from ..render.report import Report
from ..targets import Target
from .records import Known, KnownError, parse, plan_of
from .replays import State

_MAX_ACTUAL_CHARS = 200
_HEADER = re.compile(r"[ \t]*\[\[[ \t]*known[ \t]*\]\]")
_NEW_FILE = """\
# Failures on record, for `gridbuf-conformance check --known`. Each needs a reason, and a link where
# there is one.
"""


@dataclass
class Changes:
    """What runs make of the records of a file: those to keep, cut out, change and append."""

    kept: list[Known] = field(default_factory=list)
    removed: list[Known] = field(default_factory=list)
    changed: list[tuple[Known, Known]] = field(default_factory=list)
    added: list[Known] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.removed or self.changed or self.added)


def update(path: Path, entries: Sequence[Known], reports: Mapping[str, Report]) -> Changes:
    """Edits `path` by what runs with its records came to; a file that is not there is made.

    `reports` has each by the name that new records give the library: what a person wrote, so that a
    file about several own producers can be used with each of them.

    Raises KnownError if the file's text cannot be edited, OSError if it cannot be written.
    """
    changes = changes_by(entries, reports)
    if changes or not path.exists():
        text = path.read_text(encoding="utf-8") if path.exists() else _NEW_FILE
        _write(path, edited(text, path.name, changes))
    return changes


def changes_by(entries: Sequence[Known], reports: Mapping[str, Report]) -> Changes:
    """What the reports make of the records; records that no run replayed are kept."""
    changes = Changes()
    replayed: dict[tuple[Any, ...], Event] = {}
    for report in reports.values():
        for event in report.events:
            if event["event"] == "known":
                replayed[(event["place"], event["rule"])] = event
    for known in entries:
        event = replayed.get((known.place, known.rule), {"state": State.UNJUDGED})
        if event["state"] in (State.PASSES, State.DECLINED):
            changes.removed.append(known)
        elif event["state"] == State.OTHERWISE:
            now = replace(known, outcome=Outcome(event["outcome"]), actual=_piece(event["actual"]))
            changes.changed.append((known, now))
        else:
            changes.kept.append(known)
    for name, report in reports.items():
        names = (name, report.data["target"]["name"])
        changed = {(old.rule, old.plan) for old, _ in changes.changed if old.target in names}
        gone = [old for old in changes.removed if old.target in names]
        for known in _new(name, report):
            if (known.rule, known.plan) not in changed:
                changes.added.append(_heir(known, gone, replayed))
    return changes


def _new(name: str, report: Report) -> Iterator[Known]:
    """A record for each failure of the report that has no record."""
    target = report.data["target"]
    for rule in report.data["rules"]:
        for failure in rule["failures"]:
            outcome = Outcome(failure["outcome"])
            if outcome not in FAILED or outcome is Outcome.XPASS:
                continue
            plan = failure["plan"] or _plan_that_was_judged(report)
            yield Known(
                rule=rule["id"],
                side=target["side"],
                target=Target(name).shown,
                plan=plan_of(json.dumps(plan), target["side"]),
                outcome=outcome,
                actual=_piece(failure["actual"]),
            )


def _plan_that_was_judged(report: Report) -> Mapping[str, Any]:
    """A plan for a process that died as it ended: any judged plan, because no plan caused it."""
    plans = (
        e["plan"] for e in report.events if e["event"] == "plan" and e["result"] == "observation"
    )
    found: Mapping[str, Any] = next(plans, {})
    return found


def _heir(known: Known, removed: Sequence[Known], replayed: Mapping[Any, Event]) -> Known:
    """A new record takes over what a person wrote on one whose plan the library declines by now."""
    for old in removed:
        declined = replayed[(old.place, old.rule)]["state"] == State.DECLINED
        if declined and (old.rule, old.side) == (known.rule, known.side):
            return replace(known, reason=old.reason, link=old.link, versions=old.versions)
    return known


def _piece(actual: str) -> str:
    """The beginning of a failure's text: enough to tell it from another."""
    return actual[:_MAX_ACTUAL_CHARS].encode("utf-8", "replace").decode("utf-8")


# The text
# --------------------------------------------------------------------------------------------------


def edited(text: str, name: str, changes: Changes) -> str:
    """The file's text after the changes; raises KnownError for records that have no own lines."""
    before = parse(text, name)
    head, blocks = _blocks(text)
    if len(blocks) != len(before):
        raise KnownError(f"{name} cannot be edited: write each record under its own line [[known]]")
    removed = {known.identity for known in changes.removed}
    changed = {old.identity: new for old, new in changes.changed}
    parts = [head]
    for known, block in zip(before, blocks):
        now = changed.get(known.identity)
        if known.identity not in removed:
            parts.append(_rewritten(block, now) if now else block)
    body = "".join(parts).rstrip("\n") + "\n"
    return body + "".join(f"\n{_block(known)}" for known in changes.added)


def _blocks(text: str) -> tuple[str, list[str]]:
    """The text before the first record, and each record with the comments directly above it."""
    lines = text.splitlines(keepends=True)
    starts = []
    for number, line in enumerate(lines):
        if _HEADER.match(line):
            while number > 0 and lines[number - 1].lstrip().startswith("#"):
                number -= 1
            starts.append(number)
    ends = [*starts[1:], len(lines)]
    head = "".join(lines[: starts[0] if starts else len(lines)])
    return head, ["".join(lines[begin:end]) for begin, end in zip(starts, ends)]


def _rewritten(block: str, known: Known) -> str:
    """A record's text with the keys `outcome` and `actual` of `known`."""
    document, keys = tomlkit.parse(block), _keys(known)
    record: Any = document["known"]
    for key in ("outcome", "actual"):
        if key in keys:
            record[0][key] = keys[key]
        else:
            record[0].pop(key, None)
    return tomlkit.dumps(document)


def _block(known: Known) -> str:
    """A new record's text."""
    lines = [f"{key} = {value.as_string()}\n" for key, value in _keys(known).items()]
    return "[[known]]\n" + "".join(lines)


def _keys(known: Known) -> dict[str, String]:
    keys = {
        "rule": known.rule,
        known.side: known.target,
        "versions": known.versions,
        "plan": known.plan.to_json(brief=True),
        "outcome": "" if known.outcome is Outcome.FAIL else str(known.outcome),
        "actual": known.actual,
        "reason": known.reason,
        "link": known.link,
    }
    return {key: _quoted(text) for key, text in keys.items() if text or key == "reason"}


def _quoted(text: str) -> String:
    """A literal string where that reads better: JSON is full of quotes."""
    is_literal = '"' in text and "'" not in text and text.isprintable()
    return tomlkit.string(text, literal=is_literal)


def _write(path: Path, text: str) -> None:
    """All of the new text or the old file: never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(temporary, path.stat().st_mode if path.exists() else 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
