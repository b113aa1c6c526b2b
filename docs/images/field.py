"""Draws docs/images/field.svg: a padded, aligned field with its halo. Run `python docs/images/field.py`.

The numbers are those of `gridbuf.plan((12, 7), layout=(1, 0), alignment_size=64, aligned_index=(2, 2))`.
"""

import pathlib

EXTENT_I, EXTENT_J, HALO = 12, 7, 2
ITEMSIZE_BYTES, ALIGNMENT_BYTES = 8, 64
PER_LINE = ALIGNMENT_BYTES // ITEMSIZE_BYTES
PADDED_I = -(-EXTENT_I // PER_LINE) * PER_LINE
ROW_BYTES = PADDED_I * ITEMSIZE_BYTES

CELL, LEFT, TOP = 34, 112, 92
WIDTH, HEIGHT = 700, TOP + EXTENT_J * CELL + 138
INK, LINE = "#1f2933", "#b42318"
FILLS = {"domain": "#9cc5f0", "halo": "#f6d58a", "padding": "#e4e7eb"}


def kind(i: int, j: int) -> str:
    if i >= EXTENT_I:
        return "padding"
    inside = HALO <= i < EXTENT_I - HALO and HALO <= j < EXTENT_J - HALO
    return "domain" if inside else "halo"


def text(x: float, y: float, words: str, anchor: str = "start", **more: str) -> str:
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{attributes}>{words}</text>'


def cell(x: float, y: float, fill: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#ffffff" stroke-width="2"/>'


def dot(x: float, y: float) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="6" fill="{INK}"/>'


def boundary(x: float, top: float, bottom: float) -> str:
    return f'<line x1="{x:g}" y1="{top:g}" x2="{x:g}" y2="{bottom:g}" stroke="{LINE}" stroke-width="3" stroke-dasharray="7 4"/>'


def field() -> list[str]:
    parts = [text(LEFT + (i + 0.5) * CELL, TOP - 12, str(i), "middle") for i in range(EXTENT_I)]
    parts.append(text(LEFT - 12, TOP - 12, "I =", "end"))
    for j in range(EXTENT_J):
        y = TOP + j * CELL
        parts.append(text(LEFT - 12, y + CELL / 2 + 5, f"J = {j}: +{j * ROW_BYTES}", "end"))
        for i in range(PADDED_I):
            parts.append(cell(LEFT + i * CELL, y, FILLS[kind(i, j)]))
            if i < EXTENT_I and i % PER_LINE == HALO:
                parts.append(dot(LEFT + (i + 0.5) * CELL, y + CELL / 2))
    for i in range(HALO, PADDED_I, PER_LINE):
        parts.append(boundary(LEFT + i * CELL, TOP - 6, TOP + EXTENT_J * CELL + 6))
    x, y = LEFT + HALO * CELL, TOP + HALO * CELL
    parts.append(
        f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="none" stroke="{INK}" stroke-width="3"/>'
    )
    return parts


def legend() -> list[str]:
    first, second, step = LEFT - 84, LEFT + 246, 32
    y = TOP + EXTENT_J * CELL + 26
    said = [
        (first, 0, cell(first, y, FILLS["domain"]), "domain: what the stencil computes"),
        (first, 1, cell(first, y + step, FILLS["halo"]), "halo: points of the neighbours"),
        (first, 2, cell(first, y + 2 * step, FILLS["padding"]), "padding: no elements"),
        (second, 0, dot(second + 17, y + 17), f"address is a multiple of {ALIGNMENT_BYTES} bytes"),
        (
            second,
            1,
            f'<rect x="{second + 3}" y="{y + step + 4}" width="27" height="27" fill="none" stroke="{INK}" stroke-width="3"/>',
            "aligned index: first point of the domain",
        ),
        (
            second,
            2,
            boundary(second + 17, y + 2 * step + 4, y + 3 * step + 2),
            f"boundary of a cache line ({ALIGNMENT_BYTES} bytes)",
        ),
    ]
    return [
        part
        for x, row, mark, words in said
        for part in (mark, text(x + 44, y + row * step + 22, words))
    ]


def main() -> None:
    title = "A field of 12 × 7 float64, halo 2, alignment 64 bytes"
    parts = [
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" fill="#ffffff" stroke="#cbd2d9"/>',
        text(28, 34, title, font_size="17", font_weight="bold"),
        text(
            28,
            56,
            f"I is contiguous. Rows of {EXTENT_I} are padded to {PADDED_I} elements. “+”: offset of the row in bytes.",
        ),
        *field(),
        *legend(),
    ]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' role="img" font-family="Helvetica, Arial, sans-serif" font-size="14" fill="{INK}">\n'
        f"<title>{title}</title>\n" + "\n".join(parts) + "\n</svg>\n"
    )
    pathlib.Path(__file__).with_suffix(".svg").write_text(svg)


if __name__ == "__main__":
    main()
