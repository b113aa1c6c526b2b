"""What the renderer tests share: hand-written reports, a small catalogue, and comparison with
golden files.

Four inputs, each rendered in every format: `failures` (a producer), `crash` (a consumer that dies,
with failures on record), `hostile` (texts that try to break out, honest Unicode, very long values)
and `survey` (twelve rows: one library three times, every rule group, nothing selected, every plan
declined, consumers, absent libraries).

The renderings of `failures` are on record as text, the others as digests. To accept a changed
rendering, run the tests with GRIDBUF_UPDATE_GOLDEN=1 and read the difference in git.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.render.summary import Absent
from gridbuf_conformance.rules.catalogue import Rule, Source

GOLDEN = Path(__file__).parent / "golden"
DIGESTS = GOLDEN / "expected/SHA256SUMS"
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


_REPORT = {
    "schema": "gridbuf-conformance-report/2",
    "suite": {"name": "gridbuf-conformance", "version": "0.1.0"},
    "profile": "smoke",
    "seed": 0,
    "spec": [],
    "notes": [],
    "timing": {"total_s": 1.5},
}
_TARGET = {"python": "3.11.2", "platform": "linux x86_64"}
_RULE = {"level": "MUST", "failing": 0, "failures": [], "note": ""}
_PLAN = Plan().to_dict()
_LONG = {
    "LONG VALUE": "x" * 5000 + " end of the value",
    "LONG NOTE": f"strides {tuple(range(0, 72_000, 8))}",
}


def load_case(name: str) -> tuple[list[dict[str, Any]], list[Absent]]:
    """The reports and absent libraries of one hand-written input, which omits what is usual."""
    document = json.loads((GOLDEN / "inputs" / f"{name}.json").read_text(encoding="utf-8"))
    reports: list[dict[str, Any]] = []
    for given in document["reports"]:
        if "same_rules_as" in given:
            other = reports[given.pop("same_rules_as")]
            given |= {"plans": other["plans"], "rules": copy.deepcopy(other["rules"])}
        else:
            given["rules"] = [_whole_rule(rule) for rule in given["rules"]]
        summary = dict(Counter(rule["outcome"] for rule in given["rules"]))
        given["target"] = {**_TARGET, **given["target"]}
        reports.append({**copy.deepcopy(_REPORT), **given, "summary": summary})
    return reports, [Absent(**library) for library in document["absent"]]


def _whole_rule(given: dict[str, Any]) -> dict[str, Any]:
    failures = [
        {
            **{"outcome": given["outcome"], "note": "", "drawing": None},
            **{
                key: _LONG.get(text, text) if type(text) is str else text
                for key, text in one.items()
            },
            "plan": None if one["plan"] is None else {**_PLAN, **one["plan"]},
        }
        for one in given.get("failures", ())
    ]
    return {**_RULE, **given, "failures": failures}


def report_of(case: str, name: str) -> dict[str, Any]:
    """The first report of a library in one hand-written input."""
    return next(one for one in load_case(case)[0] if one["target"]["name"] == name)


def rule_of(report: dict[str, Any], rule_id: str) -> dict[str, Any]:
    """A report's entry for one rule."""
    return next(rule for rule in report["rules"] if rule["id"] == rule_id)


def assert_golden(name: str, text: str) -> None:
    """Fails where `text` is not, to the byte, the rendering on record: golden/expected/`name`, or
    its digest.

    A difference from a file is shown. Of a digest the failure names the file with what was rendered
    now.
    """
    path, content = GOLDEN / "expected" / name, text.encode("utf-8")
    digest = hashlib.sha256(content).hexdigest()
    digests = dict(line.split()[::-1] for line in DIGESTS.read_text().splitlines())
    if os.environ.get("GRIDBUF_UPDATE_GOLDEN"):
        if path.exists():
            path.write_bytes(content)
        else:
            digests[name] = digest
            lines = (f"{digests[key]}  {key}\n" for key in sorted(digests))
            DIGESTS.write_text("".join(lines))
    elif path.exists():
        expected = path.read_bytes().decode("utf-8")
        diff = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), f"golden {name}", "rendered", lineterm=""
        )
        assert text == expected, "\n".join([*diff][:120]) or "only line ends differ"
    elif digests.get(name) != digest:
        rendered = Path(tempfile.mkdtemp()) / name
        rendered.write_bytes(content)
        raise AssertionError(
            f"{name} has another digest than on record; {rendered} is what it is now"
        )
