"""The Python environment of a newcomer has the packages of the core lock and no others, so that no core test can use more."""

import importlib.metadata
import os
import pathlib
import re
import sys

import pytest

LOCK = pathlib.Path(__file__).parents[2] / "third_party/python/core.lock"
PIN = re.compile(r"^([\w.-]+)==(\S+?) *(?:;.*)?\\$", re.MULTILINE)


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_environment_is_the_core_lock():
    pinned: dict[str, set[str]] = {}  # A package can have a version for each version of Python.
    for name, version in PIN.findall(LOCK.read_text()):
        pinned.setdefault(normalised(name), set()).add(version)
    assert len(pinned) > 20
    if (pathlib.Path(sys.prefix) / "peers.ok").exists():
        pytest.skip("the optional peers are installed: this environment holds more")
    below = [entry for entry in sys.path if entry.startswith(sys.prefix + os.sep)]
    for found in importlib.metadata.distributions(path=below):
        name = normalised(found.metadata["Name"])
        # pip and setuptools come with every environment.
        assert name in pinned or name in ("pip", "setuptools"), f"{name} is not in {LOCK.name}"
        assert found.version in pinned.get(name, {found.version}), name
