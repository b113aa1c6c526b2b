"""The drawing of a layout failure, as text for terminals and as SVG for the HTML page.

A verdict carries data, not a picture: `shape`, `strides` (bytes), `itemsize`, `offset` (byte
position of element (0, …, 0)), the byte `hull` that the elements span, the `block` of memory that
the producer owns (or None if it is unknown), and `marks` on single positions. All positions are in
bytes relative to one origin of the judge's choice, never addresses. Both renderings show the same
four lines on one byte axis: the block, the elements, the hull with its part outside the block in
red, and the marks.

`Scene` does the arithmetic for both, and survives anything: hulls of 2^70 bytes, no elements, no
block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from ..text import clean, plural, shorten

_MAX_ELEMENTS_DRAWN = 256
_MAX_MARKS_DRAWN = 6
_MAX_LABEL_CHARS = 90

Span = tuple[int, int]


@dataclass(frozen=True)
class Scene:
    """The completed data of a drawing: the parts outside, and the byte range that shows all."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    offset: int
    hull: Span
    block: Span | None
    marks: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, drawing: Mapping[str, Any]) -> Scene:
        """Reads the data of a verdict; lists become tuples, a missing block stays None."""
        block = drawing.get("block")
        return cls(
            tuple(drawing.get("shape") or ()),
            tuple(drawing.get("strides") or ()),
            int(drawing.get("itemsize") or 0),
            int(drawing.get("offset") or 0),
            tuple(drawing["hull"]),
            tuple(block) if block else None,
            tuple(drawing.get("marks") or ()),
        )

    @property
    def view(self) -> Span:
        """The byte range that holds the block, the hull and every mark; at least one byte long."""
        positions = [*self.hull, *(self.block or ()), *(int(m["offset"]) for m in self.marks)]
        return min(positions), max(max(positions), min(positions) + 1)

    @property
    def outside(self) -> tuple[Span, ...]:
        """The parts of the hull before and after the block; none if the block is unknown."""
        if self.block is None or self.hull[0] >= self.hull[1]:
            return ()
        before = (self.hull[0], min(self.hull[1], self.block[0]))
        after = (max(self.hull[0], self.block[1]), self.hull[1])
        return tuple(span for span in (before, after) if span[0] < span[1])

    @property
    def element_count(self) -> int:
        """How many elements the shape has."""
        return math.prod(self.shape)

    def elements(self) -> Iterator[tuple[tuple[int, ...], Span]]:
        """Each element's index and bytes, in C order; nothing for shapes that are too large."""
        if self.element_count > _MAX_ELEMENTS_DRAWN or len(self.shape) != len(self.strides):
            return
        for index in itertools.product(*map(range, self.shape)):
            first = self.offset + sum(i * stride for i, stride in zip(index, self.strides))
            yield index, (first, first + self.itemsize)

    def is_outside(self, span: Span) -> bool:
        """Whether any byte of `span` is known to be outside the block."""
        return self.block is not None and (span[0] < self.block[0] or span[1] > self.block[1])

    def summary(self) -> str:
        """One sentence that describes the picture, for screen readers."""
        said = [f"the elements reach from byte {self.hull[0]:,} up to byte {self.hull[1]:,}"]
        if self.block is None:
            said.append("the block they belong to is unknown")
        else:
            said.append(f"the block has bytes {self.block[0]:,} up to {self.block[1]:,}")
            lost = sum(hi - lo for lo, hi in self.outside)
            said.append(f"{plural(lost, 'byte')} outside it" if lost else "nothing is outside it")
        return "; ".join(said)

    def shown_marks(self) -> list[tuple[int, str]]:
        """Position and label of the first few marks, and how many more there are."""
        shown = []
        for mark in self.marks[:_MAX_MARKS_DRAWN]:
            index = mark.get("index")
            name = f"{_bracketed(index)} " if index is not None else ""
            label = shorten(clean(mark.get("label", "")), _MAX_LABEL_CHARS)
            position = int(mark["offset"])
            shown.append(
                (position, f"{name}at byte {position:,}" + (f": {label}" if label else ""))
            )
        return shown

    def hidden_marks(self) -> int:
        """How many marks `shown_marks` leaves out."""
        return max(0, len(self.marks) - _MAX_MARKS_DRAWN)


def _bracketed(index: Any) -> str:
    return "[" + ",".join(str(i) for i in index) + "]"


