"""docs/spec.md is true in one respect that a program can check: every item names a test, and that test exists.

A reference reads `//package:target Suite.Name` (GoogleTest) or `//package:target file.py::name` (pytest).
"""

import pathlib
import re

import pytest

# The document is read where it really is, in the source tree, and so are the tests it names: Bazel would otherwise need
# every test file as data of this one. The target is therefore `local` and never cached.
SPEC = (pathlib.Path(__file__).parent / "spec.md").resolve()
ROOT = SPEC.parents[1]
REFERENCE = re.compile(r"`//([\w/]*):(\w+) ([^`\s]+)`")
# A parameterised suite is named Instantiation/Suite.Test.
GTEST = r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*{suite}\s*,\s*{test}\s*\)"
ITEM = re.compile(r"^- \*\*(\d+\.\d+)\*\* (.*?)(?=^- \*\*|^#|\Z)", re.MULTILINE | re.DOTALL)


def items() -> dict[str, str]:
    return dict(ITEM.findall(SPEC.read_text()))


def text_of(package: str) -> str:
    return "".join(p.read_text() for p in sorted((ROOT / package).rglob("*_test.cc")))


def is_target(package: str, target: str) -> bool:
    build = (ROOT / package / "BUILD.bazel").read_text()
    # gridbuf_py_test(thorough = True) makes this second target.
    target = target.replace("_thorough_test", "_test")
    if re.search(rf'"{target}"', build):
        return True
    # Some BUILD files make one target a file: test_plan.py is plan_test.
    file = f"test_{target.removesuffix('_test')}.py"
    return "glob(" in build and any((ROOT / package / f).exists() for f in (file, f"tests/{file}"))


def test_there_are_items_and_their_numbers_are_unique():
    numbers = [number for number, _ in ITEM.findall(SPEC.read_text())]
    assert len(numbers) > 50
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("number", items())
def test_item_names_a_test_that_exists(number):
    references = REFERENCE.findall(items()[number])
    assert references, f"item {number} names no test"
    for package, target, name in references:
        assert is_target(package, target), f"item {number}: //{package}:{target} is not a target"
        if "::" in name:
            file, _, function = name.partition("::")
            paths = list((ROOT / package).rglob(pathlib.Path(file).name))
            assert paths, f"item {number}: no file {file} below {package}"
            # Folders below it that are packages may have a file of that name, too.
            defined = rf"def {function.split('[')[0]}\b"
            assert any(re.search(defined, path.read_text()) for path in paths), (
                f"item {number}: no {name}"
            )
        else:
            suite, _, test = name.rpartition(".")
            pattern = GTEST.format(suite=suite.split("/")[-1], test=test)
            assert re.search(pattern, text_of(package)), (
                f"item {number}: no test {name} below {package}"
            )
