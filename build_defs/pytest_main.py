"""Runs pytest on the files of a gridbuf_py_test, with a private cache folder and a JUnit report for Bazel."""

import os
import sys

import pytest
from hypothesis import settings


def choose_hypothesis_profile() -> None:
    """The same examples every time, for Bazel caches results; GRIDBUF_HYPOTHESIS=random explores others."""
    exploring = os.environ.get("GRIDBUF_HYPOTHESIS") == "random"
    settings.register_profile("gridbuf", derandomize=not exploring, deadline=None)
    settings.load_profile("gridbuf")


def main() -> int:
    arguments = [
        "-p",
        "no:cacheprovider",
        "-q",
        "--color=yes",
        "-rsxX",
        "--strict-markers",
        "--import-mode=importlib",
    ]
    arguments += ["-o", "junit_family=xunit2", "-o", "addopts="]
    report = os.environ.get("XML_OUTPUT_FILE")
    if report:
        arguments.append(f"--junitxml={report}")
    # Hypothesis keeps its example database here instead of in the read-only source tree.
    os.environ.setdefault(
        "HYPOTHESIS_STORAGE_DIRECTORY",
        os.path.join(os.environ.get("TEST_TMPDIR", "."), "hypothesis"),
    )
    choose_hypothesis_profile()
    return pytest.main(arguments + sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