def _ticks(view: Span, most: int) -> Iterator[int]:
    """At most about `most` round positions in `view`: multiples of a power of two."""
    step = 1
    while (view[1] - view[0]) / step > most:
        step *= 2
    yield from range(-(-view[0] // step) * step, view[1] + 1, step)


# Text
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pen:
    """Maps bytes to columns: tiny layouts have several a byte, large ones many bytes a column."""

    view: Span
    width_columns: int

    @property
    def _columns_per_byte(self) -> float:
        exact = self.width_columns / (self.view[1] - self.view[0])
        return min(8, math.floor(exact)) if exact >= 1 else exact

    def column(self, position: int) -> int:
        inside = min(max(position, self.view[0]), self.view[1])
        return min(self.width_columns, round((inside - self.view[0]) * self._columns_per_byte))

    def columns(self, span: Span) -> range:
        """The columns of a span of bytes; a span that is not empty has at least one column."""
        first = min(self.column(span[0]), self.width_columns - 1)
        return range(first, max(first + 1, self.column(span[1])) if span[0] < span[1] else first)


def to_text(drawing: Mapping[str, Any], width_columns: int = 64) -> list[str]:
    """The drawing as text lines in a fixed-width font, with a byte axis of `width_columns`."""
    scene = Scene.of(drawing)
    pen = _Pen(scene.view, width_columns)
    lines = [("byte", _axis_line(scene, pen), "")]
    if scene.block is None:
        lines.append(("block", "", "unknown"))
    else:
        size = f"bytes {scene.block[0]:,} to {scene.block[1]:,}"
        lines.append(("block", _bar(pen, scene.block, "█"), size))
    if elements := _element_line(scene, pen):
        lines.append(
            ("elements", elements, f"{scene.element_count:,} × {plural(scene.itemsize, 'byte')}")
        )
    lines.append(("hull", _hull_line(scene, pen), _hull_remark(scene)))
    lines += [
        ("", " " * pen.column(position) + "▲ " + label, "")
        for position, label in scene.shown_marks()
    ]
    if scene.hidden_marks():
        lines.append(("", f"… and {plural(scene.hidden_marks(), 'more mark')}", ""))
    used = max(len(body) for _, body, remark in lines if remark or not body)
    return [
        f"{label:<9}{body:<{used}}  {remark}".rstrip() if remark else f"{label:<9}{body}".rstrip()
        for label, body, remark in lines
    ]


def _axis_line(scene: Scene, pen: _Pen) -> str:
    """Positions of round bytes, each label starting at its column, apart from the next."""
    line = ""
    for tick in _ticks(scene.view, most=max(2, pen.width_columns // 10)):
        column = pen.column(tick)
        if not line or column > len(line):
            line = line.ljust(column) + f"{tick:,}"
    return line


def _bar(pen: _Pen, span: Span, sign: str) -> str:
    columns = pen.columns(span)
    return " " * columns.start + sign * len(columns)


def _element_line(scene: Scene, pen: _Pen) -> str:
    """Every element as `[0  ]`, without its index if there is no room, as `■` in one column."""
    line = [" "] * pen.width_columns
    for index, span in scene.elements():
        columns = pen.columns(span)
        name = ",".join(map(str, index))
        room = len(columns) - 2
        if len(name) > room:
            name = ""
        text = f"[{name:<{room}}]" if room >= 0 else "■"
        line[columns.start : columns.stop] = text
    return "".join(line).rstrip()


def _hull_line(scene: Scene, pen: _Pen) -> str:
    columns = pen.columns(scene.hull)
    if not columns:
        return " " * columns.start + "╵"
    body = "─" * len(columns) if len(columns) < 2 else "├" + "─" * (len(columns) - 2) + "┤"
    line = list(" " * columns.start + body)
    for span in scene.outside:
        for column in pen.columns(span):
            if column < len(line):
                line[column] = "╳"
    return "".join(line)


def _hull_remark(scene: Scene) -> str:
    if scene.hull[0] >= scene.hull[1]:
        return "empty: no byte is touched"
    remark = f"bytes {scene.hull[0]:,} to {scene.hull[1]:,}"
    lost = sum(hi - lo for lo, hi in scene.outside)
    return f"{remark}, {plural(lost, 'byte')} outside the block" if lost else remark


# SVG
# --------------------------------------------------------------------------------------------------

_LEFT, _RIGHT, _ROW, _BAR = 76, 16, 30, 18
_WIDTH = 760


class _Canvas:
    """Maps bytes to x coordinates and collects SVG elements. Colours are the style sheet's."""

    def __init__(self, view: Span) -> None:
        self.view = view
        self.parts: list[str] = []

    def x(self, position: int) -> float:
        inside = min(max(position, self.view[0]), self.view[1])
        share = (inside - self.view[0]) / (self.view[1] - self.view[0])
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def rect(self, kind: str, span: Span, y: float, title: str = "") -> None:
        """A bar over `span`, at least as wide as a hairline so that nothing vanishes by scaling."""
        x = self.x(span[0])
        width = max(1.5, round(self.x(span[1]) - x, 1))
        hover = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{_BAR}" rx="2">'
            f"{hover}</rect>"
        )

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')

    def text(self, kind: str, x: float, y: float, text: str, anchor: str = "start") -> None:
        self.parts.append(
            f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
        )


def to_svg(drawing: Mapping[str, Any]) -> str:
    """The drawing as one inline `<svg>` with a title that says in words what it shows."""
    scene = Scene.of(drawing)
    canvas = _Canvas(scene.view)
    _draw_axis(canvas, scene)
    y = 30
    canvas.text("d-label", 0, y + 13, "block")
    if scene.block is None:
        canvas.text("d-note", _LEFT, y + 13, "unknown")
    else:
        canvas.rect("d-block", scene.block, y, f"bytes {scene.block[0]:,} to {scene.block[1]:,}")
    if 0 < scene.element_count <= _MAX_ELEMENTS_DRAWN:
        y += _ROW
        _draw_elements(canvas, scene, y)
    y += _ROW
    _draw_hull(canvas, scene, y)
    y = _draw_marks(canvas, scene, y + _ROW)
    title = escape(scene.summary())
    return (
        f'<svg class="drawing" viewBox="0 0 {_WIDTH} {y}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{''.join(canvas.parts)}</svg>"
    )


def _draw_axis(canvas: _Canvas, scene: Scene) -> None:
    canvas.text("d-label", 0, 14, "byte")
    free_from = 0.0
    for tick in _ticks(scene.view, most=12):
        x = canvas.x(tick)
        canvas.line("d-tick", x, 20, x, 26)
        label = f"{tick:,}"
        half = len(label) * 3.6
        if x - half >= free_from and x + half <= _WIDTH:
            canvas.text("d-axis", x, 14, label, "middle")
            free_from = x + half + 8


def _draw_elements(canvas: _Canvas, scene: Scene, y: int) -> None:
    canvas.text("d-label", 0, y + 13, "elements")
    for index, span in scene.elements():
        kind = "d-element d-bad" if scene.is_outside(span) else "d-element"
        name = ",".join(map(str, index))
        canvas.rect(kind, span, y, f"[{name}]: bytes {span[0]:,} to {span[1]:,}")
        middle = (canvas.x(span[0]) + canvas.x(span[1])) / 2
        if len(name) * 7 + 6 <= canvas.x(span[1]) - canvas.x(span[0]):
            canvas.text("d-index", round(middle, 1), y + 13, name, "middle")


def _draw_hull(canvas: _Canvas, scene: Scene, y: int) -> None:
    canvas.text("d-label", 0, y + 13, "hull")
    if scene.hull[0] >= scene.hull[1]:
        canvas.text("d-note", _LEFT, y + 13, _hull_remark(scene))
        return
    middle = y + _BAR / 2
    left, right = canvas.x(scene.hull[0]), canvas.x(scene.hull[1])
    canvas.line("d-hull", left, middle, right, middle)
    for end in (left, right):
        canvas.line("d-hull", end, y + 3, end, y + _BAR - 3)
    for span in scene.outside:
        lost = plural(span[1] - span[0], "byte")
        canvas.rect("d-outside", span, y, f"{lost} outside the block")


def _draw_marks(canvas: _Canvas, scene: Scene, y: int) -> int:
    """One line a mark, its label turned to the side that has room; returns the picture's height."""
    for position, label in scene.shown_marks():
        x = canvas.x(position)
        canvas.line("d-leader", x, 26, x, y + 4)
        canvas.parts.append(f'<path class="d-mark" d="M{x} {y}l4 8h-8z"/>')
        if x < _WIDTH * 0.55:
            canvas.text("d-note", x + 9, y + 9, label)
        else:
            canvas.text("d-note", x - 9, y + 9, label, "end")
        y += 18
    if scene.hidden_marks():
        canvas.text("d-note", _LEFT, y + 9, f"… and {plural(scene.hidden_marks(), 'more mark')}")
        y += 18
    return y + 2
