"""Draws the pictures of the documentation that are in PICTURES, in one style.

Run `python docs/images/make.py`. After a new survey, record its result first:

    gridbuf-conformance survey --report survey.json
    python docs/images/make.py --record survey.json

The record of shared-halos.svg is of two runs of `./bazelw run //benchmarks -- run --only halo`, round by round.
The record of numpy-allocator.svg is written by `./bazelw run //benchmarks:numpy_allocator -- --json docs/images/numpy-allocator.json`, and
that of memory-loops.svg by `./bazelw run //benchmarks:memory_loops -- --json docs/images/memory-loops.json`.

docs/test_pages.py checks that the committed pictures are those of this file. Pages show them 720 pixels wide or wider.
"""

import argparse
import datetime
import html
import json
import math
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
SURVEY = HERE / "survey.json"
ALLOCATOR = HERE / "numpy-allocator.json"
MEMORY_LOOPS = HERE / "memory-loops.json"
SHARED_HALOS = HERE / "shared-halos.json"

WIDTH, MARGIN, TEXT, SMALL = 720, 24, 14, 12
INK, GREY, PAPER, BORDER = "#1f2933", "#52606d", "#ffffff", "#cbd2d9"
BLUE, PALE_BLUE, ORANGE, PALE_ORANGE = "#9cc5f0", "#dcebfa", "#f0a04b", "#fbe0bf"
SAND, SILVER, GREEN, PALE_GREEN = "#f6d58a", "#e4e7eb", "#1b7a43", "#bfe3cb"
RED, BROWN = "#b42318", "#9a3f0b"
MONO = "Menlo, Consolas, monospace"


