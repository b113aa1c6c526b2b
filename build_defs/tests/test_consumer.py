"""A workspace of its own depends on one gridbuf target: examples/bazel_consumer builds, runs and prints a plan."""

import os
import pathlib
import subprocess

# The example finds gridbuf at ../.., so it is run where it really lies, with an output base of the test's own.
EXAMPLE = (pathlib.Path(__file__).parents[2] / "examples/bazel_consumer/WORKSPACE").resolve().parent


def test_consumer_workspace_builds_and_prints_a_plan(tmp_path):
    startup = ["bazel-4", f"--output_base={tmp_path}/output_base", "--max_idle_secs=30"]
    command = ["run", "--symlink_prefix=/", "--noshow_progress", "//:field_layout"]
    environ = {**os.environ, "HOME": str(tmp_path), "USER": "test"}
    result = subprocess.run(
        startup + command,
        cwd=EXAMPLE,
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    subprocess.run(
        [*startup, "shutdown"], cwd=EXAMPLE, env=environ, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
    # 20 doubles in the contiguous dimension, padded to whole cache lines of 8: a row of 24, 192 bytes.
    assert "strides (8, 192, 1920) bytes" in result.stdout
    assert "padded shape (24, 10, 80)" in result.stdout
