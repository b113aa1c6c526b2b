"""docs/how-to/extend-the-suite.md, "Add a rule": the row, the check and the wrong producer of the
page, in a copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gridbuf_conformance
from gridbuf_conformance.rules import catalogue

PACKAGES = Path(gridbuf_conformance.__file__).parents[1]
PAGE = (PACKAGES.parent / "docs/how-to/extend-the-suite.md").read_text(encoding="utf-8")
SCRIPT = """
import json
from gridbuf_conformance.engine.producer_run import check_plans
from gridbuf_conformance_mutants.plans import PLANS
target = "gridbuf_conformance_mutants.buffer_protocol:ReadonlyIsABit"
report = check_plans(target, PLANS, rules="PB-*", isolate=False)
print(json.dumps(report.outcomes))
"""


def blocks(language: str, rule: str) -> list[str]:
    """The code blocks of the page, with the next free id as the id of the rule."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [block.replace("PB-36", rule) for block in found]


def test_the_rule_of_the_page_finds_its_wrong_producer(tmp_path):
    count = sum(id_.startswith("PB-") for id_ in catalogue.load())
    rule = f"PB-{count + 1}"
    for name in ("gridbuf_conformance", "gridbuf_conformance_mutants"):
        shutil.copytree(PACKAGES / name, tmp_path / name)
    group = tmp_path / "gridbuf_conformance/interfaces/buffer_protocol"
    mutants = tmp_path / "gridbuf_conformance_mutants/buffer_protocol.py"
    (row, *_), (check, mutant) = blocks("toml", rule), blocks("python", rule)
    for path, text in (
        (group / "rules.toml", row),
        (group / "producer.py", check),
        (mutants, mutant),
    ):
        path.chmod(0o644)
        path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{text}", encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert outcomes.pop(rule) == "ADVISORY"
    assert not {"FAIL", "ADVISORY", "ERROR"} & set(outcomes.values())
