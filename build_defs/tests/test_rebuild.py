"""The promises of cc_module when Bazel runs: undeclared imports fail, an edit rebuilds its importers and nothing else, and
compile flags agree everywhere.

Each test starts Bazel in a separate small workspace, made from this repository's build_defs.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from inner_bazel import BAZEL, READ_WORKSPACE

SOURCES = pathlib.Path(__file__).resolve().parents[2]

WORKSPACE = """
workspace(name = "gridbuf")
load("//build_defs:dependencies.bzl", "gridbuf_dependencies")
gridbuf_dependencies()
"""

BUILD = """
load("//build_defs:cc_module.bzl", "cc_module", "cc_module_binary")
cc_module(name = "low", module = "low", interface = "low.cppm", srcs = ["low.cc"])
cc_module(name = "high", module = "high", interface = "high.cppm", deps = [":low"])
cc_module(name = "aside", module = "aside", interface = "aside.cppm")
cc_module_binary(name = "program", srcs = ["program.cc"], deps = [":high", ":aside"])
cc_module(name = "sly", module = "sly", interface = "sly.cppm", deps = [":high"], tags = ["manual"])
"""

FILES = {
    "WORKSPACE": WORKSPACE,
    "BUILD.bazel": BUILD,
    "low.cppm": "export module low;\nexport int low();\n",
    "low.cc": "module low;\nint low() { return 1; }\n",
    "high.cppm": "export module high;\nimport low;\nexport inline int high() { return low() + 1; }\n",
    "aside.cppm": "export module aside;\nexport inline int aside() { return 3; }\n",
    "program.cc": "import high;\nimport aside;\nint main() { return high() + aside() == 5 ? 0 : 1; }\n",
    # `low` is in the closure of `high`, but sly does not declare it.
    "sly.cppm": "export module sly;\nimport high;\nimport low;\nexport inline int sly() { return low(); }\n",
}


class Workspace:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder / "workspace"
        self.output_base = folder / "output_base"
        self.folder.mkdir()
        for name, text in FILES.items():
            (self.folder / name).write_text(text)
        for part in ("build_defs", "third_party"):
            shutil.copytree(
                SOURCES / part, self.folder / part, ignore=shutil.ignore_patterns("tests")
            )

    def bazel(self, *arguments: str) -> subprocess.CompletedProcess:
        command, *rest = arguments
        return subprocess.run(
            [
                BAZEL,
                f"--output_base={self.output_base}",
                "--max_idle_secs=60",
                "--host_jvm_args=-Xmx512m",
            ]
            + [
                command,
                *READ_WORKSPACE,
                "--repo_env=CC=clang-19",
                f"--repo_env=GRIDBUF_ENVIRONMENT={sys.prefix}",
            ]
            + (
                ["--force_pic", "--subcommands", "--nosandbox_debug"]
                if command in ("build", "run")
                else []
            )
            + rest,
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.output_base.parent), "USER": "test"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def rebuilt(self, edited: str, text: str) -> set[str]:
        """The targets that compiled something after `edited` got `text`."""
        (self.folder / edited).write_text(text)
        result = self.bazel("build", "//:program")
        assert result.returncode == 0, result.stderr
        return set(re.findall(r"SUBCOMMAND: # //:(\w+) \[action 'Compiling ", result.stderr))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    made = Workspace(tmp_path_factory.mktemp("bazel"))
    first = made.bazel("build", "//:program")
    assert first.returncode == 0, first.stderr
    yield made
    made.bazel("shutdown")


def test_undeclared_import_fails_and_names_the_module(workspace):
    result = workspace.bazel("build", "//:sly")
    assert result.returncode != 0
    # Bazel 7 prints @//:sly.
    assert re.search(
        "imports low, which no direct dependency of @?//:sly defines; add the cc_module low to deps",
        result.stderr,
    )


def test_edited_interface_rebuilds_its_importers_and_nothing_else(workspace):
    edited = FILES["low.cppm"] + "export inline int lower() { return 0; }\n"
    rebuilt = workspace.rebuilt("low.cppm", edited)
    assert {"low", "high", "program_objects"} <= rebuilt
    assert "aside" not in rebuilt


def test_edited_interface_rebuilds_its_importers_after_a_restart_of_bazel(workspace):
    # What Bazel then knows of an action is what it wrote down: its inputs, less those that a .d file did not list.
    workspace.bazel("shutdown")
    edited = FILES["low.cppm"] + "export inline int lowest() { return 0; }\n"
    assert {"low", "high", "program_objects"} <= workspace.rebuilt("low.cppm", edited)


def test_edited_implementation_recompiles_no_importer(workspace):
    rebuilt = workspace.rebuilt(
        "low.cc", FILES["low.cc"] + "// Another comment.\nstatic_assert(true);\n"
    )
    assert "low" in rebuilt
    assert not {"high", "aside", "program_objects"} & rebuilt


def test_nothing_is_rebuilt_without_an_edit(workspace):
    assert workspace.rebuilt("low.cc", (workspace.folder / "low.cc").read_text()) == set()


# What changes the meaning of a .pcm: were these to differ between an interface and its importer, clang would refuse the
# .pcm or, worse, take it.
SEMANTIC = ("-std=", "-fsanitize", "-O", "-D", "-U", "-fno-exceptions", "-fno-rtti", "-fPIC")
COMPILING = {"CppModulePrecompile", "CppModuleCompile", "CppCompile"}


@pytest.mark.parametrize(
    "options", [[], ["--copt=-fsanitize=address"], ["-c", "opt", "--cxxopt=-DCHOICE=1"]]
)
def test_flags_agree_everywhere(workspace, options):
    result = workspace.bazel(
        "aquery",
        "//:low + //:high + //:program_objects",
        "--output=jsonproto",
        "--force_pic",
        *options,
    )
    assert result.returncode == 0, result.stderr
    actions = [a for a in json.loads(result.stdout)["actions"] if a["mnemonic"] in COMPILING]
    assert {a["mnemonic"] for a in actions} == COMPILING
    flags = {tuple(f for f in a["arguments"] if f.startswith(SEMANTIC)) for a in actions}
    assert len(flags) == 1, flags
    assert "-std=c++20" in flags.pop()
