"""The results of runs: reports reduced to what the zoo keeps, and the two replays of a finding.

A reduced report has every rule with its outcome, and for each that failed the smallest plan with
expected and found values. Everything that may differ between two runs of the same versions (timing)
is left out. A record has the digest of the catalogue that judged. `command.py run --rule` judges
some rules again: their part of the record has its own digest (`alone`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import venvs
from records import Environment, Finding, Zoo

from gridbuf_conformance import producers
from gridbuf_conformance.plan import Plan
from gridbuf_conformance.rules import catalogue

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
    return {
        "library": environment.library,
        "version": environment.version,
        "python": environment.python,
        "profile": PROFILE,
        "catalogue": CATALOGUE,
        "targets": [
            {"side": side, "target": target, **_judged(python, side, target)}
            for side, target in environment.targets
        ],
    }


def refreshed(
    record: Mapping[str, Any], environment: Environment, folder: Path, rules: str
) -> dict[str, Any]:
    """The record with these rules judged again, on the plans of these rules only; raises
    CannotMake.
    """
    python = venvs.make(environment, folder)
    targets = []
    for ran in record["targets"]:
        side, target = ran["side"], ran["target"]
        wanted = {rule.id for rule in catalogue.select(rules, side)} & selected(side, target)
        part = _judged(python, side, target, "--rules", ",".join(sorted(wanted))) if wanted else {}
        if "error" in part:
            raise venvs.CannotMake(f"{environment.name}: {target}: {part['error']}")
        targets.append(_merged(ran, part) if part and "error" not in ran else ran)
    return {**record, "targets": targets}


def _judged(python: Path, side: str, target: str, *arguments: str) -> dict[str, Any]:
    report = venvs.suite(python, "check", side, target, "--profile", PROFILE, *arguments)
    return reduced(report)


def _merged(ran: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a target in which some rules have the outcomes of a later run."""
    again = {rule: outcome for outcome, text in part["outcomes"].items() for rule in listed(text)}
    by_rule = {rule: outcome for outcome, text in ran["outcomes"].items() for rule in listed(text)}
    kept = {rule: words for rule, words in ran["failures"].items() if rule not in again}
    return {
        **ran,
        "outcomes": _by_outcome({**by_rule, **again}),
        "failures": {**kept, **part["failures"]},
        "alone": {**ran.get("alone", {}), **dict.fromkeys(again, CATALOGUE)},
    }


def selected(side: str, target: str) -> set[str]:
    """The rules that judge a target."""
    built_in = producers.BUILT_IN.get(target) if side == "producer" else None
    return {rule.id for rule in catalogue.select(built_in.rules if built_in else None, side)}


def newer(record: Mapping[str, Any]) -> list[str]:
    """The rules of today's catalogue for a target of the record that have no outcome in it."""
    missing = {
        rule
        for ran in record.get("targets", ())
        for rule in selected(ran["side"], ran["target"])
        - set(listed(" ".join(ran.get("outcomes", {}).values())))
        if "error" not in ran
    }
    return [rule for rule in catalogue.load() if rule in missing]


def reduced(report: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a report: the rules by outcome, and the failures."""
    if "error" in report:
        return {"error": report["error"]}
    return {
        "version": report["target"]["version"],
        "outcomes": _by_outcome({rule["id"]: rule["outcome"] for rule in report["rules"]}),
        "failures": {
            rule["id"]: _smallest(rule) for rule in report["rules"] if rule["outcome"] in FAILED
        },
    }


def _by_outcome(by_rule: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for rule, outcome in by_rule.items():
        found.setdefault(outcome, []).append(rule)
    return {outcome: packed(rules) for outcome, rules in found.items()}


def packed(rules: Iterable[str]) -> str:
    """Ids of rules as a short text: "AI-01 AI-02 AI-03 PB-07" is "AI-01…03 PB-07"."""
    numbered = sorted((id_.partition("-")[0], int(id_.partition("-")[2])) for id_ in rules)
    words = []
    for _, run in groupby(enumerate(numbered), lambda item: (item[1][0], item[1][1] - item[0])):
        pairs = [pair for _, pair in run]
        (group, first), (_, last) = pairs[0], pairs[-1]
        words.append(f"{group}-{first:02}" + (f"…{last:02}" if last > first else ""))
    return " ".join(words)


def listed(text: str) -> list[str]:
    """The ids of a text that `packed` made."""
    return [
        f"{group}-{number:02}"
        for group, first, last in re.findall(r"([A-Z]+)-(\d+)(?:…(\d+))?", text)
        for number in range(int(first), int(last or first) + 1)
    ]


def verified(finding: Finding, zoo: Zoo, folder: Path) -> dict[str, Any]:
    """The finding's plan, replayed on the affected version and, if the record names one, on the
    peer.
    """
    passes, target = finding.peer
    replays = {"affected": _replayed(finding, zoo.environments[finding.affected], folder)}
    if passes:
        replays["passes"] = _replayed(finding, zoo.environments[passes], folder, target)
    return replays


def is_verified(result: Mapping[str, Any]) -> bool:
    """Whether the affected version fails and its peer, if there is one, passes: a note is not
    enough.
    """
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
    return {"outcome": rule["outcome"], "plan": _brief(failure["plan"]), **_words([failure])}


def _brief(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan without the keys that have their default value."""
    usual = Plan().to_dict()
    return {key: value for key, value in plan.items() if key not in usual or value != usual[key]}


def _words(failures: list[Any]) -> dict[str, str]:
    """Expected, actual and note, as far as there are any, each on one line of bounded length."""
    keys = ("expected", "actual", "note")
    words = {key: " ".join(str(failures[0].get(key) or "").split()) for key in keys}
    return {key: _shortened(text) for key, text in words.items() if text}


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
