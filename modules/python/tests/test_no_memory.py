"""Every allocation of every operation fails once: a MemoryError each time, nothing left behind, no crash."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SANITIZED = "libclang_rt" in os.environ.get("LD_PRELOAD", "")


def run(whose: str, **environment: str) -> dict[str, int]:
    """How many allocations each operation was denied, by its name."""
    done = subprocess.run(
        [sys.executable, str(HERE / "starving.py"), whose],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    pairs = (line.rsplit(": ", 1) for line in done.stdout.splitlines())
    return {name: int(count) for name, count in pairs}


def test_the_extension_survives_without_memory() -> None:
    if SANITIZED:
        pytest.skip("the sanitizer replaces malloc itself")
    denied = run("native", LD_PRELOAD=str(HERE / "failing_malloc.so"))
    for name in (
        "empty",
        "allocate",
        "copy",
        "copyto with an overlap",
        "copyto to a device",
        "dlpack",
        "dlpack versioned",
        "repr",
        "device",
    ):
        assert denied[name] > 0, f"{name} was never denied memory: nothing was tested"


def test_python_survives_without_memory() -> None:
    if importlib.util.find_spec("_testcapi") is None:
        pytest.skip("NOT TESTED: this Python is built without _testcapi, which denies it memory")
    denied = run("python")
    assert sum(denied.values()) > 20
