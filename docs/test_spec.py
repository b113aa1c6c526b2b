"""docs/spec.md is true in one respect that a program can check: every item names a test, and that test exists."""

import re

import pytest

# The document is read where it really is, in the source tree, and so are the tests it names: Bazel would otherwise need
# every test file as data of this one. The target is therefore `local` and never cached.
from spec_tests import REFERENCE, ROOT, find_test

SPEC = ROOT / "docs/spec.md"
ITEM = re.compile(r"^- \*\*(\d+\.\d+)\*\* (.*?)(?=^- \*\*|^#|\Z)", re.MULTILINE | re.DOTALL)

ITEMS = ITEM.findall(SPEC.read_text())


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
    numbers = [number for number, _ in ITEMS]
    assert len(numbers) > 50
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("number, text", ITEMS, ids=[number for number, _ in ITEMS])
def test_item_names_a_test_that_exists(number, text):
    references = REFERENCE.findall(text)
    assert references, f"item {number} names no test"
    for package, target, name in references:
        assert is_target(package, target), f"item {number}: //{package}:{target} is not a target"
        assert find_test(package, name), f"item {number}: no test {name} below {package}"


def test_each_promise_of_reliability_names_its_rules():
    page = (ROOT / "docs/reliability.md").read_text()
    promises = re.findall(r"^\| .+ \| .+ \| ([^|]+) \|$", page, re.MULTILINE)
    promises = [rules for rules in promises if rules != "rules"]
    known = {number for number, _ in ITEMS}
    assert len(promises) > 15
    for rules in promises:
        assert not set(rules.split(", ")) - known, rules
