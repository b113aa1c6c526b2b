"""The metadata of a package, from its pyproject.toml and from the file that has the version."""

import pathlib
import re
import tomllib

from packaging.version import Version
from pyproject_metadata import StandardMetadata


def read_project(pyproject: pathlib.Path, sources: pathlib.Path) -> StandardMetadata:
    """Reads them.

    Args:
        pyproject: The pyproject.toml. The files that it names are next to it.
        sources: The folder that `version-file` of `[tool.gridbuf]` is relative to.
    """
    table = tomllib.loads(pyproject.read_text("utf-8"))
    project = StandardMetadata.from_pyproject(table, pyproject.parent)
    text = (sources / table["tool"]["gridbuf"]["version-file"]).read_text("utf-8")
    project.version = Version(re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1])
    return project
