"""The pages, from the records and results: zoo.md with its chart, and a page for each library."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import jinja2
import runs
from entries import Entry, counted, elsewhere, entries, most_severe, newest, of_form, worst
from packaging.version import Version
from records import FOLDER, GROUPS, RESULTS, ROOT, Environment, Finding, Zoo, order, read_json, slug

from gridbuf_conformance import named_consumers, producers
from gridbuf_conformance.rules import catalogue

CHART = ROOT / "docs/images/zoo.svg"
"""The chart that is committed, for docs/gallery.md."""
_FEW = 5
_MARKUP = re.compile(r"(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])|[*<]")
"""Underscores at the edge of a word, asterisks and angle brackets."""
_NOT_JUDGED = ("BLOCKED", "UNSUPPORTED", "UNTESTED", "ERROR")
NEEDS_CUDA = "needs a CUDA device, and the zoo runs without one"
REASONS = {
    "DL-30": "no library of the zoo exports elements of several lanes",
    "DP-16": NEEDS_CUDA,
    "DP-17": "needs an AMD device, and the zoo runs without one",
    "DP-19": NEEDS_CUDA,
    "XA-16": NEEDS_CUDA,
}
"""Why rules never judged a library, where nothing in the catalogue says it."""
_COLORS = {
    "memory": "#b2182b",
    "values": "#ef8a62",
    "leak": "#fddbc7",
    "refusal": "#92c5de",
    "form": "#bababa",
}


def write(zoo: Zoo, folder: Path) -> None:
    """Writes zoo.md, images/zoo.svg, and zoo/ with a page for each library. Links are those of a
    page in docs/.
    """
    pages = {"zoo.md": render(zoo), **{f"zoo/{name}": t for name, t in libraries(zoo).items()}}
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    _draw(zoo, folder / "images/zoo.svg")


def render(zoo: Zoo) -> str:
    """The text of zoo.md. A finding is a link to its script."""
    all_, failures = entries(zoo), elsewhere(zoo)
    return _template("zoo.md.j2").render(
        zoo=zoo,
        groups=GROUPS,
        catalogue=runs.CATALOGUE,
        ages=_ages(zoo),
        rows=[_row(zoo, environment, failures) for environment in _in_order(zoo)],
        counts=counts(zoo),
        worst=worst(all_),
        counted=counted(all_),
        contested=[entry for entry in all_ if entry.finding.is_contested],
        form=of_form(all_),
        rules=_by_rule(all_),
        points=_points(zoo),
        elsewhere=sum(not _found(zoo, *failure) for failure in failures),
        unexplained=_unexplained(zoo, failures),
        unjudged=_unjudged(zoo),
        unreached=unreached(zoo),
        rules_in_all=len(catalogue.load()),
        packed=runs.packed,
    )


def _points(zoo: Zoo) -> dict[str, Any]:
    """What the page says of the entry points."""
    driven = [point for point in zoo.points if point.targets]
    return {
        "listed": len(zoo.points),
        "driven": len(driven),
        "through": sum(bool(point.through) for point in driven),
        "undriven": [point for point in zoo.points if point.reason],
        "compared": [library.name for library in zoo.libraries.values() if library.compared],
    }


def _ages(zoo: Zoo) -> list[dict[str, Any]]:
    """Which catalogues judged, with the rules that are newer: the records by both, most records
    first.
    """
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for environment in _in_order(zoo):
        if record := read_json(RESULTS / f"{environment.name}.json"):
            key = str(record["catalogue"]), tuple(runs.newer(record))
            found.setdefault(key, []).append(f"{environment.library} {environment.shown}")
    return [
        {
            "catalogue": judge,
            "newer": rules,
            "records": ", ".join(names) if len(names) <= _FEW else f"{len(names)} records",
        }
        for (judge, rules), names in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def _unexplained(
    zoo: Zoo, failures: frozenset[tuple[str, str, str]]
) -> list[tuple[Environment, str, str]]:
    """The failures of the records that are neither findings, nor those of another library, nor
    remarked.
    """
    remarked = {(remark.library, remark.side, remark.rule) for remark in zoo.remarks}
    return [
        (environment, ran["target"], rule)
        for environment in _in_order(zoo)
        for ran in read_json(RESULTS / f"{environment.name}.json").get("targets", ())
        for rule in ran.get("failures", {})
        if (environment.library, ran["side"], rule) not in remarked
        and (ran["side"], ran["target"], rule) not in failures
        and not zoo.finding_of(environment, ran["side"], ran["target"], rule)
    ]


def _unjudged(zoo: Zoo) -> list[str]:
    """The targets of the suite without a GPU and gridbuf that no environment judges."""
    judged = {target for environment in zoo.environments.values() for target in environment.targets}
    return [
        f"`{name}` ({side})"
        for side, registry in (("producer", producers), ("consumer", named_consumers))
        for name, entry in registry.BUILT_IN.items()
        if not entry.needs_gpu and entry.needs != "gridbuf" and (side, name) not in judged
    ]


def unreached(zoo: Zoo) -> list[tuple[str, list[str]]]:
    """The rules that judged no target of any record, by the reason, the most rules first.

    Raises KeyError for a rule without a reason if all records are of this catalogue.
    """
    recorded: set[tuple[str, str]] = set()
    judged: set[str] = set()
    records = [read_json(RESULTS / f"{name}.json") for name in zoo.environments]
    for record in records:
        for ran in record.get("targets", ()):
            for outcome, text in ran.get("outcomes", {}).items():
                rules = runs.listed(text)
                recorded.update((ran["side"], id_) for id_ in rules)
                judged.update(() if outcome in _NOT_JUDGED else rules)
    found: dict[str, list[str]] = {}
    for id_, rule in catalogue.load().items():
        if rule.untestable or id_ not in judged:
            is_recorded = any((side, id_) in recorded for side in rule.sides)
            why = _why_unreached(rule, is_recorded)
            if not why and all(one.get("catalogue") == runs.CATALOGUE for one in records):
                raise KeyError(id_)
            found.setdefault(why or "newer than some of the records", []).append(id_)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def _why_unreached(rule: catalogue.Rule, is_recorded: bool) -> str:
    """Why a rule judged no library; empty if nothing says it."""
    if rule.untestable:
        return rule.untestable
    if not is_recorded:
        return "newer than the records"
    if not rule.is_published:
        return f"rests on {rule.source.text.title}, and no library of the zoo has that interface"
    return NEEDS_CUDA if rule.group == "CAI" or rule.on_device else REASONS.get(rule.id, "")


def libraries(zoo: Zoo) -> dict[str, str]:
    """The page of each library by the name of its file: all findings, with results and scripts."""
    own: dict[str, list[Entry]] = {}
    for entry in entries(zoo):
        own.setdefault(entry.finding.library, []).append(entry)
    template = _template("library.md.j2")
    return {
        f"{slug(library)}.md": template.render(
            library=library,
            project=zoo.libraries[library],
            environments=[e for e in _in_order(zoo) if e.library == library],
            entries=own[library],
            zoo=zoo,
            newest=newest(zoo, library),
        )
        for library in sorted(own, key=str.lower)
    }


def _template(name: str) -> jinja2.Template:
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    jinja.filters.update(code=_code, cell=_cell, place=_place, prose=_prose, tracker=_tracker)
    jinja.globals.update(meaning=catalogue.SEVERITIES)
    return jinja.get_template(name)


def counts(zoo: Zoo) -> dict[str, Any]:
    """The numbers of the headline: findings that are neither contested nor of form."""
    all_ = entries(zoo)
    chosen = counted(all_)
    return {
        "findings": len(chosen),
        "libraries": len({entry.finding.library for entry in chosen}),
        "newest": sum(entry.newest for entry in chosen),
        "shown": sum(entry.is_shown for entry in chosen),
        "severity": dict(Counter(entry.severity for entry in chosen)),
        "status": dict(Counter(entry.finding.status for entry in chosen)),
        "patterns": _patterns(zoo, chosen),
        "form": len(of_form(all_)),
        "contested": sum(entry.finding.is_contested for entry in all_),
    }


def _patterns(zoo: Zoo, chosen: list[Entry]) -> list[tuple[str, int]]:
    """What several findings have in common, and how many they are, the most first."""
    found = Counter(entry.finding.pattern for entry in chosen if entry.finding.pattern)
    return [(zoo.patterns[name], number) for name, number in found.most_common()]


def chart_data(zoo: Zoo) -> dict[str, dict[str, int]]:
    """For each interface, how many findings of each severity there are; contested ones are left
    out.
    """
    data: dict[str, dict[str, int]] = {}
    for entry in entries(zoo):
        if not entry.finding.is_contested:
            of_interface = data.setdefault(entry.interface, dict.fromkeys(catalogue.SEVERITIES, 0))
            of_interface[entry.severity] += 1
    return dict(sorted(data.items(), key=lambda item: sum(item[1].values())))


def _draw(zoo: Zoo, path: Path) -> None:
    """Draws the chart; if the committed one has the same data, a copy of it (matplotlib's versions
    draw differently).
    """
    data = chart_data(zoo)
    description = json.dumps(data, sort_keys=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if CHART.exists() and description in CHART.read_text("utf-8").replace("&quot;", '"'):
        shutil.copyfile(CHART, path)
        return
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "gridbuf", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 0.5 + 0.45 * len(data)), layout="constrained")
    left = [0] * len(data)
    for name in catalogue.SEVERITIES:
        widths = [of_interface[name] for of_interface in data.values()]
        axes.barh(list(data), widths, left=left, color=_COLORS[name], label=name)
        left = [start + width for start, width in zip(left, widths)]
    axes.set_xlabel("findings")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    metadata = {"Date": None, "Creator": None, "Description": description}
    figure.savefig(path, metadata=metadata, facecolor="white")
    pyplot.close(figure)
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", "utf-8")


def _by_rule(all_: list[Entry]) -> list[dict[str, Any]]:
    """For each broken rule: in how many libraries, and how many findings of each severity."""
    rows = []
    kept = [entry for entry in all_ if not entry.finding.is_contested]
    for rule in sorted({rule for entry in kept for rule in entry.finding.rules}):
        broken = [entry for entry in kept if rule in entry.finding.rules]
        rows.append(
            {
                "rule": rule,
                "requirement": catalogue.load()[rule].requirement,
                "libraries": len({entry.finding.library for entry in broken}),
                "severity": most_severe(entry.severity for entry in broken),
            }
        )
    order = list(catalogue.SEVERITIES).index
    return sorted(rows, key=lambda r: (-r["libraries"], order(r["severity"]), r["rule"]))


def _in_order(zoo: Zoo) -> list[Environment]:
    def key(environment: Environment) -> tuple[str, Version, str]:
        return environment.library.lower(), order(environment.version), environment.name

    return sorted(zoo.environments.values(), key=key)


def _row(
    zoo: Zoo, environment: Environment, failures: frozenset[tuple[str, str, str]]
) -> dict[str, Any]:
    """One library at one version: a cell for each rule group."""
    result = read_json(RESULTS / f"{environment.name}.json")
    targets = result.get("targets", [])
    errors = [f"{target['target']}: {target['error']}" for target in targets if "error" in target]
    return {
        "environment": environment,
        "newest": environment.version == newest(zoo, environment.library),
        "cells": [_group_cell(zoo, environment, targets, failures, group) for group in GROUPS],
        "remark": "not run" if not targets else "; ".join(errors),
    }


def _group_cell(
    zoo: Zoo,
    environment: Environment,
    targets: list[Any],
    failures: frozenset[tuple[str, str, str]],
    group: str,
) -> str:
    """The rules that failed, linked to their explanations; else how many rules were judged."""
    judged = sum(
        rule.startswith(f"{group}-")
        for target in targets
        for outcome, rules in target.get("outcomes", {}).items()
        if outcome not in _NOT_JUDGED
        for rule in runs.listed(rules)
    )
    failed: dict[str, str] = {}
    for target in targets:
        for rule in target.get("failures", {}):
            if rule.startswith(f"{group}-"):
                side, name = target["side"], target["target"]
                finding = zoo.finding_of(environment, side, name, rule)
                if not finding and (side, name, rule) in failures:
                    continue
                failed.setdefault(rule, _link(rule, finding) if finding else _remark(rule))
    for finding in zoo.findings:  # a pinned plan may show what the drawn ones did not
        if environment.name in finding.environments and finding.rule.startswith(f"{group}-"):
            failed[finding.rule] = _link(finding.rule, finding)
    if failed:
        return "✗ " + " ".join(failed[rule] for rule in sorted(failed))
    return f"✓ {judged}" if judged else "–"


def _found(zoo: Zoo, side: str, target: str, rule: str) -> bool:
    """Whether a finding explains the failure."""
    judging = (e for e in zoo.environments.values() if (side, target) in e.targets)
    return any(zoo.finding_of(environment, side, target, rule) for environment in judging)


def _link(text: str, finding: Finding) -> str:
    return f"[{text}]({_place(finding)})"


def _place(finding: Finding) -> str:
    """The finding's script; the site has its section on the page of the library instead."""
    return f"../zoo/findings/{finding.script.name}"


def _remark(rule: str) -> str:
    return f"[{rule}](#remarks)"


def _code(text: str) -> str:
    """As code, so that no character of it means anything to Markdown."""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def _prose(text: str) -> str:
    """As prose: what Markdown would take for emphasis or for a tag is escaped, except in code."""
    parts = text.split("`")
    parts[::2] = [
        _MARKUP.sub(lambda match: re.sub(".", r"\\\g<0>", match[0]), part) for part in parts[::2]
    ]
    return "`".join(parts)


def _cell(text: str) -> str:
    """As the text of a table's cell."""
    return text.replace("|", "\\|")


def _tracker(entry: Entry) -> str:
    """The status, with the link to the tracker named by project and number."""
    link = entry.finding.tracker
    if not link:
        return entry.status
    parts = link.partition("#")[0].split("/")
    short = f"{parts[3]}/{parts[4]} #{parts[6]}" if len(parts) == 7 else parts[-1]
    return f"{entry.status}, [{short}]({link})"
