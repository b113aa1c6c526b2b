"""The package's types hold by `mypy --strict`, with the configuration of pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gridbuf_conformance

PACKAGE = Path(gridbuf_conformance.__file__).parent


def test_types_are_strict_and_hold(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed: tools/dev setup brings it")
    configuration = Path(__file__).parents[1] / "pyproject.toml"
    command = [sys.executable, "-m", "mypy", "--config-file", str(configuration)]
    options = ["--cache-dir", str(tmp_path), "--no-error-summary", str(PACKAGE)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
