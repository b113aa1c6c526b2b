"""Version specifiers against `packaging`, which pytest brings along: both must say the same of every pair."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from gridbuf_conformance.known.specifiers import Specifiers, Version
from hypothesis import given, settings
from hypothesis import strategies as st

_NUMBERS = st.integers(0, 3).map(str)
_RELEASES = st.lists(_NUMBERS, min_size=1, max_size=4).map(".".join)
_ENDS = st.tuples(
    st.sampled_from(["", "a1", "b2", "rc1", ".rc2", "-alpha.1"]),
    st.sampled_from(["", ".post1", "-2", ".post0"]),
    st.sampled_from(["", ".dev1", ".dev0"]),
).map("".join)
_PUBLIC = st.tuples(st.sampled_from(["", "", "", "1!"]), _RELEASES, _ENDS).map("".join)
_LOCAL = st.sampled_from(["", "", "+cpu", "+cu121.g1"])
VERSIONS = st.tuples(_PUBLIC, _LOCAL).map("".join)
_CLAUSES = st.one_of(
    st.tuples(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), _PUBLIC).map("".join),
    st.tuples(st.sampled_from(["==", "!="]), _RELEASES, st.just(".*")).map("".join),
    st.tuples(st.just("~="), _RELEASES.filter(lambda text: "." in text), _ENDS).map("".join),
)
SPECIFIERS = st.lists(_CLAUSES, max_size=3).map(",".join)


@settings(max_examples=800, deadline=None, derandomize=True)
@given(SPECIFIERS, VERSIONS)
def test_both_admit_the_same(specifiers, version):
    expected = SpecifierSet(specifiers).contains(version, prereleases=True)
    assert Specifiers.of(specifiers).admit(version) is expected


@pytest.mark.parametrize(
    "clause", ["2.0", "=2.0", "===2.0", ">=two", "~=2", ">=2.*", "==2.0rc1.*", "==2.0+cpu", ">= "]
)
def test_what_is_no_specifier_is_named(clause):
    with pytest.raises(ValueError, match="is not a version specifier; write clauses such as >=2.0"):
        Specifiers.of(f">=1,{clause}")


def test_a_version_of_another_kind_is_named():
    assert Specifiers.of("").admit("nightly")
    with pytest.raises(ValueError, match="'nightly' is not a version as in PEP 440"):
        Specifiers.of(">=1").admit("nightly")


def test_versions_keep_their_order():
    texts = "1.dev1 1a1.dev2 1a1 1b1 1rc1 1 1.post1.dev1 1.post1 1.0.1 1!0".split()
    keys = [Version.of(text).key for text in texts]
    assert keys == sorted(keys)
