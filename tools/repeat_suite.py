"""Runs the conformance suite again and again, and compares its reports: same inputs must give the same bytes.

    python tools/repeat_suite.py                          # 20 x smoke and 3 x default on every producer installed
    python tools/repeat_suite.py --smoke 5 --default 0 numpy torch

Each run is a separate process with newly randomised hashes, so that equal reports are not an accident. A report is
compared as its JSON text without `timing`, the only part that may differ. Exit code 1 if any producer's reports
differ. The differences are printed, rule by rule.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridbuf_conformance import producers

Data = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Compare reports of repeated runs of the suite.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="producers; default: all installed"
    )
    parser.add_argument("--smoke", type=int, default=20, metavar="N", help="runs of smoke (20)")
    parser.add_argument("--default", type=int, default=3, metavar="N", help="runs of default (3)")
    asked = parser.parse_args(arguments)
    names = asked.names or [name for name, e in producers.entries().items() if e.is_usable]
    differing = []
    for name in names:
        for profile, count in (("smoke", asked.smoke), ("default", asked.default)):
            if count > 1 and not _repeats(name, profile, count):
                differing.append(f"{name} ({profile})")
    print(f"differ: {', '.join(differing)}" if differing else "every run gave the same report")
    return 1 if differing else 0


def _repeats(name: str, profile: str, count: int) -> bool:
    """Whether `count` runs say the same; prints one line, and what differs below it."""
    first = report_of(name, profile)
    if first is None:
        print(f"{name:24} {profile:8} cannot be loaded", flush=True)
        return True
    for run in range(2, count + 1):
        other = report_of(name, profile)
        if json.dumps(other) != json.dumps(first):
            print(f"{name:24} {profile:8} run {run} differs from run 1", flush=True)
            print("\n".join(f"    {line}" for line in differences(first, other or {})), flush=True)
            return False
    print(f"{name:24} {profile:8} {count} times the same", flush=True)
    return True


def report_of(name: str, profile: str) -> Data | None:
    """The report of one run in a fresh process, without its timing; None if the producer cannot be loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "gridbuf_conformance", "check", name]
        options = ["--profile", profile, "--report", str(path)]
        subprocess.run([*command, *options], check=False, capture_output=True)
        if not path.exists():
            return None
        data: Data = json.loads(path.read_text(encoding="utf-8"))
    del data["timing"]
    return data


def differences(one: Data, other: Data) -> list[str]:
    """What differs between two reports: keys, and rules with both of their entries."""
    lines = [
        f"{key}: {one[key]} / {other.get(key)}"
        for key in one
        if key != "rules" and one[key] != other.get(key)
    ]
    entries = [{rule["id"]: rule for rule in report.get("rules", ())} for report in (one, other)]
    for id_ in {**entries[0], **entries[1]}:
        pair = [rules.get(id_) for rules in entries]
        if pair[0] != pair[1]:
            lines += [f"{id_}: {json.dumps(pair[0])}", f"{' ' * len(id_)}  {json.dumps(pair[1])}"]
    return lines


if __name__ == "__main__":
    sys.exit(main())
