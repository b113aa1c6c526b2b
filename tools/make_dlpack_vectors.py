"""Writes conformance/vectors/dlpack_plans.json: the plans of the C++ suite, and the rules that judge them.

The plans are listed here and not drawn, so that they do not change when the Python suite draws other plans. `Plan` of
the Python suite defines their meaning (content, views, bounds). The file has the values that a reader in another
language would have to compute: the element type's DLPack code, the places of a view's elements, and a checksum of the
content, with which a reader tests its content. The texts of the rules are those of the catalogue, so that no second
copy can differ.

    python tools/make_dlpack_vectors.py
"""

import json
import pathlib
import sys
import zlib
from collections.abc import Iterator
from itertools import permutations
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "conformance"))

from gridbuf_conformance.abi.dlpack import DEVICE_TYPES, TYPE_CODES  # noqa: E402
from gridbuf_conformance.rules import catalogue  # noqa: E402
from gridbuf_conformance.plan import Plan  # noqa: E402

FOLDER = ROOT / "conformance/vectors"
PATH = FOLDER / "dlpack_plans.json"
RULES = (
    *("DL-01", "DL-02", "DL-03", "DL-04", "DL-06", "DL-07", "DL-08", "DL-09", "DL-10", "DL-11"),
    *("DL-12", "DL-13", "DL-14", "DL-15", "DL-16", "DL-17", "DL-19", "DL-20", "DL-21", "DL-24"),
    *("DL-27", "DL-30", "GT-16", "GT-17", "GT-20", "GT-22", "GT-23", "XA-08"),
)
"""What a C++ program can see of a DLPack tensor that it is handed."""

