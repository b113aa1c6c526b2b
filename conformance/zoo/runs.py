"""The results of runs: reports reduced to what the zoo keeps, and the two replays of a finding.

A reduced report has every rule with its outcome, and for each that failed the smallest plan with expected and found values.
Everything that may differ between two runs of the same versions (timing) is left out. A record has the version of the
catalogue that judged: it is too old when rules, their levels, their sides, their preconditions or their scope changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import venvs
from records import Environment, Finding, Zoo

from gridbuf_conformance.rules import catalogue

__all__ = ["CATALOGUE", "FAILED", "PROFILE", "checked", "is_verified", "reduced", "verified"]

PROFILE = "default"
"""The profile that users run."""
FAILED = ("FAIL", "CRASH", "TIMEOUT", "UNSTABLE")
"""Outcomes that a run counts as failures. A finding must be one of the first two."""
_FAILING = FAILED[:2]
_MAX_CHARS = 400


CATALOGUE = catalogue.digest()
"""The catalogue that judges."""


def checked(environment: Environment, folder: Path) -> dict[str, Any]:
    """Judges every target of an environment; raises CannotMake if it cannot be made."""
    python = venvs.make(environment, folder)
    targets = []
    for side, target in environment.targets:
        report = venvs.suite(python, "check", side, target, "--profile", PROFILE)
        targets.append({"side": side, "target": target, **reduced(report)})
    return {
        "library": environment.library,
        "version": environment.version,
        "python": environment.python,
        "profile": PROFILE,
        "catalogue": CATALOGUE,
        "targets": targets,
    }


def reduced(report: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a report: the rules by outcome, and the failures."""
    if "error" in report:
        return {"error": report["error"]}
    outcomes: dict[str, list[str]] = {}
    for rule in report["rules"]:
        outcomes.setdefault(rule["outcome"], []).append(rule["id"])
    return {
        "version": report["target"]["version"],
        "outcomes": {outcome: " ".join(rules) for outcome, rules in outcomes.items()},
        "failures": {
            rule["id"]: _smallest(rule) for rule in report["rules"] if rule["outcome"] in FAILED
        },
    }


def verified(finding: Finding, zoo: Zoo, folder: Path) -> dict[str, Any]:
    """The finding's plan, replayed on the affected version and, if the record names one, on the peer."""
    passes, target = finding.peer
    replays = {"affected": _replayed(finding, zoo.environments[finding.affected], folder)}
    if passes:
        replays["passes"] = _replayed(finding, zoo.environments[passes], folder, target)
    return replays


def is_verified(result: Mapping[str, Any]) -> bool:
    """Whether the affected version fails and its peer, if there is one, passes: a note is not enough."""
    failed = result.get("affected", {}).get("outcome") in _FAILING
    return failed and ("passes" not in result or bool(result["passes"]["outcome"] == "PASS"))


def _replayed(
    finding: Finding, environment: Environment, folder: Path, target: str = ""
) -> dict[str, Any]:
    try:
        python = venvs.make(environment, folder)
    except venvs.CannotMake as error:
        return {"outcome": "ERROR", "actual": str(error)}
    arguments = (target or finding.target, finding.replay_rule, finding.plan)
    report = venvs.suite(python, "replay", finding.side, *arguments)
    if "error" in report:
        return {"outcome": "ERROR", "actual": report["error"]}
    (rule,) = report["rules"]
    return {"outcome": rule["outcome"], **_words(rule["failures"][:1] or [rule])}


def _smallest(rule: Mapping[str, Any]) -> dict[str, Any]:
    failure = rule["failures"][0]
    return {"outcome": rule["outcome"], "plan": failure["plan"], **_words([failure])}


def _words(failures: list[Any]) -> dict[str, str]:
    """Expected, actual and note, as far as there are any, each on one line of bounded length."""
    keys = ("expected", "actual", "note")
    words = {key: " ".join(str(failures[0].get(key) or "").split()) for key in keys}
    return {key: _shortened(text) for key, text in words.items() if text}


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
