"""Other workspaces depend on one gridbuf module each: the examples build, run and print the expected text.

The ordinary run judges the Python example. The C++ examples, which build Abseil and gridbuf again, are thorough.
"""

import os
import pathlib
import subprocess

import page
import pytest
from inner_bazel import BAZEL, READ_WORKSPACE

# The examples find gridbuf at ../.., so they run in their real folder, with a separate output base.
WORKSPACE = pathlib.Path(__file__).parents[2] / "examples/bazel_consumer/WORKSPACE"
EXAMPLES = WORKSPACE.resolve().parents[1]

# A program, and what it prints. 20 doubles in the contiguous dimension, padded to whole cache lines of 8: a row of 24, 192 bytes.
PRINTED = {
    "bazel_consumer:field_layout": ["strides (8, 192, 1920) bytes", "padded shape (24, 10, 80)"],
    "alloc_consumer:aligned_block": ["153600 bytes", "'host'", "at 0 modulo 64"],
    "field_consumer:laplacian": [
        "domain (10, 10, 5)",
        ": 4 at the first point, 4 at the last",
        "'u', all dimensions",
    ],
    "field_consumer:neighbours": page.console("docs/how-to/stencil-in-cpp.md")[1].splitlines(),
    "storage_consumer:halo_exchange": [
        "host dirty in 2 boxes",
        "read: 0, strides (128, 8) bytes",
        "domain: 0",
    ],
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A home folder, in which Bazel unpacks its tools once, with a disk cache that the examples share."""
    return tmp_path_factory.mktemp("shared")


def run_bazel(folder, tmp_path, shared, *arguments):
    """A command of Bazel in an example's folder, its server ended afterwards."""
    startup = [BAZEL, f"--output_base={tmp_path}/output_base", "--max_idle_secs=30"]
    command, *rest = arguments
    options = [
        *READ_WORKSPACE,
        "--symlink_prefix=/",
        "--noshow_progress",
        f"--disk_cache={shared}/disk_cache",
    ]
    environ = {**os.environ, "HOME": str(shared), "USER": "test"}
    result = subprocess.run(
        [*startup, command, *options, *rest],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    subprocess.run(
        [*startup, "shutdown"], cwd=folder, env=environ, capture_output=True, check=False
    )
    return result


@pytest.mark.thorough
@pytest.mark.parametrize("program", PRINTED)
def test_consumer_workspace_builds_and_prints(program, tmp_path, shared):
    example, target = program.split(":")
    result = run_bazel(EXAMPLES / example, tmp_path, shared, "run", f"//:{target}")
    assert result.returncode == 0, result.stderr
    for text in PRINTED[program]:
        assert text in result.stdout


@pytest.mark.thorough
def test_the_workspace_of_the_how_to_builds_and_prints(tmp_path, shared):
    """The folder is written from the page, so nothing that it needs is missing there. A warning in it does not fail the build."""
    how_to = "docs/how-to/depend-on-one-target.md"
    folder = tmp_path / "workspace"
    folder.mkdir()
    page.write_project(how_to, folder)
    with (folder / "exchange_field.cc").open("a", encoding="utf-8") as program:
        program.write("\nstatic int not_used() { return 0; }\n")
    (command,), printed = page.console(how_to)
    result = run_bazel(folder, tmp_path, shared, *command.split()[1:])
    assert result.returncode == 0, result.stderr
    assert result.stdout == printed


@pytest.mark.thorough
def test_cc_library_is_judged_by_the_suite_in_its_own_workspace(tmp_path, shared):
    result = run_bazel(
        EXAMPLES / "cc_suite_user", tmp_path, shared, "test", "//:row_test", "--test_output=all"
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "row conforms" in result.stdout
    (junit,) = tmp_path.glob("output_base/execroot/*/bazel-out/*/testlogs/row_test/test.xml")
    assert 'name="DL-09 ' in junit.read_text()


def test_python_library_is_judged_by_the_macro_in_its_own_workspace(tmp_path, shared):
    result = run_bazel(
        EXAMPLES / "conformance_user",
        tmp_path,
        shared,
        "test",
        "//...",
        "--test_output=all",
        "--test_arg=--profile=smoke",  # the last one counts
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ring conforms" in result.stdout
    assert "ring:values conforms" in result.stdout  # but for what known.toml has on record
    (junit,) = tmp_path.glob("output_base/execroot/*/bazel-out/*/testlogs/conformance/test.xml")
    assert 'testsuite name="ring"' in junit.read_text()
