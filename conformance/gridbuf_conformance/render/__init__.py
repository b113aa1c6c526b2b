"""Renderings of JSON reports: terminal, one HTML page, Markdown, JUnit XML, JSON, a badge.

A renderer reads report dictionaries and nothing else; it never runs a check. What all of them share
is in `summary` (counting and ranking), `text` (making a producer's words safe) and `drawing`
(layout failures).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from .summary import Absent, ReportDict

__all__ = ["FORMATS", "SURVEY_SCHEMA", "check_suffix", "to_json", "write"]

SURVEY_SCHEMA = "gridbuf-conformance-survey/2"


def to_json(reports: Sequence[ReportDict], absent: Sequence[Absent] = ()) -> str:
    """One report as an object; several, or some with absent libraries, as one survey object."""
    document = (
        reports[0]
        if len(reports) == 1 and not absent
        else {
            "schema": SURVEY_SCHEMA,
            "reports": list(reports),
            "absent": [vars(library) for library in absent],
        }
    )
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    # Text of a producer may hold lone surrogates, which files cannot hold; JSON writes them as
    # escapes.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# The renderers are imported when they are used: most commands need none of them, and templates are
# slow to load.


def _html(reports: Sequence[ReportDict], absent: Sequence[Absent] = ()) -> str:
    from . import html

    return html.render(reports, absent)


def _junit(reports: Sequence[ReportDict], absent: Sequence[Absent] = ()) -> str:
    """JUnit cannot show absent libraries; the other formats name them."""
    from . import junit

    return junit.render(reports)


def _markdown(reports: Sequence[ReportDict], absent: Sequence[Absent] = ()) -> str:
    from . import markdown

    return markdown.render(reports, absent)


def _badge(reports: Sequence[ReportDict], absent: Sequence[Absent] = ()) -> str:
    from . import badge

    return badge.render(reports, absent)


FORMATS: dict[str, Callable[[Sequence[ReportDict], Sequence[Absent]], str]] = {
    ".html": _html,
    ".json": to_json,
    ".md": _markdown,
    ".svg": _badge,
    ".xml": _junit,
}
"""The format for each suffix of a report file."""


def check_suffix(path: str | Path) -> Path:
    """`path`, if its suffix names a format; raises ValueError with the suffixes there are."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(
            f"cannot tell the format of report {str(path)!r}: "
            f"its suffix must be one of {', '.join(FORMATS)}"
        )
    return path


def write(path: str | Path, reports: Sequence[ReportDict], absent: Sequence[Absent] = ()) -> Path:
    """Writes reports to `path` in the format of its suffix, making its folder; returns the path.

    Raises ValueError for an unknown suffix, OSError where the file cannot be written.
    """
    path = check_suffix(path)
    text = FORMATS[path.suffix.lower()](reports, absent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path
