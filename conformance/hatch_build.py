"""Hatchling's hook: a wheel or a source distribution of a checkout gets the findings, which the zoo makes from its scripts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FindingsHook(BuildHookInterface):
    """Adds `findings.json`. A source distribution has no zoo, but the file already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        published = Path(self.root, "zoo/published.py")
        if version == "editable" or not published.exists():
            return
        self.made = tempfile.TemporaryDirectory()  # kept until the archive is written
        path = Path(self.made.name, "findings.json")
        search = os.pathsep.join([self.root, *sys.path])  # with what pip installs for the build
        environment = {**os.environ, "PYTHONPATH": search}
        subprocess.run([sys.executable, str(published), str(path)], env=environment, check=True)
        build_data["force_include"][str(path)] = "gridbuf_conformance/findings.json"
