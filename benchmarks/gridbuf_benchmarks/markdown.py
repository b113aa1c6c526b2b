"""A result inside a Markdown document: the part between two marker lines is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES
from gridbuf_benchmarks.table import format_ratio, format_spread, format_time

__all__ = ["BEGIN", "END", "record", "section"]

BEGIN = "<!-- recorded: begin -->"
END = "<!-- recorded: end -->"


def record(result: Mapping[str, Any], path: Path) -> None:
    """Writes the result between the markers of the document at `path`.

    Raises:
      ValueError: when the document has no such pair of lines.
    """
    text = path.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{path} has no lines {BEGIN} and {END}; add them where the result goes")
    path.write_text(f"{before}{BEGIN}\n{section(result)}\n{END}{after}")


def section(result: Mapping[str, Any]) -> str:
    """Machine, versions, warnings, targets and all ratios."""
    return "\n".join([*_facts(result), "", *_targets(result), "", *_table(result)])


def _facts(result: Mapping[str, Any]) -> Iterator[str]:
    facts = result["machine"]
    libraries = [
        f"{library['title']} {library['version']}"
        + (f" ({library['threads']} threads)" if "threads" in library else "")
        for library in result["libraries"].values()
        if library["state"] == "present"
    ]
    yield f"- recorded: {result['created']}, {'quick' if result['quick'] else 'full'} run"
    kind = ", virtual machine" if facts["virtual_machine"] else ""
    yield (
        f"- CPU: {facts['cpu_model']} ({facts['cpu_family']}), {facts['cores_usable']} cores{kind}, "
        + (f"governor {facts['governor'] or 'not readable'}, {', '.join(facts['cpu_flags'])}")
    )
    yield f"- memory: {facts['memory_bytes'] / 2**30:.0f} GiB, huge pages: {facts['huge_pages']}"
    yield f"- system: {facts['system']}, Linux {facts['kernel']}, {facts['libc']}"
    yield f"- Python {facts['python']}, {', '.join(libraries)}"
    yield f"- gridbuf's extension: {result['libraries'][BASELINE]['build']['compiler']}, -O3"
    for warning in result["warnings"]:
        yield f"- **{warning}**"


def _targets(result: Mapping[str, Any]) -> Iterator[str]:
    for case in result["cases"]:
        target = case["target"]
        if target:
            word = "met" if target["met"] else "**missed**"
            peer = LIBRARIES[target["peer"]].title
            yield f"Target: {case['title']} at most {target['ratio']:g} × {peer}: {word} ({target['reached']:.3g} ×)."


def _table(result: Mapping[str, Any]) -> Iterator[str]:
    peers = [key for key in LIBRARIES if any(key in case["ratios"] for case in result["cases"])]
    yield "| case | gridbuf | " + " | ".join(f"÷ {LIBRARIES[key].title}" for key in peers) + " |"
    yield "|---|--:|" + "--:|" * len(peers)
    for case in result["cases"]:
        times = {one["library"]: one["nanoseconds"]["median"] for one in case["contenders"]}
        cells = [case["title"].replace("_", r"\_"), format_time(times[BASELINE])]
        for key in peers:
            ratio = case["ratios"].get(key)
            cells.append(
                f"**{format_ratio(ratio['median'])}** {format_spread(ratio).strip()} ({format_time(times[key])})"
                if ratio
                else "–"
            )
        yield f"| {' | '.join(cells)} |"
