"""`merge`: reports of several runs, read back from their files and put side by side.

Runs may come from many machines and days, so everything that would make a wrong table is refused
with the file's name and what to do: a schema of another version, an event stream without its end, a
file that is not a report, and the same library twice (its two rows could disagree).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..outcomes import Outcome
from ..render import SURVEY_SCHEMA
from ..render.report import SCHEMA, Report
from ..render.summary import Absent, ReportDict, side_of
from ..rules.catalogue import LEVELS

_RULE_ID = re.compile(r"[A-Z]{2,5}-[0-9]{2,3}")
_KEYS = ("suite", "target", "profile", "summary", "rules")


class MergeError(ValueError):
    """Files that cannot be put together; the text names them and says what to do."""


def merged(paths: Sequence[Path]) -> tuple[list[ReportDict], list[Absent]]:
    """The reports of all files in their order, and the libraries that surveys found absent.

    A library that some file has judged is not absent. Raises MergeError.
    """
    reports: list[ReportDict] = []
    absent: dict[str, Absent] = {}
    origins: dict[tuple[str, ...], Path] = {}
    for path in paths:
        found, missing = _read(path)
        for report in found:
            identity = _identity(report)
            if identity in origins:
                raise MergeError(_twice(identity, origins[identity], path))
            origins[identity] = path
            reports.append(report)
        absent.update({library.name: library for library in missing})
    judged = {report["target"]["name"] for report in reports}
    return reports, [library for name, library in absent.items() if name not in judged]


def _identity(report: ReportDict) -> tuple[str, ...]:
    target = report["target"]
    info = (target.get(key) or "" for key in ("name", "version", "python", "platform"))
    return (side_of(report), *map(str, info), str(report["profile"]))


def _twice(identity: tuple[str, ...], first: Path, second: Path) -> str:
    side, name, version, python, platform, profile = identity
    what = " ".join(filter(None, (side, name, version)))
    where = f"Python {python}, {platform}, profile {profile}"
    files = f"{str(first)!r} and {str(second)!r}" if first != second else f"{str(first)!r}, twice"
    return f"{what} ({where}) is in {files}; leave one of them out"


def _read(path: Path) -> tuple[list[ReportDict], list[Absent]]:
    """The reports of one file, and what its survey found absent."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise MergeError(
            f"cannot read {str(path)!r}: {reason}; name a report that can be"
        ) from None
    if path.suffix.lower() == ".jsonl":
        return [_report_of_events(text, path)], []
    document = _json(text, path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if str(schema).partition("/")[0] == SURVEY_SCHEMA.partition("/")[0]:
        _require_schema(document, SURVEY_SCHEMA, path)
        reports, absent = document.get("reports"), document.get("absent") or []
        if not isinstance(reports, list) or not isinstance(absent, list):
            raise MergeError(f"{str(path)!r} is not a whole survey; write it again")
        return [_report(report, path) for report in reports], [_absent(one, path) for one in absent]
    return [_report(document, path)], []


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "name a .json report or a .jsonl event stream"
        raise MergeError(f"{str(path)!r} is not JSON ({error}); {hint}") from None


def _report(document: Any, path: Path) -> ReportDict:
    """The document, if it has what every renderer reads."""
    if not isinstance(document, dict) or "schema" not in document:
        raise MergeError(
            f"{str(path)!r} is not a report of gridbuf-conformance; name one of --report x.json"
        )
    _require_schema(document, SCHEMA, path)
    missing = [key for key in _KEYS if key not in document]
    is_whole = not missing and all(
        isinstance(document[key], kind)
        for key, kind in (("suite", dict), ("target", dict), ("summary", dict), ("rules", list))
    )
    rules = document["rules"] if is_whole else []
    if not is_whole or not all(map(_is_rule, rules)) or "name" not in document["target"]:
        what = f"the key {missing[0]!r}" if missing else "a part of it"
        raise MergeError(f"{str(path)!r} is not a whole report: {what} is missing; make it again")
    return document


def _require_schema(document: dict[str, Any], wanted: str, path: Path) -> None:
    if document["schema"] != wanted:
        raise MergeError(
            f"{str(path)!r} has the schema {document['schema']!r}, this version reads {wanted!r}; "
            "run it again with this version"
        )


def _is_rule(rule: Any) -> bool:
    """Whether renderers can trust the rule's keys; its texts they clean themselves."""
    if not isinstance(rule, dict) or not {"id", "level", "outcome", "plans"} <= rule.keys():
        return False
    is_known = rule["level"] in LEVELS and rule["outcome"] in set(map(str, Outcome))
    return is_known and isinstance(rule["id"], str) and bool(_RULE_ID.fullmatch(rule["id"]))


def _absent(library: Any, path: Path) -> Absent:
    try:
        return Absent(**library)
    except TypeError:
        raise MergeError(f"{str(path)!r} is not a whole survey; write it again") from None


def _report_of_events(text: str, path: Path) -> ReportDict:
    events = [_json(line, path) for line in text.splitlines() if line.strip()]
    if not all(isinstance(event, dict) and "event" in event for event in events):
        raise MergeError(f"{str(path)!r} is not an event stream; name what --events wrote")
    try:
        return _report(Report.of(events).data, path)
    except (ValueError, KeyError) as error:
        if isinstance(error, MergeError):
            raise
        raise MergeError(
            f"{str(path)!r} is not a finished run: it has no start or no end; run it again"
        ) from None
