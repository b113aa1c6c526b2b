"""Reports as JUnit XML: one test suite a library, one test case a rule.

Outcomes map to what build servers know: a broken MUST, a crash or a hang is a `failure`, an error
of the suite itself an `error`, a rule that was not judged is `skipped` with its reason. An advisory
and a fragile rule pass with their text in `system-out`, so that a SHOULD or a ROBUST never turns a
build red.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from ..outcomes import Outcome
from ..text import clean, shorten
from .drawing import to_text
from .summary import group_of, kind_of, labels, rule_text

_MAX_VALUE_CHARS = 20_000
_MAX_MESSAGE_CHARS = 300


def render(
    reports: Sequence[Mapping[str, Any]], *, catalogue: Mapping[str, Any] | None = None
) -> str:
    """The XML document of these reports; `time` is left out, because rules share their plans."""
    if catalogue is None:
        from ..rules.catalogue import load

        catalogue = load()
    root = ElementTree.Element("testsuites", name="gridbuf-conformance")
    for report, label in zip(reports, labels(reports)):
        root.append(_suite(report, clean(label), catalogue))
    _count(root, [rule for report in reports for rule in report["rules"]])
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _suite(
    report: Mapping[str, Any], label: str, catalogue: Mapping[str, Any]
) -> ElementTree.Element:
    target, suite = report["target"], report["suite"]
    element = ElementTree.Element("testsuite", name=label)
    _count(element, report["rules"])
    properties = ElementTree.SubElement(element, "properties")
    for name, value in (
        ("target.version", target.get("version")),
        ("target.python", target.get("python")),
        ("target.platform", target.get("platform")),
        ("suite.version", suite["version"]),
        ("profile", report["profile"]),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=clean(value or ""))
    for rule in report["rules"]:
        element.append(_case(rule, label, catalogue))
    return element


def _count(element: ElementTree.Element, rules: Iterable[Mapping[str, Any]]) -> None:
    kinds = [_result_of(rule["outcome"]) for rule in rules]
    element.set("tests", str(len(kinds)))
    element.set("failures", str(kinds.count("failure")))
    element.set("errors", str(kinds.count("error")))
    element.set("skipped", str(kinds.count("skipped")))


def _result_of(outcome: str) -> str:
    """The JUnit element for an outcome; empty for a test case that simply passes."""
    if outcome == Outcome.XFAIL:
        return "skipped"
    return {"failed": "failure", "error": "error", "silent": "skipped"}.get(kind_of(outcome), "")


def _case(
    rule: Mapping[str, Any], library: str, catalogue: Mapping[str, Any]
) -> ElementTree.Element:
    requirement = rule_text(catalogue, rule["id"]).requirement
    case = ElementTree.Element(
        "testcase",
        classname=f"{library}.{group_of(rule['id'])}",
        name=f"{rule['id']} {shorten(clean(requirement), _MAX_MESSAGE_CHARS)}",
    )
    result = _result_of(rule["outcome"])
    if result == "skipped":
        message = f"{rule['outcome']}: {_reason(rule)}"
        ElementTree.SubElement(case, "skipped", message=shorten(message, _MAX_MESSAGE_CHARS))
    elif result:
        headline = _headline(rule)
        element = ElementTree.SubElement(case, result, type=rule["outcome"], message=headline)
        element.text = _body(rule, requirement)
    elif kind_of(rule["outcome"]) in ("fragile", "advisory"):
        text = f"{rule['outcome']}\n{_body(rule, requirement)}"
        ElementTree.SubElement(case, "system-out").text = text
    return case


def _reason(rule: Mapping[str, Any]) -> str:
    """Why a rule was skipped: its note, or for a failure on record what the record says."""
    first: Mapping[str, Any] = next(iter(rule.get("failures") or ()), {})
    return clean(rule.get("note") or first.get("note") or "no reason was recorded")


def _headline(rule: Mapping[str, Any]) -> str:
    first: Mapping[str, Any] = next(iter(rule.get("failures") or ()), {})
    said = first.get("actual") or first.get("note") or rule.get("note") or rule["outcome"]
    return shorten(clean(said).replace("\n", " "), _MAX_MESSAGE_CHARS)


def _body(rule: Mapping[str, Any], requirement: str) -> str:
    """The failure in full, in the order in which the console prints it."""
    lines = [f"{rule['id']} ({rule['level']}): {clean(requirement)}"]
    for failure in rule.get("failures") or ():
        lines.append("")
        for label in ("expected", "actual", "note"):
            if failure.get(label):
                lines.append(f"{label}: {shorten(clean(failure[label]), _MAX_VALUE_CHARS)}")
        if failure.get("drawing"):
            lines += ["", *to_text(failure["drawing"]), ""]
        if failure.get("replay"):
            lines.append(f"replay: {clean(failure['replay'])}")
    if rule.get("note") and not rule.get("failures"):
        lines.append(f"note: {shorten(clean(rule['note']), _MAX_VALUE_CHARS)}")
    return "\n".join(lines)
