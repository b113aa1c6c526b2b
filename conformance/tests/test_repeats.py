"""The same run gives the same report, to the byte, but for its `timing`: whatever the process
hashes like.

Here with two runs of producers that are quick; `tools/repeat_suite.py` does it with twenty, and
with every producer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gridbuf_conformance
from gridbuf_conformance import producers

QUICK = ("array", "bytes", "bytearray", "memoryview", "numpy")


def _report(name: str, hash_seed: str, folder: Path) -> dict[str, object]:
    """The report of one run of `smoke` in a separate process, without its timing."""
    path = folder / f"{hash_seed}.json"
    package_folder = Path(gridbuf_conformance.__file__).parents[1]
    search = os.pathsep.join([str(package_folder), *filter(None, sys.path)])
    subprocess.run(
        [sys.executable, "-m", "gridbuf_conformance", "check", name]
        + ["--profile", "smoke", "--report", str(path)],
        env={**os.environ, "PYTHONPATH": search, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=False,
    )
    report: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    assert report.pop("timing")
    return report


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.thorough) if name == "array" else name for name in QUICK],
)
def test_two_runs_say_the_same(name: str, tmp_path: Path) -> None:
    if not producers.BUILT_IN[name].is_installed:
        pytest.skip(f"{name} is not installed")
    first, second = (_report(name, seed, tmp_path) for seed in ("1", "4711"))
    assert json.dumps(first) == json.dumps(second)
