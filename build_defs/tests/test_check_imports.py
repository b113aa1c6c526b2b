"""What check_imports says of an import that no dependency defines. test_rebuild.py has the same under Bazel."""

import pathlib
import re
import subprocess
import sys

import check_imports
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = re.compile(r'cc_module\(\s*name = "(\w+)",[^)]*?\bmodule = "(gridbuf\.[\w.]+)"', re.DOTALL)


@pytest.mark.parametrize(
    "module, added",
    [
        ("gridbuf.call", "@gridbuf//modules/call"),
        ("gridbuf.alloc.host", "@gridbuf//modules/alloc/host"),
        ("mine", "the cc_module mine"),
    ],
)
def test_a_missing_import_is_named_with_what_to_add(tmp_path, module, added):
    source = tmp_path / "program.cc"
    source.write_text(f"import {module};\nint main() {{}}\n")
    command = [sys.executable, check_imports.__file__, f"--source={source}", "--label=//:program"]
    command += [f"--scan={tmp_path}/scan", f"--stamp={tmp_path}/stamp", "--", "/usr/bin/clang-19"]
    command += ["-std=c++20", "-x", "c++", "-c", str(source), "-o", f"{source}.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"imports {module}, " in done.stderr and f"; add {added} to deps" in done.stderr


def test_each_module_of_gridbuf_has_the_label_of_its_name():
    found = 0
    for path in (ROOT / "modules").rglob("BUILD.bazel"):
        for name, module in MODULE.findall(path.read_text()):
            folder = path.parent.relative_to(ROOT).as_posix()
            assert (
                path.parent.name == name and check_imports.label_of(module) == f"@gridbuf//{folder}"
            )
            found += 1
    assert found > 20
