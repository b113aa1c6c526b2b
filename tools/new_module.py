"""Makes the folder of a new module: interface, source, test, README and BUILD file, ready to build."""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

FILES = {
    "{last}.cppm": """// {module}: its purpose, in one sentence.
//
// Then the key design choice and its reason, in ten to thirty lines: this block is the manual.
module;

export module {module};

export namespace gridbuf {{
}}  // namespace gridbuf
""",
    "{last}.cc": """module {module};

namespace gridbuf {{
}}  // namespace gridbuf
""",
    "{last}_test.cc": """#include <gtest/gtest.h>

import {module};

namespace gridbuf {{
namespace {{

TEST({camel}, DoesWhatItsFirstSentenceSays) {{ FAIL() << "write the first test"; }}

}}  // namespace
}}  // namespace gridbuf
""",
    "README.md": """# {module}

What it is. Its users. One example.

Depends on: nothing yet.
""",
    "BUILD.bazel": """load("//build_defs:cc_module.bzl", "cc_module", "cc_module_test")

cc_module(
    name = "{last}",
    srcs = ["{last}.cc"],
    interface = "{last}.cppm",
    module = "{module}",
    visibility = ["//visibility:public"],
)

cc_module_test(
    name = "{last}_test",
    size = "small",
    srcs = ["{last}_test.cc"],
    deps = [
        ":{last}",
        "@com_google_googletest//:gtest_main",
    ],
)
""",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "name", help="the folder below modules/, e.g. storage or interface/cuda_array_interface"
    )
    name = parser.parse_args().name.strip("/")
    if not re.fullmatch(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*", name):
        sys.exit(
            f"{name!r} is not a module folder: use lower-case names joined by '/', e.g. interface/dlpack"
        )
    folder = ROOT / "modules" / name
    if folder.exists():
        sys.exit(f"modules/{name} exists already; choose another name")
    last = name.rpartition("/")[2]
    words = {
        "last": last,
        "module": "gridbuf." + name.replace("/", "."),
        "camel": "".join(part.capitalize() for part in last.split("_")),
    }
    folder.mkdir(parents=True)
    for path, text in FILES.items():
        (folder / path.format(**words)).write_text(text.format(**words))
    print(f"modules/{name}: write the interface, then `tools/dev test //modules/{name}/...`")


if __name__ == "__main__":
    main()
