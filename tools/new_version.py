"""What `tools/release VERSION` does: it writes the version, the changelog and the citation, makes a commit, and an annotated tag.

Nothing changes unless all checks pass, and nothing is pushed.
"""

from __future__ import annotations

import datetime
import difflib
import pathlib
import re
import subprocess

__all__ = ["NewVersion", "Refused", "check", "differences", "plan", "write"]

VERSION_FILES = (
    "modules/python/gridbuf/_version.py",
    "conformance/gridbuf_conformance/version.py",
)
"""Where gridbuf and the suite have their version. They are released together."""
MODULE_FILES = ("MODULE.bazel", "examples/array_consumer/MODULE.bazel")
"""Modules of Bazel, whose versions follow."""
UNRELEASED = "## Unreleased"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")


class Refused(Exception):
    """Why a version cannot be made, and what to do."""


class NewVersion:
    """A new version, and the repository that it is made in."""

    def __init__(self, root: pathlib.Path, version: str) -> None:
        self.root, self.version, self.tag = root, version, f"v{version}"

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True)
        if done.returncode:
            raise Refused(
                f"git {arguments[0]} failed: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout.strip()


def order(version: str) -> tuple[int | str, ...]:
    """A key that sorts versions: 1.0.0rc1 is before 1.0.0."""
    match = _VERSION.fullmatch(version)
    if not match:
        raise Refused(f"{version!r} is not a version; write it as 1.2.3, or 1.2.3rc1")
    major, minor, patch, stage, number = match.groups()
    return int(major), int(minor), int(patch), stage or "z", int(number or 0)


def check(release: NewVersion) -> None:
    """Raises Refused where this checkout is not ready for the version."""
    wanted = order(release.version)
    if changed := release.git("status", "--porcelain"):
        raise Refused(f"the working tree has changes; commit or remove them first:\n{changed}")
    for tag in release.git("tag", "--list", "v*").split():
        if tag == release.tag:
            raise Refused(f"the tag {tag} exists; a version is released once: take the next one")
        if _VERSION.fullmatch(tag[1:]) and order(tag[1:]) > wanted:
            raise Refused(f"{release.version} is older than the released {tag[1:]}")
    release.git("var", "GIT_COMMITTER_IDENT")


def plan(release: NewVersion, date: datetime.date) -> dict[str, str]:
    """The new text of each file that changes."""
    texts = {}
    for name in (*VERSION_FILES, *MODULE_FILES, "CHANGELOG.md", "CITATION.cff"):
        texts[name] = (release.root / name).read_text("utf-8")
    changes = re.search(rf"^{UNRELEASED}\n(.*?)(?=^## |\Z)", texts["CHANGELOG.md"], re.M | re.S)
    if not changes or not changes[1].strip():
        raise Refused(f"CHANGELOG.md has no changes below '{UNRELEASED}'; write what is new there")
    heading = f"## {release.version} ({date})"
    texts["CHANGELOG.md"] = texts["CHANGELOG.md"].replace(UNRELEASED, heading, 1)
    for name in VERSION_FILES:
        texts[name] = _set(name, texts[name], "__version__ = ", f'"{release.version}"')
    for name in MODULE_FILES:
        texts[name] = re.sub(
            r'(name = "gridbuf",\s+version = )"[^"]*"', rf'\g<1>"{release.version}"', texts[name]
        )
    citation = re.sub(r"^date-released: .*\n", "", texts["CITATION.cff"], flags=re.MULTILINE)
    dated = f'{release.version}\ndate-released: "{date}"'
    texts["CITATION.cff"] = _set("CITATION.cff", citation, "version: ", dated)
    return texts


def _set(name: str, text: str, key: str, value: str) -> str:
    text, found = re.subn(rf"^{key}.*$", f"{key}{value}", text, flags=re.MULTILINE)
    if found != 1:
        raise Refused(f"{name} has {found} lines that begin with '{key}'; it needs one")
    return text


def differences(release: NewVersion, texts: dict[str, str]) -> str:
    """What a dry run shows."""
    parts: list[str] = []
    for name, text in texts.items():
        old = (release.root / name).read_text("utf-8").splitlines(keepends=True)
        parts += difflib.unified_diff(old, text.splitlines(keepends=True), name, name, n=0)
    return "".join(parts)


def write(release: NewVersion, texts: dict[str, str]) -> None:
    """Writes the files, commits them and tags the commit; puts the files back if that fails."""
    try:
        for name, text in texts.items():
            (release.root / name).write_text(text, "utf-8")
        release.git("commit", "--quiet", "--message", f"release: {release.version}", "--", *texts)
    except BaseException:
        release.git("checkout", "--quiet", "HEAD", "--", *texts)
        raise
    release.git("tag", "--annotate", release.tag, "--message", f"gridbuf {release.version}")
