"""Reports as a badge for a README: one small SVG, in the flat form that readers know.

It needs no font file, no network and no service: the widths of the letters are estimated (digits
and most letters of an 11 px sans serif) and `textLength` makes every browser keep to the estimate.
No element has an id, so that one page can hold many badges. The only texts of a producer in it are
the name and version in the title, escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from ..outcomes import Outcome
from ..text import clean, plural, shorten
from .summary import Absent, ReportDict, conclusion, matrices

_LABEL = "conformance"
_COLOURS = {
    "passed": "#2a7d3f",
    "known": "#8a6100",
    "failed": "#c5303d",
    "error": "#7a3d99",
    "silent": "#5b616e",
}
"""White text on each has a contrast of at least 4.5 to 1."""
_DIED = (Outcome.CRASH, Outcome.UNSTABLE)
_PAD_PX, _HEIGHT_PX, _RADIUS_PX = 8, 20, 3
_WIDTHS_PX = {**dict.fromkeys("filjtr.,:! ", 4.0), **dict.fromkeys("mwMW✓✗≈", 10.2)}
_MAX_TITLE_CHARS = 120


def render(reports: Sequence[ReportDict], absent: Sequence[Absent] = ()) -> str:
    """The SVG of one report, or of the number of conforming ones. It shows no absent libraries."""
    message, kind = message_of(reports)
    return drawn(_LABEL, message, kind, _subject(reports))


def drawn(label: str, message: str, kind: str, subject: str) -> str:
    """The SVG of two texts in the colour of a kind; `subject` is in the title only."""
    left, right = (_text_px(text) + 2 * _PAD_PX for text in (label, message))
    title = escape(f"{subject}: {message}")
    return _SVG.format(
        width=left + right,
        left=left,
        straight=_HEIGHT_PX - 2 * _RADIUS_PX,
        label_straight=left - _RADIUS_PX,
        label=escape(label),
        message=escape(message),
        title=title,
        colour=_COLOURS[kind],
        label_x=left / 2,
        message_x=left + right / 2,
        label_px=left - 2 * _PAD_PX,
        message_px=right - 2 * _PAD_PX,
        height=_HEIGHT_PX,
    )


def message_of(reports: Sequence[ReportDict]) -> tuple[str, str]:
    """What the badge says, and the kind of its colour: "142 rules ✓", "3 of 142 failed", …"""
    if len(reports) != 1:
        return _message_of_many(reports)
    (report,) = reports
    kind, _ = conclusion(report)
    total = matrices(reports)[0][1].rows[0].total
    if not report["rules"]:
        return "nothing selected", "silent"
    if total.of_kind("error"):
        return "suite error", "error"
    if failed := total.of_kind("failed"):
        died = sum(total.outcomes[str(outcome)] for outcome in _DIED)
        remark = f", {plural(died, 'crash').replace('crashs', 'crashes')}" if died else ""
        return f"{failed} of {total.judged} failed{remark}", "failed"
    if kind != "passed":
        return "nothing judged", "silent"
    if known := total.of_kind("known"):
        return f"{plural(total.judged - known, 'rule')} ✓ {known} known", "known"
    return f"{plural(total.judged, 'rule')} ✓", "passed"


def _message_of_many(reports: Sequence[ReportDict]) -> tuple[str, str]:
    kinds = Counter(conclusion(report)[0] for report in reports)
    if not reports or set(kinds) == {"silent"}:
        return "nothing judged", "silent"
    passed = kinds["passed"]
    kind = "passed" if passed == len(reports) else "failed" if kinds["failed"] else "error"
    return f"{passed} of {len(reports)} conform", kind


def _subject(reports: Sequence[ReportDict]) -> str:
    if len(reports) != 1:
        return plural(len(reports), "library").replace("librarys", "libraries")
    target = reports[0]["target"]
    name = f"{clean(target['name'])} {clean(target.get('version') or '')}".strip()
    return shorten(name.replace("\n", " "), _MAX_TITLE_CHARS)


def _text_px(text: str) -> int:
    return round(sum(_WIDTHS_PX.get(character, 6.9) for character in text))


_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" \
aria-label="{label}: {message}">
<title>{title}</title>
<rect width="{width}" height="{height}" rx="3" fill="{colour}"/>
<path d="M{left} 0H3a3 3 0 0 0-3 3v{straight}a3 3 0 0 0 3 3h{label_straight}z" fill="#4a4f5a"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" \
font-size="11">
<text x="{label_x:g}" y="14" textLength="{label_px}">{label}</text>
<text x="{message_x:g}" y="14" textLength="{message_px}">{message}</text>
</g>
</svg>
"""
