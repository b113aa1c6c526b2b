"""Which versions a known failure speaks of: specifiers such as `>=2.0,!=2.1.*,<3`, as in PEP 440.

Written here rather than taken from `packaging`: that would be one more dependency of a suite that must
install anywhere, only to decide whether a version is in a range. The tests hold both side by side.
Left out are `===` and local parts in a specifier; a version's own local part ("2.13.0+cpu") says nothing
about its range. Pre-releases are in a range if their number is: a failure of 2.0rc1 is one of `>=2.0rc1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

__all__ = ["Specifiers", "Version"]

_VERSION = re.compile(
    r"""\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>\d*))?
    (?:-(?P<post_dash>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?
    (?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?\s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_CLAUSE = re.compile(
    r"\s*(?P<operator>~=|==|!=|<=|>=|<|>)\s*(?P<version>[^\s*+]+?)(?P<any>\.\*)?\s*"
)
_PRE_RANKS = {"a": 0, "alpha": 0, "b": 1, "beta": 1}
_RC_RANK = 2


@dataclass(frozen=True)
class Version:
    """A version that PEP 440 can order. `pre` is (rank of a, b, rc; number); None where there is no such part."""

    epoch: int
    release: tuple[int, ...]
    pre: tuple[int, int] | None
    post: int | None
    dev: int | None

    @classmethod
    def of(cls, text: str) -> Version:
        """The version in `text`; raises ValueError for other text."""
        found = _VERSION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a version as in PEP 440, such as 2.1.0 or 2.1rc1")
        pre = found["pre"]
        post_number = found["post_dash"] or found["post_n"] or 0
        return cls(
            int(found["epoch"] or 0),
            tuple(int(part) for part in found["release"].split(".")),
            (_PRE_RANKS.get(pre.lower(), _RC_RANK), int(found["pre_n"] or 0)) if pre else None,
            int(post_number) if found["post"] or found["post_dash"] else None,
            int(found["dev_n"] or 0) if found["dev"] else None,
        )

    @property
    def base(self) -> tuple[int, tuple[int, ...]]:
        """Epoch and release, without trailing zeros: 2.0 and 2 are one."""
        release = self.release
        while release and release[-1] == 0:
            release = release[:-1]
        return self.epoch, release

    @property
    def is_prerelease(self) -> bool:
        return self.pre is not None or self.dev is not None

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What versions are ordered by: 1.0.dev1 < 1.0a1 < 1.0 < 1.0.post1."""
        only_dev = self.pre is None and self.post is None and self.dev is not None
        pre = self.pre if self.pre is not None else (-inf, 0) if only_dev else (inf, 0)
        post = -1 if self.post is None else self.post
        return (*self.base, pre, post, inf if self.dev is None else self.dev)

    def starts_with(self, prefix: Version, count: int) -> bool:
        """Whether the first `count` numbers of the release, zeros beyond its end, are those of `prefix`."""
        mine, its = ((v.release + (0,) * count)[:count] for v in (self, prefix))
        return self.epoch == prefix.epoch and mine == its


Test = Callable[[Version], bool]


@dataclass(frozen=True)
class Specifiers:
    """A comma-separated list of clauses, all of which must hold; an empty text admits every version."""

    text: str
    tests: tuple[Test, ...]

    @classmethod
    def of(cls, text: str) -> Specifiers:
        """Parses the text; raises ValueError naming the clause that is none."""
        clauses = [clause for clause in text.split(",") if clause.strip()]
        return cls(text, tuple(map(_test_of, clauses)))

    def admit(self, version: str) -> bool:
        """Whether a version is meant; ValueError if there are clauses and `version` is none of PEP 440's."""
        if not self.tests:
            return True
        parsed = Version.of(version)
        return all(test(parsed) for test in self.tests)


def _test_of(clause: str) -> Test:
    found = _CLAUSE.fullmatch(clause)
    try:
        if found is None:
            raise ValueError
        version = Version.of(found["version"])
        return _test(found["operator"], version, any_after=found["any"] is not None)
    except ValueError:
        hint = "write clauses such as >=2.0, ==2.1.* or ~=2.1.3, with commas between"
        raise ValueError(f"{clause.strip()!r} is not a version specifier; {hint}") from None


def _test(operator: str, bound: Version, *, any_after: bool) -> Test:
    if any_after:
        is_plain = bound.pre is None and bound.post is None and bound.dev is None
        if operator not in ("==", "!=") or not is_plain:
            raise ValueError
        is_equal = operator == "=="
        return lambda v: v.starts_with(bound, len(bound.release)) is is_equal
    if operator == "~=" and len(bound.release) < 2:
        raise ValueError
    tests: dict[str, Test] = {
        "==": lambda v: v.key == bound.key,
        "!=": lambda v: v.key != bound.key,
        "<=": lambda v: v.key <= bound.key,
        ">=": lambda v: v.key >= bound.key,
        "<": lambda v: v.key < _first_of(bound).key,
        ">": lambda v: v.key > bound.key and not _is_post_of(v, bound),
        "~=": lambda v: v.key >= bound.key and v.starts_with(bound, len(bound.release) - 1),
    }
    return tests[operator]


def _first_of(bound: Version) -> Version:
    """Where `<bound` ends: `<2.0` does not mean 2.0rc1, nor any other pre-release of it."""
    return bound if bound.is_prerelease else replace(bound, dev=0)


def _is_post_of(version: Version, bound: Version) -> bool:
    """`>2.0` does not mean 2.0.post1."""
    if bound.dev is not None or bound.post is not None or version.post is None:
        return False
    return version.base == bound.base and version.pre == bound.pre
