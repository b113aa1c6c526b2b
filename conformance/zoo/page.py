"""docs/zoo.md, rendered from the data of the zoo: the matrix, each finding with its proof, and untested libraries."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import jinja2
import runs
from records import FOLDER, GROUPS, RESULTS, Environment, Finding, Zoo, read_json

__all__ = ["render"]

_MAX_PLAN_CHARS = 300


def render(zoo: Zoo) -> str:
    """The document, from the records and the results next to them."""
    loader = jinja2.FileSystemLoader(FOLDER)
    jinja = jinja2.Environment(
        loader=loader,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    proofs = read_json(RESULTS / "verified.json")
    return jinja.get_template("zoo.md.j2").render(
        zoo=zoo,
        groups=GROUPS,
        rows=[_row(zoo, environment) for environment in _in_order(zoo)],
        libraries=_by_library(zoo, proofs),
        counts=counts(zoo),
    )


def counts(zoo: Zoo) -> dict[str, int]:
    """Defects: findings of one cause count once."""

    def defects(chosen: list[Finding]) -> int:
        return len({finding.cause for finding in chosen})

    return {
        "defects": defects(list(zoo.findings)),
        "libraries": len({finding.library for finding in zoo.findings}),
        "newest": defects([f for f in zoo.findings if zoo.is_newest(f)]),
        "published": defects([f for f in zoo.findings if f.is_published]),
        "producers": defects([f for f in zoo.findings if f.side == "producer"]),
        "consumers": defects([f for f in zoo.findings if f.side == "consumer"]),
    }


def _in_order(zoo: Zoo) -> list[Environment]:
    def key(environment: Environment) -> tuple[str, list[int], str]:
        return environment.library.lower(), _numbers(environment.version), environment.name

    return sorted(zoo.environments.values(), key=key)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.replace("+", ".").split(".") if part.isdigit()]


def _row(zoo: Zoo, environment: Environment) -> dict[str, Any]:
    """One library at one version: a cell for each rule group."""
    result = read_json(RESULTS / f"{environment.name}.json")
    targets = result.get("targets", [])
    errors = [f"{target['target']}: {target['error']}" for target in targets if "error" in target]
    return {
        "environment": environment,
        "cells": [_cell(zoo, environment, targets, group) for group in GROUPS],
        "remark": "not run" if not targets else "; ".join(errors),
    }


def _cell(zoo: Zoo, environment: Environment, targets: list[Any], group: str) -> str:
    """The rules that failed, linked to their explanations; else how many rules were judged."""
    judged = sum(target.get("judged", {}).get(group, 0) for target in targets)
    failed: dict[str, str] = {}
    for target in targets:
        for rule in target.get("failures", {}):
            if rule.startswith(f"{group}-"):
                side, name = target["side"], target["target"]
                failed.setdefault(rule, _link(zoo, environment, side, name, rule))
    for finding in zoo.findings:  # a pinned plan may show what the drawn ones did not
        if environment.name in finding.environments and finding.rule.startswith(f"{group}-"):
            failed[finding.rule] = f"[{finding.rule}](#{finding.id})"
    if failed:
        return "✗ " + " ".join(failed[rule] for rule in sorted(failed))
    return f"✓ {judged}" if judged else "–"


def _link(zoo: Zoo, environment: Environment, side: str, target: str, rule: str) -> str:
    finding = zoo.finding_of(environment, side, target, rule)
    return f"[{rule}](#{finding.id})" if finding else f"[{rule}](#remarks)"


def _by_library(zoo: Zoo, proofs: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    libraries: dict[str, list[dict[str, Any]]] = {}
    for finding in sorted(zoo.findings, key=lambda f: (f.library.lower(), f.side, f.rule, f.id)):
        libraries.setdefault(finding.library, []).append(_entry(zoo, finding, proofs))
    return libraries


def _entry(zoo: Zoo, finding: Finding, proofs: Mapping[str, Any]) -> dict[str, Any]:
    proof = proofs.get(finding.id, {})
    name, target, plan = finding.peer
    passes = zoo.environments[name]
    return {
        "finding": finding,
        "affected": [zoo.environments[e] for e in finding.environments],
        "passes": f"{passes.library} {passes.version}"
        + ("" if target == finding.target else f" (`{target}`)"),
        "passes_plan": "" if plan == finding.plan else plan,
        "replay": _replay(finding),
        "broken": _told(proof) if runs.is_verified(proof) else "not verified",
        "tracker": _tracker(finding.tracker),
    }


def _told(proof: Mapping[str, Any]) -> str:
    """What the replay came to, in the report's words."""
    broken = proof["affected"]
    words = [f"{key} {_quoted(broken[key])}" for key in ("expected", "actual") if broken.get(key)]
    return f"{broken['outcome']}: {'; '.join(words)}" if words else str(broken["outcome"])


def _quoted(text: str) -> str:
    """As code, so that no character of it means anything to Markdown."""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def _replay(finding: Finding) -> str:
    """The command, as it is typed in the finding's environment."""
    side = ["--consumer"] if finding.side == "consumer" else []
    plan = json.dumps(json.loads(finding.plan), separators=(",", ":"))
    words = ["gridbuf-conformance", "replay", *side, finding.target, finding.rule, plan]
    return shlex.join(words)


def _tracker(tracker: str) -> str:
    """ "new", or a link named by project and number."""
    if not tracker.startswith("https://"):
        return tracker
    parts = tracker.partition("#")[0].split("/")
    short = f"{parts[3]}/{parts[4]} #{parts[6]}" if len(parts) > 6 else tracker
    return f"[{short}]({tracker})"
