"""How bad a finding is: decided by the rules that it breaks and by what happened, not by hand.

A process that died makes every finding a matter of memory. Otherwise the worst rule decides: each row of the catalogue has
what a breach of the rule leads to in a consumer or producer that obeys the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from records import Finding

from gridbuf_conformance.rules import catalogue

__all__ = ["SEVERITIES", "of", "worst"]

SEVERITIES = tuple(catalogue.SEVERITIES)


def of(finding: Finding, proof: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """One of `SEVERITIES`, from the replays (`proof`) and from the runs of the script (`shown`) of a finding."""
    replayed = proof.get("affected", {}).get("outcome")
    scripts = (shown.get(name, {}) for name in finding.environments)
    if replayed == "CRASH" or any("died of signal" in run.get("told", "") for run in scripts):
        return "memory"
    rules = catalogue.load()
    return worst(rules[rule].severity_of(finding.side) for rule in finding.rules)


def worst(severities: Iterable[str]) -> str:
    """The first of `SEVERITIES` among them."""
    return min(severities, key=SEVERITIES.index)