class Picture:
    """An SVG on a white card, which is legible on light and dark pages."""

    def __init__(
        self, title: str, description: str, height: int, note: str = "", width: int = WIDTH
    ) -> None:
        self.title, self.description = title, description
        self.width, self.height = width, height
        self.parts: list[str] = []
        self.text(MARGIN, 34, title, size=17, bold=True)
        self.text(MARGIN, 56, note, fill=GREY)

    def add(self, tag: str, **attributes: object) -> None:
        self.parts.append(f"<{tag}{_written(attributes)}/>")

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = TEXT,
        bold: bool = False,
        **more: object,
    ) -> None:
        if words:
            weight = {"font_weight": "bold"} if bold else {}
            written = _written({"x": x, "y": y, "font_size": size, **weight, **more})
            self.parts.append(f"<text{written}>{html.escape(words, quote=False)}</text>")

    def box(
        self, x: float, y: float, width: float, height: float, fill: str = "none", **more: object
    ) -> None:
        self.add("rect", x=x, y=y, width=width, height=height, fill=fill, **more)

    def line(self, path: str, stroke: str = INK, width: float = 2, **more: object) -> None:
        self.add("path", d=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def arrow(self, path: str, end: tuple[float, float], turn: int, colour: str) -> None:
        """A line with a tip; `turn` is the direction of the tip in degrees, 0 to the right."""
        self.line(path, colour)
        place = f"translate({end[0]:g} {end[1]:g}) rotate({turn})"
        self.add("path", d="M -9 -5 L 0 0 L -9 5 z", fill=colour, transform=place)

    def dot(self, x: float, y: float) -> None:
        self.add("circle", cx=x, cy=y, r=6, fill=INK)

    def svg(self) -> str:
        head = _written(
            {
                "xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {self.width} {self.height}",
                "width": self.width, "height": self.height, "role": "img", "aria-labelledby": "title description",
                "font-family": "Helvetica, Arial, sans-serif", "fill": INK,
            }
        )  # fmt: skip
        card = _written(
            {
                "x": 1, "y": 1, "width": self.width - 2, "height": self.height - 2, "rx": 10,
                "fill": PAPER, "stroke": BORDER,
            }
        )  # fmt: skip
        lines = [
            f"<svg{head}>",
            f'<title id="title">{html.escape(self.title)}</title>',
            f'<desc id="description">{html.escape(self.description)}</desc>',
            '<defs><pattern id="old" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">',
            f'<rect width="6" height="6" fill="{SILVER}"/><path d="M 0 0 V 6" stroke="#7b8794" stroke-width="2"/>',
            "</pattern></defs>",
            f"<rect{card}/>",
            *self.parts,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _written(attributes: dict[str, object]) -> str:
    numbers = {k: f"{v:g}" if isinstance(v, (int, float)) else v for k, v in attributes.items()}
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in numbers.items())


def field() -> Picture:
    """`gridbuf.plan((12, 7), layout=(1, 0), alignment_size=64, aligned_index=(2, 2))`."""
    return memory(
        "A field of 12 × 7 float64, halo 2, alignment 64 bytes",
        "The domain of 8 × 3 points is inside a halo of 2 points. Rows are padded from 12 to 16 elements, so that the"
        " elements with I = 2 and I = 10 of every row start a cache line.",
        {"I": (12, 2, 2), "J": (7, 2, 2)},
        "points of neighbours",
    )


def unstructured() -> Picture:
    """`gridbuf.plan((14, 5), dims=("Cell", "K"), backend="gt:cpu_ifirst")`."""
    return memory(
        "A field of 14 cells × 5 levels, float64, halo {“Cell”: (0, 4)}",
        "The domain of 10 cells is followed by a halo of 4 cells, on every level. Rows are padded from 14 to 16 elements,"
        " so that the cells 0 and 8 of every level start a cache line.",
        {"Cell": (14, 0, 4), "K": (5, 0, 0)},
        "cells of other processes",
    )


def memory(
    title: str, description: str, dims: dict[str, tuple[int, int, int]], neighbours: str
) -> Picture:
    """Rows of float64, aligned to 64 bytes at the first point. `dims`: extent and both halos; the first is contiguous."""
    (name_i, name_j), (i_dim, j_dim) = dims, dims.values()
    (extent_i, first_i, upper_i), (extent_j, first_j, upper_j) = i_dim, j_dim
    itemsize_bytes, alignment_bytes = 8, 64
    per_line = alignment_bytes // itemsize_bytes
    padded_i = -(-extent_i // per_line) * per_line
    cell, left, top = 34, 120, 98
    bottom = top + extent_j * cell
    note = f"{name_i} is contiguous. Rows of {extent_i} are padded to {padded_i} elements. “+”: offset in bytes."
    picture = Picture(title, description, bottom + 138, note)

    def kind(i: int, j: int) -> str:
        if i >= extent_i:
            return SILVER
        inside = first_i <= i < extent_i - upper_i and first_j <= j < extent_j - upper_j
        return BLUE if inside else SAND

    def element(x: float, y: float, fill: str) -> None:
        picture.box(x, y, cell, cell, fill, stroke=PAPER, stroke_width=2)

    def boundary(x: float, start: float, end: float) -> None:
        picture.line(f"M {x:g} {start:g} V {end:g}", RED, 3, stroke_dasharray="7 4")

    picture.text(left - 12, top - 12, f"{name_i} =", text_anchor="end")
    for i in range(extent_i):
        picture.text(left + (i + 0.5) * cell, top - 12, str(i), text_anchor="middle")
    for j in range(extent_j):
        y = top + j * cell
        label = f"{name_j} = {j}: +{j * padded_i * itemsize_bytes}"
        picture.text(left - 12, y + 22, label, text_anchor="end")
        for i in range(padded_i):
            element(left + i * cell, y, kind(i, j))
            if i < extent_i and i % per_line == first_i % per_line:
                picture.dot(left + (i + 0.5) * cell, y + cell / 2)
    for i in range(first_i % per_line, padded_i, per_line):
        boundary(left + i * cell, top - 6, bottom + 6)
    first = {"stroke": INK, "stroke_width": 3}
    picture.box(left + first_i * cell, top + first_j * cell, cell, cell, **first)

    rows = [bottom + 24 + 33 * n for n in range(3)]
    for y, fill, words in zip(
        rows,
        (BLUE, SAND, SILVER),
        ("domain: the stencil computes it", f"halo: {neighbours}", "padding: no elements"),
        strict=True,
    ):
        element(MARGIN, y, fill)
        picture.text(MARGIN + 44, y + 22, words)
    second = 342
    picture.dot(second + 17, rows[0] + 17)
    picture.box(second + 3, rows[1] + 4, 27, 27, **first)
    boundary(second + 17, rows[2] + 2, rows[2] + 32)
    for y, words in zip(
        rows,
        (
            f"the address is a multiple of {alignment_bytes} bytes",
            "aligned index: first point of the domain",
            f"a cache line of {alignment_bytes} bytes starts here",
        ),
        strict=True,
    ):
        picture.text(second + 44, y + 22, words)
    return picture


def sync() -> Picture:
    """Seven states of a storage of 4 × 7 elements. Regions are (first row, first column, rows, columns)."""
    whole = (0, 0, 4, 7)
    box, left_part, right_part = (1, 2, 2, 3), (0, 0, 4, 2), (0, 5, 4, 2)
    four, mark, conflict = (0, 0, 4, 4), (0, 3, 4, 4), (0, 3, 4, 1)
    clean, old = ("SYNC_CLEAN", GREEN), "url(#old)"
    copied = {"stroke": BROWN, "stroke_width": 3}
    marked = {"stroke": RED, "stroke_width": 3, "stroke_dasharray": "6 4"}
    refused = {"stroke": RED, "stroke_width": 3}
    # A title, code or a note, the rest of the note, regions on the host, regions on the device, a copy?, the state.
    moments = [
        ("Equal sides", "", "", [], [], False, clean),
        ("Write on the host", "`field[1:3, 2:5] = 1", "", [(box, ORANGE, {})], [(box, old, {})], False,
         ("SYNC_HOST_DIRTY", BROWN)),
        ("Read on the device", "copies the dirty region", "", [(box, "none", copied)], [(box, "none", copied)], True,
         clean),
        ("Writable export", "`a = field.to_numpy()", "host presumed newer", [(whole, PALE_ORANGE, {})], [], False,
         clean),
        ("Read on the device", "copies the export’s box", "at each read", [(whole, PALE_ORANGE, copied)],
         [(whole, "none", copied)], True, clean),
        ("Disjoint writes", "each side is current", "in one dirty region",
         [(left_part, ORANGE, {}), (right_part, old, {})], [(left_part, old, {}), (right_part, ORANGE, {})], False,
         ("both sides dirty", BROWN)),
        ("Overlapping mark", "`set_device_modified()", "refused, no change",
         [(four, ORANGE, {}), (conflict, "none", refused)], [(four, old, {}), (mark, "none", marked)], False,
         ("SyncConflictError", RED)),
    ]  # fmt: skip
    cell, left, step, row_height, first_row = 16, 82, 161, 290, 80
    picture = Picture(
        "The current side of a storage",
        "Seven states of a storage with a host and a device buffer: both are equal; a write on the host makes a region"
        " dirty; a read on the device copies that region; an export of the host is presumed to be written; a read on"
        " the device copies the export's box; disjoint writes on both sides; a mark on the device overlaps a region"
        " where only the host is current, which is a conflict.",
        first_row + 2 * row_height,
        "A storage of 4 × 7 elements with a buffer on the host and a buffer on the device",
    )

    def side(x: float, y: float, regions: list) -> None:
        picture.box(x, y, 7 * cell, 4 * cell, BLUE)
        for (i, j, rows, columns), fill, _ in regions:
            picture.box(x + j * cell, y + i * cell, columns * cell, rows * cell, fill)
        inner = [f"M {x + n * cell:g} {y:g} v {4 * cell}" for n in range(1, 7)]
        inner += [f"M {x:g} {y + n * cell:g} h {7 * cell}" for n in range(1, 4)]
        picture.line(" ".join(inner), PAPER, 1)
        picture.box(x, y, 7 * cell, 4 * cell, stroke=INK)
        for (i, j, rows, columns), _, outline in regions:
            if outline:
                picture.box(x + j * cell, y + i * cell, columns * cell, rows * cell, **outline)

    for n, (title, note, rest, host, device, copies, (state, colour)) in enumerate(moments):
        row, column = divmod(n, 4)
        x, y = left + column * step, first_row + row * row_height
        if column == 0:
            picture.text(MARGIN, y + 102, "host", bold=True)
            picture.text(MARGIN, y + 206, "device", bold=True, size=13)
        picture.text(x, y + 16, f"{n + 1}  {title}", size=13, bold=True)
        code = {"font_family": MONO} if note.startswith("`") else {"fill": GREY}
        picture.text(
            x, y + 35, note.strip("`"), size=11 if "font_family" in code else SMALL, **code
        )
        picture.text(x, y + 52, rest, size=SMALL, fill=GREY)
        side(x, y + 64, host)
        if copies:
            middle = x + 3.5 * cell
            path = f"M {middle:g} {y + 132:g} V {y + 158:g}"
            picture.arrow(path, (middle, y + 165), 90, BROWN)
            picture.text(middle + 12, y + 152, "copy", size=SMALL, fill=BROWN)
        side(x, y + 168, device)
        picture.text(x, y + 252, state, size=13, bold=True, fill=colour)

    x, y = left + 3 * step, first_row + row_height
    picture.text(x, y + 16, "Legend", size=13, bold=True)
    for n, (fill, outline, words) in enumerate(
        [
            (BLUE, {"stroke": INK}, "equal values"),
            (ORANGE, {"stroke": INK}, "newer (dirty)"),
            (PALE_ORANGE, {"stroke": INK}, "presumed newer"),
            (old, {"stroke": INK}, "old values"),
            ("none", copied, "copied region"),
            ("none", marked, "marked region"),
            ("none", refused, "conflict"),
        ]
    ):
        picture.box(x + 1, y + 30 + 30 * n, 20, 16, fill, **outline)
        picture.text(x + 30, y + 43 + 30 * n, words, size=SMALL)
    return picture


def halo_depth() -> Picture:
    """A loop of examples/python/deep_halo.py along one dimension: one exchange for four steps."""
    depth, inner, cell, row = 4, 8, 24, 44
    left, top = 196, 118
    after = left + (2 * depth + inner) * cell
    exchange = ("exchange(u)", f"{depth} points deep", depth)
    steps = [
        (f"step {n + 1}", f"domain, {outside} outside" if outside else "domain", outside)
        for n, outside in enumerate(reversed(range(depth)))
    ]
    moments = [("domain written", "halo from before", 0), exchange, *steps, exchange]
    bottom = top + row * len(moments)
    picture = Picture(
        "The depth of a halo that is valid",
        "Seven moments of a loop, from top to bottom, of a rank with a halo of four points at both ends. After a write of the"
        " domain no point of the halo is valid. An exchange makes four valid. Four steps of a stencil of radius 1 compute"
        " three, two, one and no points outside of the domain, which are valid, while the points farther out are stale. Then"
        " the halo is exchanged again.",
        bottom + 92,
        "One rank along I, from top to bottom. The stencil reads one point to each side.",
    )
    parts = [
        ("lower halo", 0, depth),
        ("domain", depth, inner),
        ("upper halo", depth + inner, depth),
    ]
    for words, first, count in parts:
        middle = left + (first + count / 2) * cell
        picture.text(middle, top - 12, words, size=SMALL, text_anchor="middle", fill=GREY)
    picture.text(after + 24, top - 26, "valid_halo", size=13, font_family=MONO)
    picture.text(after + 24, top - 10, "afterwards", size=SMALL, fill=GREY)
    for n, (what, how, valid) in enumerate(moments):
        y = top + row * n
        is_step = what.startswith("step")
        picture.text(MARGIN, y + 14, what, size=13, bold=True)
        picture.text(MARGIN, y + 29, how, size=SMALL, fill=GREY)
        for i in range(2 * depth + inner):
            outside = max(depth - i, i + 1 - depth - inner, 0)
            halo = PALE_GREEN if is_step else SAND
            fill = BLUE if not outside else halo if outside <= valid else "url(#old)"
            picture.box(left + i * cell, y, cell, cell, fill, stroke=PAPER, stroke_width=2)
        if is_step:
            x, width = left + (depth - valid) * cell, (inner + 2 * valid) * cell
            picture.box(x, y, width, cell, stroke=INK, stroke_width=3)
        picture.text(after + 24, y + 17, f"({valid}, {valid})", size=13, font_family=MONO)
    for n, (fill, outline, words) in enumerate(
        [
            (SAND, {}, "valid: received from the neighbour"),
            (PALE_GREEN, {}, "valid: computed here, as the neighbour does"),
            (BLUE, {}, "domain of this rank"),
            ("url(#old)", {}, "stale: old values"),
            ("none", {"stroke": INK, "stroke_width": 3}, "points that the step writes"),
        ]
    ):
        x, y = MARGIN + (n % 2) * 340, bottom + 6 + 26 * (n // 2)
        picture.box(x + 1, y, 20, 16, fill, **outline)
        picture.text(x + 30, y + 13, words, size=SMALL)
    return picture


def calls() -> Picture:
    steps = [
        ("acquire", "Each field becomes current: a storage", "is synchronised, others are acquired."),
        ("read again", "Interface, dimensions, origin and halo;", "acquiring may have moved memory."),
        ("bind", "Order, origin, domain. Undefined behaviour", "is an error, slow memory is a warning."),
        ("copy in", "Fields that only the other side has,", "with one ExpensiveCopyWarning."),
        ("run", "Your function, on views in the order", "I, J, K and then data dimensions."),
        ("copy back", "Copied fields that were written,", "if the function did not raise."),
        ("touch", "Written fields are marked,", "also after an exception."),
        ("release", "All acquired fields, in reverse order,", "always."),
    ]  # fmt: skip
    top, height, gap, width = 78, 44, 16, 112
    picture = Picture(
        "The steps of a stencil call",
        "Acquire, read again, bind, copy in, run, copy back, touch, release, from top to bottom. If a step before run"
        " raises, only release follows. If run or copy back raises, touch and release follow.",
        top + len(steps) * (height + gap) + 8,
        "Each step is done for all fields before the next step begins.",
    )
    fills = {"run": ORANGE, "touch": PALE_GREEN, "release": PALE_GREEN}

    def y(step: int) -> int:
        return top + step * (height + gap)

    for n, (name, first, second) in enumerate(steps):
        picture.box(MARGIN, y(n), width, height, fills.get(name, BLUE), rx=6, stroke=INK)
        centre = MARGIN + width / 2
        picture.text(centre, y(n) + 27, name, bold=True, text_anchor="middle")
        if n + 1 < len(steps):
            below = y(n) + height
            picture.arrow(f"M {centre:g} {below} v {gap - 6}", (centre, below + gap), 90, INK)
        picture.text(MARGIN + width + 16, y(n) + 18, first, size=13)
        picture.text(MARGIN + width + 16, y(n) + 36, second, size=13)

    def failure(first: int, last: int, target: int, right: int, words: str) -> None:
        left, start, end = 480, y(first) + 4, y(last) + height - 4
        middle, aim = (start + end) / 2, y(target) + height / 2
        picture.line(f"M {left - 10} {start} h 10 V {end} h -10", BROWN)
        picture.arrow(
            f"M {left} {middle:g} H {right} V {aim:g} H {left - 4}", (left - 10, aim), 180, BROWN
        )
        picture.text(left + 10, middle - 28, "An exception here:", size=13, fill=BROWN)
        picture.text(left + 10, middle - 10, words, size=13, fill=BROWN)

    failure(0, 3, 7, 690, "only release")
    failure(4, 5, 6, 660, "touch, then release")
    return picture


def record(path: Path) -> dict:
    """The part of a survey's JSON report that the picture shows."""
    taken = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date()
    reports = json.loads(path.read_text("utf-8"))["reports"]
    rows = []
    for report in reports:
        groups: dict[str, Counter[str]] = {}
        for rule in report["rules"]:
            groups.setdefault(rule["id"].split("-")[0], Counter())[rule["outcome"]] += 1
        target = report["target"]
        rows.append({"name": target["name"], "version": target["version"], "groups": groups})
    first = reports[0]
    return {
        "date": str(taken),
        "suite": first["suite"]["version"],
        "profile": first["profile"],
        "python": first["target"]["python"],
        "rows": rows,
    }


GROUPS = {
    "AI": "NumPy array interface", "AS": "NumPy array struct", "CAI": "CUDA array interface", "PB": "buffer protocol",
    "DL": "DLPack C structs", "DP": "DLPack Python protocol", "DX": "DLPack C exchange table",
    "XA": "agreement of interfaces", "GT": "storage and GT4Py",
}  # fmt: skip
FAILED = ("FAIL", "CRASH", "TIMEOUT", "UNSTABLE")


def survey() -> Picture:
    recorded = json.loads(SURVEY.read_text("utf-8"))
    rows, left, column, top, height = recorded["rows"], 206, 55, 104, 36
    bottom = top + len(rows) * height
    picture = Picture(
        "A survey of array libraries",
        "A table with one row for each library and one column for each group of rules. A cell has the number of failed"
        " rules, of advisories, or of rules that hold.",
        bottom + 128,
        f"gridbuf-conformance {recorded['suite']}, profile {recorded['profile']}, Python {recorded['python']}, {recorded['date']}",
    )
    for n, group in enumerate(GROUPS):
        picture.text(left + n * column, top - 14, group, bold=True)
    for n, row in enumerate(rows):
        y = top + n * height
        picture.line(f"M {MARGIN} {y} H {WIDTH - MARGIN}", BORDER, 1)
        version = row["version"].split("+")[0]
        picture.text(MARGIN, y + 23, row["name"], size=13, bold=True)
        picture.text(left - 16, y + 23, version, size=SMALL, fill=GREY, text_anchor="end")
        for m, group in enumerate(GROUPS):
            outcomes = Counter(row["groups"].get(group, {}))
            failed = sum(outcomes[name] for name in FAILED)
            cell(picture, left + m * column, y, failed, outcomes["ADVISORY"], outcomes["PASS"])
    picture.line(f"M {MARGIN} {bottom} H {WIDTH - MARGIN}", BORDER, 1)
    for at, words in (
        (0, "✗ failed rules"), (112, "! advisories, no failure"), (280, "✓ rules that hold"), (412, "· nothing to judge"),
        (546, "bar: share of each"),
    ):  # fmt: skip
        picture.text(MARGIN + at, bottom + 25, words, size=SMALL)
    for n, (group, name) in enumerate(GROUPS.items()):
        at, line = MARGIN + n % 3 * 226, bottom + 56 + n // 3 * 22
        picture.text(at, line, group, size=SMALL, bold=True)
        picture.text(at + 32, line, name, size=SMALL)
    return picture


def cell(picture: Picture, x: float, y: float, failed: int, advisories: int, passed: int) -> None:
    counts = [("✗", failed, RED), ("!", advisories, "#8a5a00"), ("✓", passed, GREEN)]
    mark, count, colour = next((c for c in counts if c[1]), ("·", 0, GREY))
    words = f"{mark} {count}" if count else mark
    picture.text(x, y + 18, words, size=13, bold=True, fill=colour)
    width = 44 / max(1, failed + advisories + passed)
    for (_, number, _), fill in zip(counts, ("#d92d20", "#e0a416", "#4cae72"), strict=True):
        if number:
            picture.box(x, y + 25, number * width, 4, fill)
            x += number * width


LINES = {"add": ("a + b", "#0072B2"), "expression": ("(a*2 + b*3 - a)/b", "#D55E00")}


def numpy_allocator() -> Picture:
    """Time with NumPy's allocator ÷ time with gridbuf's, by the size of an array."""
    recorded = json.loads(ALLOCATOR.read_text("utf-8"))
    left, right, top, bottom = 64, WIDTH - 40, 112, 372
    picture = Picture(
        "NumPy's expressions in gridbuf's memory",
        "Two lines by the size of an array from 1 KiB to 256 MiB: the time with NumPy's allocator divided by the time with"
        " gridbuf's. Above 1, gridbuf's memory is faster.",
        bottom + 66,
        f"Time with NumPy's allocator ÷ time with gridbuf's, above 1: gridbuf's is faster. {recorded['rounds']} rounds, quartiles.",
    )
    lines = {
        id: [case for case in recorded["cases"] if case["id"].startswith(id) and case["size_bytes"] >= 1024]
        for id in LINES
    }  # fmt: skip
    sizes = [case["size_bytes"] for case in lines["add"]]
    highest = max(case["upper_quartile"] for line in lines.values() for case in line)

    def x(size_bytes: int) -> float:
        octaves = math.log2(sizes[-1] / sizes[0])
        return left + (right - left) * math.log2(size_bytes / sizes[0]) / octaves

    def y(ratio: float) -> float:
        return bottom - (bottom - top) * ratio / math.ceil(highest)

    for ratio in range(math.ceil(highest) + 1):
        picture.line(f"M {left} {y(ratio):g} H {right}", INK if ratio == 1 else BORDER, 1)
        picture.text(left - 10, y(ratio) + 5, str(ratio), text_anchor="end")
    for size_bytes in sizes:
        scale, unit = (20, "MiB") if size_bytes >= 1 << 20 else (10, "KiB")
        words = f"{size_bytes >> scale}"
        picture.text(x(size_bytes), bottom + 20, words, size=SMALL, text_anchor="middle")
        picture.text(x(size_bytes), bottom + 34, unit, size=10, fill=GREY, text_anchor="middle")
    picture.text((left + right) / 2, bottom + 54, "one array", size=SMALL, text_anchor="middle")
    for n, (id, (name, colour)) in enumerate(LINES.items()):
        points = [(x(case["size_bytes"]), y(case["median"])) for case in lines[id]]
        picture.line("M " + " L ".join(f"{a:.1f} {b:.1f}" for a, b in points), colour)
        for case, (a, b) in zip(lines[id], points, strict=True):
            low, high = y(case["lower_quartile"]), y(case["upper_quartile"])
            picture.line(f"M {a:.1f} {low:.1f} V {high:.1f}", colour, 1)
            picture.add("circle", cx=round(a, 1), cy=round(b, 1), r=4, fill=colour)
        picture.line(f"M {left + 10 + 130 * n} 84 h 24", colour)
        picture.text(left + 42 + 130 * n, 89, name, size=13, font_family=MONO)
    return picture


KINDS = {
    "allocator": ("NumPy with numpy_allocator", "#0072B2"), "array": ("gridbuf.empty", "#D55E00"),
    "storage": ("storage.empty", "#009E73"),
}  # fmt: skip


def memory_loops() -> Picture:
    """Time and peak of each loop, divided by NumPy's."""
    recorded = json.loads(MEMORY_LOOPS.read_text("utf-8"))
    loops = recorded["loops"]
    top, row, columns = 130, 40, {"seconds": ("time", 330, 500), "peak_bytes": ("peak", 530, 700)}
    bottom = top + row * len(loops)
    picture = Picture(
        "Loops that make and free large arrays",
        "For each loop the time and the peak of memory, divided by those of NumPy with its own allocator. Below 1, gridbuf takes less.",
        bottom + 40,
        f"Divided by those of NumPy with its own allocator, below 1: gridbuf takes less. {recorded['rounds']} rounds, quartiles.",
    )
    for n, (name, colour) in enumerate(KINDS.values()):
        picture.add("circle", cx=MARGIN + 6 + 220 * n, cy=82, r=4, fill=colour)
        picture.text(MARGIN + 18 + 220 * n, 87, name, size=13)
    for name, left, right in columns.values():
        picture.text((left + right) / 2, 112, name, size=13, bold=True, text_anchor="middle")
        for half in range(4):
            place = left + (right - left) * half / 3
            picture.line(f"M {place:g} {top - 8} V {bottom}", INK if half == 2 else BORDER, 1)
            picture.text(place, bottom + 18, f"{half / 2:g}", size=SMALL, text_anchor="middle")
    for n, loop in enumerate(loops):
        y = top + row * (n + 0.5)
        picture.text(MARGIN, y - 1, loop["title"].replace("`", "").split(", ")[0], size=13)
        rest = ", ".join(loop["title"].replace("`", "").split(", ")[1:])
        picture.text(MARGIN, y + 13, rest, size=SMALL, fill=GREY)
        for k, (kind, (_, colour)) in enumerate(KINDS.items()):
            for quantity, (_, left, right) in columns.items():
                if kind not in loop["kinds"]:
                    continue
                found = loop["kinds"][kind][quantity]

                def x(ratio: float, left: float = left, right: float = right) -> float:
                    return left + (right - left) * min(ratio, 1.5) / 1.5

                height = y - 8 + 8 * k
                low, high = x(found["lower_quartile"]), x(found["upper_quartile"])
                picture.line(f"M {low:.1f} {height:g} H {high:.1f}", colour, 1)
                picture.add("circle", cx=round(x(found["median"]), 1), cy=height, r=4, fill=colour)
    return picture


ENGINES = {
    "gridbuf_shared": ("gridbuf, shared=True", "#0072B2"), "gridbuf_mpi4py": ("gridbuf, mpi4py", "#D55E00"),
    "mpi4py": ("mpi4py by hand", "#009E73"),
}  # fmt: skip


def shared_halos() -> Picture:
    """Time of an exchange between two ranks ÷ GHEX's, by the size of a rank's box."""
    recorded = json.loads(SHARED_HALOS.read_text("utf-8"))
    left, right, top, row = 250, WIDTH - 40, 116, 46
    bottom = top + row * len(recorded["cases"])
    picture = Picture(
        "Halo exchange of two ranks on one machine",
        "For each size of a rank's box the time of an exchange in shared memory, by messages of mpi4py, and by mpi4py as written by"
        " hand, divided by the time of GHEX.",
        bottom + 44,
        f"Time ÷ time of GHEX, below 1: faster than GHEX. {recorded['rounds']} rounds, quartiles.",
    )

    def x(ratio: float) -> float:
        return left + (right - left) * (math.log2(ratio) + 4) / 8

    for octave in range(-4, 5):
        place = x(2.0**octave)
        picture.line(f"M {place:g} {top - 8} V {bottom}", INK if octave == 0 else BORDER, 1)
        words = str(2**octave) if octave >= 0 else f"1/{2**-octave}"
        picture.text(place, bottom + 20, words, size=SMALL, text_anchor="middle")
    for n, (name, colour) in enumerate(ENGINES.values()):
        picture.add("circle", cx=MARGIN + 6 + 200 * n, cy=84, r=4, fill=colour)
        picture.text(MARGIN + 18 + 200 * n, 89, name, size=13)
    for n, case in enumerate(recorded["cases"]):
        y = top + row * (n + 0.5)
        picture.text(MARGIN, y - 2, case["title"], size=13)
        microseconds = f"GHEX: {case['ghex_microseconds']:.0f} µs"
        picture.text(MARGIN, y + 13, microseconds, size=SMALL, fill=GREY)
        for k, (engine, (_, colour)) in enumerate(ENGINES.items()):
            found, height = case[engine], y - 12 + 11 * k
            low, high = x(found["lower_quartile"]), x(found["upper_quartile"])
            picture.line(f"M {low:.1f} {height:g} H {high:.1f}", colour, 1)
            picture.add("circle", cx=round(x(found["median"]), 1), cy=height, r=4, fill=colour)
    return picture


PICTURES = {
    "field.svg": field, "unstructured.svg": unstructured, "sync.svg": sync, "halo-depth.svg": halo_depth, "calls.svg": calls,
    "survey.svg": survey, "numpy-allocator.svg": numpy_allocator, "memory-loops.svg": memory_loops,
    "shared-halos.svg": shared_halos,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws the pictures of the documentation.")
    parser.add_argument("--record", type=Path, metavar="JSON", help="take a survey's report first")
    options = parser.parse_args()
    if options.record:
        text = json.dumps(record(options.record), indent=1, ensure_ascii=False)
        SURVEY.write_text(text + "\n", "utf-8")
    for name, draw in PICTURES.items():
        (HERE / name).write_text(draw().svg(), "utf-8")


if __name__ == "__main__":
    main()
