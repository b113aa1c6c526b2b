"""Draws pictures of docs/gallery.md from what the examples examples/python/gallery_*.py compute: gallery-halo.svg and others.

Run `python docs/images/gallery.py` where gridbuf and GT4Py are installed. docs/test_gallery.py checks that the committed pictures
are those of this file. They are narrow, so that a telephone shows them whole.
"""

import contextlib
import io
import runpy
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from make import (
    BLUE, BROWN, GREY, INK, MONO, PALE_GREEN, PALE_ORANGE, PAPER, SAND, SILVER, SMALL, Picture,
)  # fmt: skip

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples/python"
WIDTH, LEFT = 400, 24
COLD, MIDDLE, WARM = (33, 102, 172), (247, 247, 247), (178, 60, 24)


def computed(example: str) -> dict[str, Any]:
    """The variables of an example after it ran."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return runpy.run_path(str(EXAMPLES / f"gallery_{example}.py"))
    finally:
        sys.path.remove(str(EXAMPLES))


def colour(share: float, *stops: tuple[int, int, int]) -> str:
    """The colour at `share`, from 0 to 1, of a scale with these colours at equal distances."""
    place = share * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    mixed = (a + (b - a) * (place - first) for a, b in zip(stops[first], stops[first + 1]))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def halo() -> Picture:
    field = computed("halo")["field"]
    values, inner = field.to_numpy(), field.domain_view.shape
    cell, top = 35, 74
    left = (WIDTH - values.shape[0] * cell) / 2
    bottom = top + values.shape[1] * cell
    picture = Picture(
        "A periodic field and its halo",
        "A grid of numbers. The domain counts from 0 to 23. The halo of two points around it has the numbers of the"
        " opposite edge.",
        bottom + 76,
        f"{inner[0]} × {inner[1]} points in a halo of {field.halo[0][0]}",
        width=WIDTH,
    )
    inside = [range(low, n - high) for n, (low, high) in zip(values.shape, field.halo, strict=True)]
    for (i, j), value in np.ndenumerate(values):
        x, y = left + i * cell, top + j * cell
        fill = colour(value / values.max(), (235, 244, 253), (140, 188, 238))
        is_inside = i in inside[0] and j in inside[1]
        if not is_inside:
            fill = colour(value / values.max(), (253, 244, 222), (240, 196, 110))
        picture.box(x, y, cell, cell, fill, stroke=PAPER, stroke_width=2)
        place = {"text_anchor": "middle", "bold": is_inside}
        picture.text(x + cell / 2, y + cell / 2 + 5, f"{value:.0f}", **place)
    corner = (left + inside[0][0] * cell, top + inside[1][0] * cell)
    picture.box(*corner, len(inside[0]) * cell, len(inside[1]) * cell, stroke=INK, stroke_width=3)
    key(
        picture,
        bottom + 18,
        [(BLUE, "domain: what a stencil writes"), (SAND, "halo: copies of the opposite edge")],
    )
    return picture


def key(picture: Picture, top: float, entries: list[tuple[str, str]]) -> None:
    for n, (fill, words) in enumerate(entries):
        picture.box(LEFT, top + 24 * n, 18, 18, fill)
        picture.text(LEFT + 28, top + 24 * n + 14, words)


def layouts() -> Picture:
    data = computed("layouts")
    per_line, slot, row, left, top = 8, 38, 30, 72, 96
    fills = [BLUE, SAND, PALE_GREEN, PALE_ORANGE]
    lines = {name: -(-(max(places) + 1) // per_line) for name, places in data["elements"].items()}
    height = top + sum(row * count + 52 for count in lines.values())
    picture = Picture(
        "One field in three layouts",
        "The memory of a field of 6 × 4 elements in rows of 64 bytes, for three layouts: J contiguous, I contiguous, and I"
        " contiguous with two elements of padding after each six.",
        height,
        f"{' × '.join(map(str, data['SHAPE']))} float64. Each row: 64 bytes of memory",
        width=WIDTH,
    )
    for n, fill in enumerate(fills):
        picture.box(LEFT + 66 * n, 68, 16, 16, fill)
        picture.text(LEFT + 66 * n + 22, 81, f"J = {n}", size=SMALL)
    picture.box(LEFT + 66 * 4, 68, 16, 16, SILVER)
    picture.text(LEFT + 66 * 4 + 22, 81, "padding", size=SMALL)
    y = top
    for name, places in data["elements"].items():
        strides = data["fields"][name].strides
        picture.text(LEFT, y + 22, f'"{name}"', font_family=MONO, size=13, bold=True)
        picture.text(
            WIDTH - LEFT, y + 22, f"strides {strides}", size=13, fill=GREY, text_anchor="end"
        )
        y += 32
        last = max(places)
        for place in range(lines[name] * per_line):
            i, j = places.get(place, (None, None))
            if place > last:
                break
            x, line = left + place % per_line * slot, y + place // per_line * row
            picture.box(
                x, line, slot, row, SILVER if i is None else fills[j], stroke=PAPER, stroke_width=2
            )
            if i is not None:
                picture.text(x + slot / 2, line + 20, f"{i},{j}", size=13, text_anchor="middle")
        for line in range(lines[name]):
            picture.text(
                left - 8,
                y + line * row + 20,
                f"+{64 * line}",
                size=SMALL,
                text_anchor="end",
                fill=GREY,
            )
        y += row * lines[name] + 20
    return picture


def sides() -> Picture:
    data = computed("sides")
    field, steps = data["field"], data["steps"]
    top, row, box, host, device = 88, 44, 26, 234, 340
    picture = Picture(
        "Host and device in step",
        "Seven steps of a program, from top to bottom, with the side that is current after each, and the bytes that gridbuf"
        " copied between the sides.",
        top + row * len(steps) + 100,
        f"A field of {' × '.join(map(str, field.shape))} {field.dtype}, {field.nbytes / 1e6:.1f} MB",
        width=WIDTH,
    )
    for x, words in ((host, "host"), (device, "device")):
        picture.text(x + box / 2, top - 8, words, bold=True, text_anchor="middle")
    before = (0, 0)
    for n, (step, to_device, to_host, state) in enumerate(steps):
        y = top + n * row + 8
        picture.text(LEFT, y + 18, step, size=12.5, font_family=MONO)
        for x, newer in ((host, "DEVICE_DIRTY"), (device, "HOST_DIRTY")):
            picture.box(x, y, box, box, "url(#old)" if newer in state else BLUE, stroke=INK)
        moved = to_device - before[0], to_host - before[1]
        before = to_device, to_host
        start, end = host + box + 6, device - 14
        if moved[0]:
            picture.arrow(f"M {start} {y + 18} H {end}", (end + 8, y + 18), 0, BROWN)
        if moved[1]:
            picture.arrow(f"M {end + 8} {y + 18} H {start + 8}", (start, y + 18), 180, BROWN)
        words = f"{sum(moved):,}".replace(",", " ") + " B" if sum(moved) else ""
        picture.text(
            (host + box + device) / 2, y + 10, words, size=SMALL, fill=BROWN, text_anchor="middle"
        )
    y = top + row * len(steps) + 16
    key(
        picture,
        y,
        [(BLUE, "current: all values"), ("url(#old)", "a part is newer on the other side")],
    )
    picture.text(LEFT, y + 66, "→  bytes that gridbuf copied in this step", fill=BROWN)
    return picture


def cells() -> Picture:
    data = computed("cells")
    radius, middle_y = 84, 172
    picture = Picture(
        "Cells of an icosahedral grid",
        "Two globes of triangles. At the left the values of the cells are random, at the right they are smooth.",
        344,
        f"{len(data['cells'])} cells, level 0 of {data['before'].shape[1]}",
        width=WIDTH,
    )
    turned = data["vertices"] @ rotation(0.3, 0.5)
    after = data["phi"].ndarray
    for centre, values, words in (
        (LEFT + radius, data["before"][:, 0], "before"),
        (WIDTH - LEFT - radius, after[:, 0], "after 20 steps"),
    ):
        globe(picture, turned[data["cells"]], values, (centre, middle_y), radius)
        picture.text(centre, middle_y + radius + 24, words, text_anchor="middle")
    for n in range(60):
        x, fill = WIDTH / 2 - 90 + 3 * n, colour(n / 59, COLD, MIDDLE, WARM)
        picture.box(x, 306, 3.4, 12, fill)
    picture.text(WIDTH / 2 - 98, 317, "least", size=SMALL, text_anchor="end")
    picture.text(WIDTH / 2 + 98, 317, "greatest", size=SMALL)
    return picture


def rotation(tilt: float, turn: float) -> np.ndarray:
    about_x = [[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]]
    about_z = [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
    return np.array(about_x) @ np.array(about_z)


def globe(
    picture: Picture,
    corners: np.ndarray,
    values: np.ndarray,
    centre: tuple[float, float],
    radius: int,
) -> None:
    """The cells that face the viewer, who looks along the second axis: one path for each colour."""
    shares = (values - values.min()) / np.ptp(values)
    paths = defaultdict(list)
    for triangle, share in zip(corners, shares, strict=True):
        if triangle[:, 1].mean() < 0:
            points = [(centre[0] + radius * x, centre[1] - radius * z) for x, _, z in triangle]
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            paths[round(share * 30)].append(f"M{path}z")
    for level, path in sorted(paths.items()):
        fill = colour(level / 30, COLD, MIDDLE, WARM)
        picture.add("path", d="".join(path), fill=fill, stroke=fill, stroke_width=0.6)


PICTURES = {f"gallery-{draw.__name__}.svg": draw for draw in (halo, layouts, sides, cells)}


def main() -> None:
    for name, draw in PICTURES.items():
        (HERE / name).write_text(draw().svg(), "utf-8")


if __name__ == "__main__":
    main()
