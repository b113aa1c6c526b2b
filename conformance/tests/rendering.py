"""What the renderer tests share: hand-written reports, a small catalogue, and comparison with golden files.

Four inputs, each rendered in every format: `failures` (a producer), `crash` (a consumer that dies, with failures on
record), `hostile` (texts that try to break out, honest Unicode, very long values) and `survey` (twelve rows: one library
three times, every rule group, nothing selected, every plan declined, consumers, absent libraries).

To accept a changed rendering, run the tests with GRIDBUF_UPDATE_GOLDEN=1 and read the difference in git.
"""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

from gridbuf_conformance.render.summary import Absent
from gridbuf_conformance.rules.catalogue import Rule, Source

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.stem for path in (GOLDEN / "inputs").glob("*.json"))


def _rule(id_: str, level: str, requirement: str, section: str, **more: Any) -> Rule:
    """A rule on a sentence of a published text; "storage spec" is the specification of gridbuf."""
    document = "storage-spec" if section.startswith("storage spec") else "pep-3118"
    source = Source(document, section, "#there", "must", "It has to be so.")
    return Rule(id_, level, requirement, source, **more)


# Its own words, so that editing the real catalogue changes no golden file.
CATALOGUE = {
    rule.id: rule
    for rule in (
        _rule("AI-01", "MUST", "The attribute is a dict", "array interface v3", since="3"),
        _rule(
            "AI-16",
            "MUST",
            "The buffer of data holds all elements",
            "array interface v3",
            consumer_level="ROBUST",
        ),
        _rule("AI-22", "MUST", "The hull stays inside the producer's memory", "array interface v3"),
        _rule(
            "CAI-18", "MUST", "Waiting on stream covers all pending work", "CUDA array interface v3"
        ),
        _rule(
            "PB-01",
            "MUST",
            "A request that cannot be met raises BufferError",
            "PEP 3118, PyObject_GetBuffer",
            why="Consumers catch BufferError to try the next, humbler request.",
            fix="Raise BufferError wherever the flags ask for something that the memory is not.",
            example="memoryview(x) asks FULL_RO.",
        ),
        _rule("PB-03", "MUST", "len is the product of the shape times itemsize", "PEP 3118"),
        _rule("PB-18", "SHOULD", "Strides are multiples of itemsize", "PEP 3118"),
        _rule("DL-03", "SHOULD", "Only known flag bits are set", "dlpack.h 1.0"),
        _rule("DL-12", "SHOULD", "An empty tensor has data NULL", "dlpack.h 1.0"),
        _rule("DP-15", "MUST", "A CPU producer takes only stream None", "array API 2025.12"),
        _rule("XA-01", "MUST", "Element 0 has one address", "this suite"),
        _rule("XA-11", "MUST", "Any drop order leaves the survivors readable", "this suite"),
        _rule("XA-14", "SHOULD", "Refusals agree in kind", "this suite"),
        _rule("XA-18", "MUST", "Probing for an interface never raises", "this suite"),
        _rule("GT-24", "MUST", "The hull is in mapped memory at any size", "storage spec 2.4"),
    )
}


def load_case(name: str) -> tuple[list[dict[str, Any]], list[Absent]]:
    """The reports and absent libraries of one hand-written input."""
    document = json.loads((GOLDEN / "inputs" / f"{name}.json").read_text(encoding="utf-8"))
    return document["reports"], [Absent(**library) for library in document["absent"]]


def report_of(case: str, name: str) -> dict[str, Any]:
    """The first report of a library in one hand-written input."""
    return next(one for one in load_case(case)[0] if one["target"]["name"] == name)


def rule_of(report: dict[str, Any], rule_id: str) -> dict[str, Any]:
    """A report's entry for one rule."""
    return next(rule for rule in report["rules"] if rule["id"] == rule_id)


def assert_golden(name: str, text: str) -> None:
    """Fails with a diff where `text` is not, to the byte, what golden/expected/`name` holds."""
    path = GOLDEN / "expected" / name
    if os.environ.get("GRIDBUF_UPDATE_GOLDEN"):
        path.write_bytes(text.encode("utf-8"))
    if not path.exists():
        raise AssertionError(f"no golden file {name}: make it with GRIDBUF_UPDATE_GOLDEN=1")
    expected = path.read_bytes().decode("utf-8")
    if text != expected:
        diff = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), f"golden {name}", "rendered", lineterm=""
        )
        raise AssertionError("\n".join(list(diff)[:120]) or "only line ends differ")
