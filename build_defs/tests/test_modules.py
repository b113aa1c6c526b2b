"""gridbuf as a Bazel module: MODULE.bazel agrees with the WORKSPACE, and a workspace with Bazel 7 depends on it.

Bazel's registry is a folder that the test makes of what the machine has: Debian's packages, and the Abseil that bazelw unpacked.
"""

import ast
import json
import os
import pathlib
import re
import subprocess

import page
import pytest
from inner_bazel import BAZEL

ROOT = page.ROOT
HOW_TO = "docs/how-to/depend-on-one-target.md"
DEBIAN = pathlib.Path("/usr/share/bazel")
SOURCES = {
    "abseil-cpp": pathlib.Path(os.environ.get("GRIDBUF_STATE", ROOT / ".gridbuf"))
    / "debian/abseil",
    "bazel_skylib": DEBIAN / "tools/skylib",
    "googletest": pathlib.Path("/usr/src/googletest"),
    "platforms": DEBIAN / "tools/platforms",
    "rules_cc": DEBIAN / "rules/cc",
    "rules_license": DEBIAN / "rules/license",
}


def calls(path: pathlib.Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def test_the_module_has_the_repositories_of_the_workspace() -> None:
    (used,) = [call for call in calls(ROOT / "MODULE.bazel") if call.func.id == "use_repo"]
    text = (
        (ROOT / "build_defs/dependencies.bzl").read_text().partition("def system_repositories")[2]
    )
    declared = re.findall(r'^        \("(\w+)", _?\w+,', text, flags=re.MULTILINE)
    assert [argument.value for argument in used.args[1:]] == sorted(declared)
    assert "gridbuf_cuda" in declared


def make_registry(folder: pathlib.Path) -> None:
    """Every module that some module names, in each named version: of the machine, or an empty one."""
    (folder / "bazel_registry.json").write_text("{}")
    texts = [path.read_text() for path in DEBIAN.glob("*/*/MODULE.bazel")]
    texts += [
        path.read_text() for path in (ROOT / "MODULE.bazel", DEBIAN / "embedded_tools/MODULE.bazel")
    ]
    while texts:
        for call in re.findall(r"^bazel_dep\((.*?)\)", texts.pop(), flags=re.DOTALL | re.MULTILINE):
            given = dict(re.findall(r'(\w+)\s*=\s*"(.*?)"', call))
            place = folder / "modules" / given["name"] / given.get("version", "0")
            if "dev_dependency" in call or place.exists():
                continue
            source = SOURCES.get(given["name"], folder / "empty" / given["name"])
            header = f'module(name = "{given["name"]}", version = "{place.name}")\n'
            text = header
            if given["name"] in SOURCES and (source / "MODULE.bazel").exists():
                text = re.sub(
                    r"^module\(.*?^\)\n",
                    header,
                    (source / "MODULE.bazel").read_text(),
                    flags=re.DOTALL | re.MULTILINE,
                )
            place.mkdir(parents=True)
            (place / "MODULE.bazel").write_text(text)
            if not source.exists():
                source.mkdir(parents=True)
                (source / "MODULE.bazel").write_text(header)
            (place / "source.json").write_text(
                json.dumps({"type": "local_path", "path": str(source)})
            )
            texts.append(text)


@pytest.mark.thorough
@pytest.mark.skipif(
    BAZEL != "bazel", reason="NOT run: Bazel modules need Bazel 7, of Debian unstable"
)
def test_a_workspace_depends_on_the_module(tmp_path: pathlib.Path) -> None:
    for name in ("registry", "project"):
        (tmp_path / name).mkdir()
    make_registry(tmp_path / "registry")
    page.write_project(HOW_TO, tmp_path / "project")
    (tmp_path / "project/WORKSPACE").unlink()
    (command,), printed = page.console(HOW_TO)
    options = [
        *("--noenable_workspace", f"--registry=file://{tmp_path}/registry", "--lockfile_mode=off"),
        *("--noshow_progress", "--symlink_prefix=/"),
    ]
    startup = [BAZEL, f"--output_base={tmp_path}/output_base", "--max_idle_secs=30"]
    verb, *rest = command.split()[1:]
    done = subprocess.run(
        [*startup, verb, *options, *rest],
        cwd=tmp_path / "project",
        env={**os.environ, "HOME": str(tmp_path), "USER": "test"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
