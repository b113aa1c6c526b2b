"""The picture of a storage for notebooks: the field with its halo, and each memory with its current side.

Colours are those of the page (`currentColor`) and translucent ones over its background, so that the picture suits light and
dark pages alike. Halos are drawn wide enough to be seen, so lengths are not to scale.
"""

from __future__ import annotations

from html import escape
from typing import Any

_WIDTH = 460
_CURRENT, _STALE, _HALO, _DOMAIN = "#2e9e5b", "#808080", "#d98e04", "#3b82f6"


def picture(storage: Any) -> str:
    """The SVG of a storage: at the left the field, at the right its memory."""
    field, field_height = _field_parts(storage)
    memory, memory_height = _memory_parts(storage)
    height = max(field_height, memory_height) + 10
    label = escape(
        f"{type(storage).__name__} of shape {storage.shape}: {_summary(storage)}", quote=True
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{label}" '
        f'style="max-width:100%;height:auto" font-family="sans-serif" font-size="11" fill="currentColor">'
        f"{''.join([*field, *memory])}</svg>"
    )


def _rectangle(
    x: float, y: float, width: float, height: float, colour: str, opacity: float, more: str = ""
) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity}" stroke="{colour}" {more}/>'
    )


def _words(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


# The field: its first two dimensions as a plane, the halo around the domain.

_FIELD_X, _FIELD_Y, _FIELD_LENGTH = 62, 24, 120
_LEAST_HALO, _MOST_HALO = 8, 40  # As drawn, so that a halo of 1 of 1000 can be seen.


def _field_parts(storage: Any) -> tuple[list[str], float]:
    across = _Drawn(storage, 0)
    down = _Drawn(storage, 1)
    x, y = _FIELD_X, _FIELD_Y
    has_halo = any(lower + upper for lower, upper in storage.halo[:2])
    parts = [
        *([_halo(across, down)] if has_halo else []),
        _rectangle(
            x + across.lower,
            y + down.lower,
            across.length - across.lower - across.upper,
            down.length - down.lower - down.upper,
            _DOMAIN,
            0.3,
        ),
        _words(x + across.length / 2, y - 8, across.label, 'text-anchor="middle"'),
        _words(x - 8, y + down.length / 2 + 4, down.label, 'text-anchor="end"'),
    ]
    beyond = [f"{name}: {extent}" for name, extent in zip(storage.dims[2:], storage.shape[2:])]
    if beyond:
        more = ", ".join(beyond[:4]) + (", …" if len(beyond) > 4 else "")
        parts.append(_words(x, y + down.length + 18, f"and {more}"))
    bottom = y + down.length + (18 if beyond else 0)
    if has_halo:
        bottom += 18
        parts += _key(x, bottom)
    return parts, bottom


def _halo(across: _Drawn, down: _Drawn) -> str:
    """The plane without the domain, in one piece, so that the colours do not mix."""
    x, y = _FIELD_X, _FIELD_Y
    inner_x, inner_y = x + across.lower, y + down.lower
    inner_width = across.length - across.lower - across.upper
    inner_height = down.length - down.lower - down.upper
    return (
        f'<path d="M{x} {y} h{across.length:.1f} v{down.length:.1f} h{-across.length:.1f} Z '
        f'M{inner_x:.1f} {inner_y:.1f} h{inner_width:.1f} v{inner_height:.1f} h{-inner_width:.1f} Z" '
        f'fill="{_HALO}" fill-opacity="0.3" fill-rule="evenodd" stroke="{_HALO}"/>'
    )


def _key(x: float, y: float) -> list[str]:
    return [
        _rectangle(x, y - 9, 10, 10, _DOMAIN, 0.3),
        _words(x + 15, y, "domain"),
        _rectangle(x + 66, y - 9, 10, 10, _HALO, 0.25),
        _words(x + 81, y, "halo"),
    ]


class _Drawn:
    """One dimension as drawn, in pixels; one that is not there is a line."""

    def __init__(self, storage: Any, axis: int) -> None:
        self.lower = self.upper = 0.0
        self.length = 24.0
        self.label = ""
        if axis >= storage.ndim:
            return
        extent, (lower, upper) = storage.shape[axis], storage.halo[axis]
        self.length = float(_FIELD_LENGTH if axis == 0 else _FIELD_LENGTH * 0.75)
        if lower + upper < extent:
            self.lower, self.upper = self._pixels(lower, extent), self._pixels(upper, extent)
        elif extent > 0:  # No domain is left.
            self.lower = self.length * lower / extent
            self.upper = self.length - self.lower
        self.label = f"{storage.dims[axis]}: {extent}"

    def _pixels(self, points: int, extent: int) -> float:
        if points == 0:
            return 0.0
        return min(max(self.length * points / extent, _LEAST_HALO), _MOST_HALO)


# The memory: a box for each side, and the current side.

_MEMORY_X, _MEMORY_WIDTH, _MEMORY_HEIGHT = 270, 170, 48


def _memory_parts(storage: Any) -> tuple[list[str], float]:
    sides = _sides(storage)
    parts = []
    for place, (name, state) in enumerate(sides):
        y = _FIELD_Y + place * (_MEMORY_HEIGHT + 26)
        current = state.startswith("current")
        colour = _CURRENT if current else _STALE
        more = 'rx="6"' if current else 'rx="6" stroke-dasharray="5 3"'
        parts += [
            _rectangle(
                _MEMORY_X, y, _MEMORY_WIDTH, _MEMORY_HEIGHT, colour, 0.25 if current else 0.12, more
            ),
            _words(_MEMORY_X + 12, y + 20, name, 'font-weight="bold"'),
            _words(_MEMORY_X + 12, y + 37, state),
        ]
    if len(sides) == 2:
        parts += _arrow(sides)
    return parts, _FIELD_Y + len(sides) * (_MEMORY_HEIGHT + 26) - 26


def _arrow(sides: list[tuple[str, str]]) -> list[str]:
    """Which way data goes at the next access of the older side."""
    x, top = _MEMORY_X + 24, _FIELD_Y + _MEMORY_HEIGHT + 4
    bottom = top + 18
    host, device = (state.startswith("current") for _, state in sides)
    if host and device:
        return [_words(x - 8, top + 13, "=", 'font-size="15"')]
    down = not device
    up = not host
    parts = [f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="currentColor"/>']
    if down:
        parts.append(
            f'<path d="M{x - 4} {bottom - 5} L{x} {bottom} L{x + 4} {bottom - 5}" fill="none" stroke="currentColor"/>'
        )
    if up:
        parts.append(
            f'<path d="M{x - 4} {top + 5} L{x} {top} L{x + 4} {top + 5}" fill="none" stroke="currentColor"/>'
        )
    parts.append(_words(x + 12, top + 13, "copied when it is accessed", 'opacity="0.7"'))
    return parts


def _sides(storage: Any) -> list[tuple[str, str]]:
    """The memories there are, each with its state in words."""
    device = "emulated device" if storage._is_emulated else "device"
    managed = storage.managed
    if storage.device is None:
        return [("host", "current: its only memory")]
    if managed is None:
        return [(device, "current: its only memory")]
    if managed == "cuda":
        return [(f"host and {device}", "current: one memory of both")]
    current = storage._current_sides()
    if not current:
        return [("host", "partly older"), (device, "partly older")]
    return [
        (name, "current" if side in current else "older")
        for name, side in (("host", "host"), (device, "device"))
    ]


def _summary(storage: Any) -> str:
    return "; ".join(f"{name} {state}" for name, state in _sides(storage))
