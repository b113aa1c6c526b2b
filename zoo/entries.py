"""A finding with all that the runs say of it: for the pages and the data of the suite."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import scripts
import versions
from records import GROUPS, RESULTS, Environment, Finding, Zoo, order, read_json

from gridbuf_conformance.rules import catalogue
from gridbuf_conformance.rules.catalogue import Rule

_SEVERITIES = tuple(catalogue.SEVERITIES)


@dataclass(frozen=True)
class Entry:
    """One finding."""

    finding: Finding
    zoo: Zoo

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
        """Whether it is in the newest release of its library that was tried."""
        if self.is_bisected and self.is_carried:
            return versions.is_newest(self.finding.releases)
        return self.states.get(newest(self.zoo, self.finding.library)) == scripts.SHOWN

    @property
    def version(self) -> str:
        """The newest version in which it was seen."""
        if not self.is_bisected or self.is_carried:
            return self.affected[0].shown
        shown = [name for name, state in self.states.items() if state == scripts.SHOWN]
        return max(shown, key=order)

    @property
    def states(self) -> dict[str, str]:
        """What its script came to on each version: of the releases, and of its runs."""
        runs = {
            self.zoo.environments[name].version: scripts.outcome(run)
            for name, run in self.finding.runs.items()
        }
        return {**({} if self.is_carried else versions.tried(self.finding.releases)), **runs}

    @property
    def is_carried(self) -> bool:
        """Whether the releases that were tried are those of what carries the library."""
        return self.finding.releases.get("package") in self.affected[0].carrier.split()

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
        return any("died of signal" in run["told"] for run in self.finding.runs.values())

    @property
    def is_shown(self) -> bool:
        """Whether its script ran against the recorded version and showed it."""
        return scripts.outcome(self.finding.runs.get(self.finding.affected, {})) == scripts.SHOWN

    @property
    def told(self) -> str:
        """What the replay came to, in the report's words."""
        broken = self.finding.replays.get("affected", {})
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
    def is_bisected(self) -> bool:
        """Whether it was tried on enough releases."""
        return "listed" in self.finding.releases

    @property
    def releases(self) -> str:
        """Since which release and until which one; empty if it was not tried."""
        return versions.told(self.finding.releases) if self.is_bisected else ""

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs of its script, the recorded version first. A version says what carries the
        library.
        """
        return [
            {"exit": None, **self.finding.runs[e.name], "python": e.python, "version": e.shown}
            for e in scripts.environments(self.finding, self.zoo)
            if e.name in self.finding.runs
        ]


def entries(zoo: Zoo) -> list[Entry]:
    """Every finding, contested ones too, the worst first."""
    return sorted((Entry(finding, zoo) for finding in zoo.findings), key=_rank)


def newest(zoo: Zoo, library: str) -> str:
    """The newest version of a library in which a target was judged, or a script ran."""
    ran = [
        name
        for finding in zoo.findings
        if finding.library == library
        for name, state in Entry(finding, zoo).states.items()
        if state in (scripts.SHOWN, scripts.GONE)
    ]
    judged = [environment.version for environment in zoo.libraries[library].environments]
    return max((*ran, *judged), key=order)


def elsewhere(zoo: Zoo) -> frozenset[tuple[str, str, str]]:
    """The failures in the records, as (side, target, rule), that belong to the library that reads
    for the target.

    Some libraries leave the reading of an exporter to another one (`through`), as most do to NumPy.
    A rule that the other library fails too on that side is the other library's.
    """
    readers = {(p.side, target): p.through for p in zoo.points for target in p.targets}
    failures = [
        (environment.library, ran["side"], ran["target"], rule)
        for environment in zoo.environments.values()
        for ran in read_json(RESULTS / f"{environment.name}.json").get("targets", ())
        for rule in ran.get("failures", {})
    ]
    own = {(library, side, rule) for library, side, _, rule in failures}
    return frozenset(
        (side, target, rule)
        for _, side, target, rule in failures
        if (readers.get((side, target)), side, rule) in own
    )


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
