"""A finding with all that the runs say of it: what the pages and the data of the suite are made of."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import scripts
import versions
from records import GROUPS, RESULTS, Environment, Finding, Zoo, read_json

from gridbuf_conformance.rules import catalogue
from gridbuf_conformance.rules.catalogue import Rule

__all__ = ["Entry", "counted", "entries", "most_severe", "of_form", "worst"]

_SEVERITIES = tuple(catalogue.SEVERITIES)


@dataclass(frozen=True)
class Entry:
    """One finding. `proof` has its replays, `shown` the runs of its script by environment, `over` those on other releases."""

    finding: Finding
    zoo: Zoo
    proof: dict[str, Any]
    shown: dict[str, Any]
    over: dict[str, Any]

    @property
    def severity(self) -> str:
        return self.finding.severity

    @property
    def source(self) -> tuple[str, str]:
        """The sentence that binds the library on this side, and a link to it."""
        own, rested = self.finding, self.rule.source_of(self.finding.side)
        return (own.source, own.source_link) if own.source else (str(rested), rested.url)

    @property
    def interface(self) -> str:
        return catalogue.GROUPS[self.rule.group].interface

    @property
    def rule(self) -> Rule:
        return catalogue.load()[self.finding.rule]

    @property
    def affected(self) -> list[Environment]:
        return [self.zoo.environments[name] for name in self.finding.environments]

    @property
    def newest(self) -> bool:
        """Whether it is in the newest release of its library."""
        is_recorded = any(environment.age == "newest" for environment in self.affected)
        return versions.is_newest(self.over) if "releases" in self.over else is_recorded

    @property
    def version(self) -> str:
        """The newest version in which it was seen."""
        recorded, package = self.affected[0], str(self.over.get("package"))
        if "releases" in self.over and package not in recorded.carrier:
            return versions.last(self.over)
        return recorded.shown

    @property
    def status(self) -> str:
        finding = self.finding
        if finding.status == "fixed":
            where = "on" if finding.fixed_in.startswith("the ") else "in"
            return f"fixed {where} {finding.fixed_in}"
        return finding.status

    @property
    def crashed(self) -> bool:
        """Whether the process died in a run of the script."""
        return any("died of signal" in str(run.get("told")) for run in self.shown.values())

    @property
    def is_shown(self) -> bool:
        """Whether its script ran against the recorded version and showed it."""
        return scripts.outcome(self.shown.get(self.finding.affected, {})) == scripts.SHOWN

    @property
    def told(self) -> str:
        """What the replay came to, in the report's words."""
        broken = self.proof.get("affected", {})
        words = [f"{key} {broken[key]}" for key in ("expected", "actual") if broken.get(key)]
        return f"{broken.get('outcome', 'not replayed')}: {'; '.join(words)}"

    @property
    def is_of_zoo(self) -> bool:
        """Whether the target is a file of the zoo, which no wheel of the suite has."""
        return self.finding.target.startswith("zoo/")

    @property
    def replay(self) -> str:
        """The command of the suite, to be run in the finding's environment."""
        side = ["--consumer"] if self.finding.side == "consumer" else []
        plan = json.dumps(json.loads(self.finding.plan), separators=(",", ":"))
        words = [
            "gridbuf-conformance",
            "replay",
            *side,
            self.finding.target,
            self.finding.replay_rule,
        ]
        return shlex.join([*words, plan])

    @property
    def releases(self) -> str:
        """Since which release and until which one; empty if it was not tried."""
        return versions.told(self.over) if "releases" in self.over else ""

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs of its script, the recorded version first. A version says what carries the library."""
        order = scripts.environments(self.finding, self.zoo)
        return [{**self.shown[e.name], "version": e.shown} for e in order if e.name in self.shown]


def entries(zoo: Zoo) -> list[Entry]:
    """Every finding, contested ones too, the worst first."""
    proofs = read_json(RESULTS / "verified.json")
    shown = read_json(RESULTS / "reproduced.json")
    over = read_json(versions.PATH)
    made = [
        Entry(f, zoo, proofs.get(f.id, {}), shown.get(f.id, {}), over.get(f.id, {}))
        for f in zoo.findings
    ]
    return sorted(made, key=_rank)


def most_severe(severities: Iterable[str]) -> str:
    return min(severities, key=_SEVERITIES.index)


def counted(all_: list[Entry]) -> list[Entry]:
    """What the headline counts: neither contested nor of form."""
    return [e for e in all_ if not e.finding.is_contested and e.severity != "form"]


def of_form(all_: list[Entry]) -> list[Entry]:
    return [e for e in all_ if not e.finding.is_contested and e.severity == "form"]


def worst(all_: list[Entry]) -> list[tuple[Entry, str]]:
    """The worst findings, each with the reason, as they are ranked in environments.toml."""
    by_id = {entry.finding.id: entry for entry in all_}
    return [(by_id[row.finding], row.reason) for row in all_[0].zoo.worst]


def _rank(entry: Entry) -> tuple[int, bool, bool, bool, str, int, str]:
    finding = entry.finding
    return (
        _SEVERITIES.index(entry.severity),
        not entry.newest,
        not entry.crashed,
        finding.status != "new",
        finding.library.lower(),
        GROUPS.index(entry.rule.group),
        finding.id,
    )