ELEMENT_TYPES = (
    *("float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"),
    *("float16", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("longdouble", "datetime64[ns]", "str3", "struct"),
)
"""The last four have no word in DLPack: a producer has to decline them."""


def plans() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and plans, simplest first: the first plan that breaks a rule is the one that is shown."""
    yield from _shapes()
    yield from _element_types()
    yield from _views()
    yield from _layouts()
    yield from _alignments()


def _shapes() -> Iterator[tuple[str, dict[str, Any]]]:
    shapes = [(1,), (2,), (7,), (), (0,), (2, 1), (1, 2), (2, 3), (3, 1, 2), (2, 0), (0, 3), (1, 1)]
    shapes += [(5, 7, 3), (2, 3, 2, 5), (1, 0, 4), (129,), (64, 33), (2,) * 10, (1,) * 32]
    for number, shape in enumerate(shapes):
        yield f"shape_{_joined(shape)}", {"shape": shape, "fill": number}
    for shape in [(3,), (), (2, 3), (0,)]:
        yield f"readonly_{_joined(shape)}", {"shape": shape, "readonly": True, "fill": 4000}


def _element_types() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ELEMENT_TYPES:
        for shape in [(3,), (2, 3), ()]:
            yield f"{name}_{_joined(shape)}", {"shape": shape, "dtype": name, "fill": 7}
    for name in ("float64", "int16", "complex64"):
        yield f"swapped_{name}", {"shape": (3,), "dtype": name, "byteorder": "swapped"}


def _views() -> Iterator[tuple[str, dict[str, Any]]]:
    chains: dict[str, tuple[tuple[int, ...], list[list[Any]]]] = {
        "every_second": ((6,), [["slice", 0, None, None, 2]]),
        "tail": ((6,), [["slice", 0, 2, None, 1]]),
        "reversed": ((5,), [["reverse", 0]]),
        "reversed_second": ((5,), [["slice", 0, 4, 0, -2]]),
        "emptied": ((4, 3), [["empty", 1]]),
        "newaxis": ((4,), [["newaxis", 0]]),
        "newaxis_last": ((4,), [["newaxis", 1]]),
        "transposed": ((2, 3), [["transpose", [1, 0]]]),
        "rotated": ((2, 3, 4), [["transpose", [2, 0, 1]]]),
        "broadcast": ((1, 3), [["broadcast", 0, 4]]),
        "broadcast_inner": ((3, 1), [["broadcast", 1, 2]]),
        "column": ((4, 5), [["slice", 1, 2, 3, 1]]),
        "inner": ((6, 7), [["slice", 0, 1, 5, 1], ["slice", 1, 1, 6, 1]]),
        "reversed_both": ((3, 4), [["reverse", 0], ["reverse", 1]]),
        "reversed_transposed": ((3, 4), [["reverse", 1], ["transpose", [1, 0]]]),
        "steps": ((9, 8, 7), [["slice", 0, 1, 8, 3], ["slice", 2, 6, None, -2]]),
    }
    for name, (shape, views) in chains.items():
        for dtype in ("float64", "int16"):
            plan = {"shape": shape, "dtype": dtype, "views": views, "fill": 11}
            yield f"view_{name}_{dtype}", plan


def _layouts() -> Iterator[tuple[str, dict[str, Any]]]:
    for shape in [(3, 4), (2, 3, 4), (2, 3, 4, 5)]:
        for layout in list(permutations(range(len(shape))))[:12]:
            name = f"layout_{_joined(layout)}_of_{_joined(shape)}"
            yield name, {"shape": shape, "layout": layout, "fill": 13}
    yield "layout_of_rows_of_one", {"shape": (1, 4, 1), "layout": (2, 0, 1), "fill": 13}
    yield "layout_without_elements", {"shape": (2, 0, 3), "layout": (2, 0, 1)}


def _alignments() -> Iterator[tuple[str, dict[str, Any]]]:
    for alignment in (2, 3, 8, 24, 32, 64, 100, 128, 256, 4096):
        yield f"aligned_{alignment}", {"shape": (3, 5), "alignment_size": alignment, "fill": 17}
    wanted = [((3, 5), (1, 2)), ((4, 4, 9), (1, 2, 3)), ((7,), (3,)), ((2, 3, 4), (1, 0, 3))]
    for shape, index in wanted:
        for alignment in (32, 64, 100):
            for dtype in ("float64", "float32", "int8"):
                name = f"aligned_{alignment}_at_{_joined(index)}_{dtype}"
                keys = {"aligned_index": index, "alignment_size": alignment, "dtype": dtype}
                yield name, {"shape": shape, "fill": 19, **keys}
    for layout in permutations(range(3)):
        yield (
            f"aligned_layout_{_joined(layout)}",
            {
                **{"shape": (6, 7, 9), "layout": layout, "alignment_size": 64},
                **{"aligned_index": (2, 3, 1), "fill": 23},
            },
        )


def _joined(numbers: tuple[int, ...]) -> str:
    return "x".join(map(str, numbers)) if numbers else "0d"


def case(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """One line of the file."""
    plan = Plan(**keys)
    element, view = plan.dtype_info, plan.view_map
    return {
        "name": name,
        "plan": plan.to_dict(),
        "itemsize_bytes": element.itemsize,
        "dlpack": None if element.dlpack is None else list(element.dlpack),
        "numbers": [list(number) for number in element.numbers],
        "view": {
            "shape": list(view.shape),
            "start": list(view.start),
            "axes": list(view.axes),
            "steps": list(view.steps),
        },
        "content_crc32": zlib.crc32(plan.content()),
    }


def rule(id_: str) -> dict[str, Any]:
    """What the suite says of a rule; of its preconditions, those that it judges."""
    known = catalogue.load()[id_]
    return {
        "id": id_,
        "level": known.level,
        "requirement": known.requirement,
        "fix": known.fix,
        "preconditions": [other for other in known.preconditions if other in RULES],
    }


def document() -> str:
    """The file's text: one rule and one case a line."""
    cases = [case(name, keys) for name, keys in plans()]
    names = [entry["name"] for entry in cases]
    assert len(names) == len(set(names)), "two plans have one name"
    listed = {"rules": [rule(id_) for id_ in RULES], "cases": cases}
    parts = [
        f'  "{key}": [\n' + ",\n".join("    " + json.dumps(entry) for entry in entries) + "\n  ]"
        for key, entries in listed.items()
    ]
    facts = {"device_types": sorted(DEVICE_TYPES), "type_code_count": len(TYPE_CODES)}
    head = '{\n  "kind": "dlpack plans",\n'
    head += "".join(f'  "{key}": {json.dumps(value)},\n' for key, value in facts.items())
    return head + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
    print(f"{PATH.relative_to(ROOT)}: {document().count('content_crc32')} plans")
