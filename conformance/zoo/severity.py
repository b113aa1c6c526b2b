"""How bad a finding is: decided by the rules that it breaks and by what happened, not by hand.

A process that died makes every finding a matter of memory. Otherwise the worst rule decides: each rule of `_OF_RULE` has
what a breach of it leads to in a consumer or producer that obeys the text. A rule without an entry is about form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from records import Finding

__all__ = ["MEANING", "SEVERITIES", "of"]

MEANING = {
    "memory": "memory that does not belong to the array is read or written, or the process dies",
    "values": "other values than those of the array are read, or writes are lost",
    "leak": "memory is never freed",
    "refusal": "input that the text allows is refused",
    "form": "the description breaks the text; no consumer is known to come to harm",
}
SEVERITIES = tuple(MEANING)

_OF_RULE = {
    rule: severity
    for severity, rules in {
        "memory": "AI-04 AI-16 AI-18 AI-22 AI-28 AI-30 AI-33 AS-07 CAI-12 DL-14 DL-19 DL-20 DL-21 DL-22 DL-27 DL-29 "
        "DP-05 DP-07 DP-08 PB-13 PB-17 PB-18 PB-24 PB-25 PB-27 PB-29 PB-35 XA-11",
        "values": "AI-09 AI-10 AI-25 AI-26 AI-34 AS-05 AS-08 CAI-08 CAI-13 CAI-26 DL-04 DL-09 DL-10 DL-16 DL-23 "
        "DL-25 DL-26 DL-30 DP-20 DP-21 DP-30 DP-32 PB-04 PB-07 PB-11 PB-12 PB-14 PB-32 PB-34 XA-01 XA-02 XA-03 "
        "XA-04 XA-07 XA-08 XA-09 XA-12 XA-15 XA-17 XA-19",
        "leak": "DL-28 DP-06 DP-09 DP-31",
        "refusal": "AI-23 AI-24 AI-27 AI-32 CAI-10 DL-08 DL-12 DL-13 DP-12 DP-14 DP-23 DP-26 DP-33 PB-16 PB-22",
    }.items()
    for rule in rules.split()
}
_OF_CONSUMER_RULE = {**_OF_RULE, "PB-20": "values", "PB-24": "leak", "PB-29": "leak"}
"""Consumers read another format than the exporter wrote, and keep what they do not release. (A second release crashes.)"""


def of(finding: Finding, proof: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """One of `SEVERITIES`, from the replays (`proof`) and from the runs of the script (`shown`) of a finding."""
    replayed = proof.get("affected", {}).get("outcome")
    scripts = (shown.get(name, {}) for name in finding.environments)
    if replayed == "CRASH" or any("died of signal" in run.get("told", "") for run in scripts):
        return "memory"
    of_rule = _OF_CONSUMER_RULE if finding.side == "consumer" else _OF_RULE
    return worst(of_rule.get(rule, "form") for rule in finding.rules)


def worst(severities: Iterable[str]) -> str:
    """The first of `SEVERITIES` among them."""
    return min(severities, key=SEVERITIES.index)
