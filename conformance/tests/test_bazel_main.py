"""What a `conformance_test` of defs.bzl runs: the verdict is the exit code, the reports are where
Bazel looks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import PACKAGE_FOLDER

MAIN = Path(__file__).parents[1] / "conformance_test_main.py"
PRODUCER = """
class Wrong(bytearray):
    __array_interface__ = "not a dict"

class Producer:
    name = "wrong"
    def produce(self, plan):
        return Wrong(plan.content())
"""


@pytest.mark.parametrize(("target", "code"), [("array", 0), ("wrong:Producer", 1)])
def test_exit_code_and_reports(tmp_path, target, code):
    (tmp_path / "wrong.py").write_text(PRODUCER)
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([PACKAGE_FOLDER, str(tmp_path), *sys.path]),
        "XML_OUTPUT_FILE": str(tmp_path / "test.xml"),
        "TEST_UNDECLARED_OUTPUTS_DIR": str(tmp_path / "outputs"),
    }
    done = subprocess.run(
        [sys.executable, str(MAIN), target, "--profile", "smoke", "--rules", "AI-01,PB-01"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == code, done.stdout + done.stderr
    root = ElementTree.parse(tmp_path / "test.xml").getroot()
    assert root.get("failures") == str(code)
    assert "AI-01" in (tmp_path / "outputs" / "conformance.html").read_text(encoding="utf-8")
