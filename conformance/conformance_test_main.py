"""What a `conformance_test` of defs.bzl runs: `check`, with its reports where Bazel looks for them.

It reads no pyproject.toml: a test has the attributes of its target, wherever its files are.
"""

import os
import sys

from gridbuf_conformance.cli import main


def reports() -> list[str]:
    """The JUnit report is the test's own; the page is among the test's other outputs."""
    paths = []
    if junit := os.environ.get("XML_OUTPUT_FILE"):
        paths.append(junit)
    if folder := os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR"):
        paths.append(os.path.join(folder, "conformance.html"))
    return [argument for path in paths for argument in ("--report", path)]


if __name__ == "__main__":
    sys.exit(main(["check", "--no-config", *sys.argv[1:], *reports()]))
