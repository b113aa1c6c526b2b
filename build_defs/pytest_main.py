"""Runs pytest on the files of a gridbuf_py_test, with a private cache folder and a JUnit report for Bazel.

Two rules hold in every test. A module whose tests are all skipped passes and prints why; a target without tests fails. A
target that skips because a package is missing must declare `peers = True`, or continuous integration, which runs those
targets again with the optional peers, would never run it.
"""

import gc
import os
import re
import sys

import pytest
from hypothesis import settings

MISSING = re.compile(r"could not import '([\w.]+)'")
"""What `pytest.importorskip` gives as its reason."""


class Rules:
    """A pytest plugin: the marker `thorough`, and the verdict on a run in which tests were skipped."""

    def __init__(self, peers: bool) -> None:
        self.peers = peers
        self.reasons: list[str] = []
        self.undeclared: set[str] = set()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line(
            "markers",
            "thorough: a long variant; runs in the target NAME_thorough_test, which the README's command leaves out",
        )

    def pytest_collection_finish(self) -> None:
        """Excludes all objects that exist now from the many collections of the tests."""
        gc.collect()
        gc.freeze()

    def pytest_sessionfinish(self) -> None:
        gc.unfreeze()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if not report.skipped or not isinstance(report.longrepr, tuple):
            return
        reason = report.longrepr[2]
        self.reasons.append(reason)
        found = MISSING.search(reason)
        if found and not self.peers:
            self.undeclared.add(found[1])

    def exit_code(self, code: int) -> int:
        if self.undeclared:
            print(
                f"skipped because {', '.join(sorted(self.undeclared))} is not installed, but this target does not say that it "
                "uses optional packages; add `peers = True` to its gridbuf_py_test"
            )
            return pytest.ExitCode.TESTS_FAILED
        if code == pytest.ExitCode.NO_TESTS_COLLECTED and self.reasons:
            print("every test was skipped:", *sorted(set(self.reasons)), sep="\n  ")
            return pytest.ExitCode.OK
        return code


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
    rules = Rules(peers=os.environ.get("GRIDBUF_TEST_USES_PEERS") == "1")
    return rules.exit_code(pytest.main(arguments + sys.argv[1:], plugins=[rules]))


if __name__ == "__main__":
    sys.exit(main())
