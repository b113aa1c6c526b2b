"""Hatchling's hook: distributions of a checkout get the findings that the zoo next to it makes.

A wheel also gets its bill of materials (PEP 770). It has the wheel and no components: no code of
another project is in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FilesHook(BuildHookInterface):
    """Adds `findings.json`, which a source distribution has already, and the bill of materials."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self.made = tempfile.TemporaryDirectory()  # kept until the archive is written
        if self.target_name == "wheel":
            path = Path(self.made.name, f"{self.metadata.core.name}.cdx.json")
            path.write_text(json.dumps(self.bill_of_materials(), indent=2) + "\n")
            build_data["sbom_files"].append(str(path))
        published = Path(self.root).parent / "zoo/published.py"
        has_findings = Path(self.root, "gridbuf_conformance/findings.json").exists()
        if has_findings or not published.exists():
            return
        path = Path(self.made.name, "findings.json")
        search = os.pathsep.join([self.root, *sys.path])  # with what pip installs for the build
        environment = {**os.environ, "PYTHONPATH": search}
        subprocess.run([sys.executable, str(published), str(path)], env=environment, check=True)
        build_data["force_include"][str(path)] = "gridbuf_conformance/findings.json"

    def bill_of_materials(self) -> dict[str, Any]:
        project = self.metadata.core
        wheel = {
            "type": "library",
            "name": project.name,
            "version": self.metadata.version,
            "purl": f"pkg:pypi/{project.name}@{self.metadata.version}",
            "licenses": [{"license": {"id": project.license_expression}}],
        }
        return {"bomFormat": "CycloneDX", "specVersion": "1.6", "metadata": {"component": wheel}}
