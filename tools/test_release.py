"""`tools/release VERSION` in a small repository, the source distribution in two folders, and the citation."""

from __future__ import annotations

import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
VERSION_FILES = (
    "modules/python/gridbuf/_version.py",
    "conformance/gridbuf_conformance/version.py",
)
MODULE_FILES = ("MODULE.bazel", "examples/array_consumer/MODULE.bazel")
COPIED = (
    *("tools/release", "tools/new_version.py", "tools/interpreters.py", "tools/gpu_check"),
    *("tools/pep517/gridbuf_build.py", "build_defs/project_metadata.py"),
    *("pyproject.toml", "README.md", "LICENSE", "CITATION.cff", *VERSION_FILES),
    *MODULE_FILES,
)
CHANGELOG = (
    "# Changelog\n\n## Unreleased\n- A new function.\n\n## 0.0.1 (2020-02-02)\n- The first.\n"
)
IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "a user"), ("EMAIL", "user@example.org"))
}
ENVIRON = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull}


def run(
    *command: object, cwd: pathlib.Path, code: int = 0, **environ: str
) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env={**ENVIRON, **environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def repository(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "repository"
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    (folder / ".gitignore").write_text("__pycache__/\n")
    for command in ("init --quiet", "add -A", "commit --quiet -m start"):
        run("git", *command.split(), cwd=folder)
    return folder


def release(repository: pathlib.Path, *arguments: str, code: int = 0) -> str:
    done = run(sys.executable, "tools/release", *arguments, cwd=repository, code=code)
    return done.stdout + done.stderr


def git(repository: pathlib.Path, *arguments: str) -> str:
    return run("git", *arguments, cwd=repository).stdout.strip()


def citation(folder: pathlib.Path) -> dict[str, str]:
    """The keys of CITATION.cff, which is valid."""
    command = ("-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format")
    path = folder / "CITATION.cff"
    run(sys.executable, *command, path, cwd=folder, PYTHONPATH=os.pathsep.join(sys.path))
    return dict(re.findall(r'^([\w-]+): "?([^"\n]+)', path.read_text(), re.MULTILINE))


def versions(folder: pathlib.Path) -> set[str]:
    texts = [(folder / name).read_text() for name in (*VERSION_FILES, *MODULE_FILES)]
    pattern = r'(?:__version__ = |name = "gridbuf",\s+version = )"(.+)"'
    return {re.search(pattern, text)[1] for text in texts}


def test_the_citation_is_valid_and_that_of_this_version():
    assert {citation(ROOT)["version"]} == versions(ROOT)
    assert f'license = "{citation(ROOT)["license"]}"' in (ROOT / "pyproject.toml").read_text()


def test_a_version_is_written_committed_and_tagged(repository):
    said = release(repository, "9.8.7")
    assert "tag v9.8.7" in said
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "log", "--format=%s").splitlines() == ["release: 9.8.7", "start"]
    assert git(repository, "cat-file", "-t", "v9.8.7") == "tag"
    assert git(repository, "rev-parse", "v9.8.7^{}") == git(repository, "rev-parse", "HEAD")
    changed = git(repository, "diff", "--name-only", "HEAD~1").split()
    assert sorted(changed) == sorted(
        [*VERSION_FILES, *MODULE_FILES, "CHANGELOG.md", "CITATION.cff"]
    )
    date = datetime.datetime.now(datetime.UTC).date()
    assert (repository / "CHANGELOG.md").read_text() == CHANGELOG.replace(
        "Unreleased", f"9.8.7 ({date})"
    )
    assert versions(repository) == {"9.8.7"}
    cited = citation(repository)
    assert (cited["version"], cited["date-released"]) == ("9.8.7", str(date))


def test_a_second_version_replaces_the_first(repository):
    release(repository, "9.8.7rc1")
    path = repository / "CHANGELOG.md"
    path.write_text(
        path.read_text().replace("# Changelog\n", "# Changelog\n\n## Unreleased\n- A fix.\n")
    )
    git(repository, "commit", "-qam", "a fix")
    release(repository, "9.8.7")
    assert versions(repository) == {"9.8.7"}
    assert (repository / "CITATION.cff").read_text().count("date-released") == 1
    headings = re.findall("^## (.+) [(]", path.read_text(), re.MULTILINE)
    assert headings == ["9.8.7", "9.8.7rc1", "0.0.1"]


def test_a_dry_run_shows_the_changes_and_makes_none(repository):
    said = release(repository, "9.8.7", "--dry-run")
    assert '+__version__ = "9.8.7"' in said and "+## 9.8.7 (" in said and "v9.8.7" in said
    assert git(repository, "status", "--porcelain") == git(repository, "tag") == ""
    assert git(repository, "log", "--format=%s") == "start"


@pytest.mark.parametrize(
    ("version", "before", "reason"),
    [
        ("9.8", "true", "not a version"),
        ("9.8.7", "echo >> LICENSE", "the working tree has changes"),
        ("9.8.7", "touch new", "the working tree has changes"),
        ("9.8.7", "git tag v9.8.7", "the tag v9.8.7 exists"),
        ("9.8.7rc1", "git tag v9.8.7", "9.8.7rc1 is older than the released 9.8.7"),
        ("9.8.7", "git tag v10.0.0", "9.8.7 is older than the released 10.0.0"),
        ("9.8.7", "sed -i /function/d CHANGELOG.md; git commit -qam x", "no changes below"),
        ("9.8.7", "sed -i /Unreleased/d CHANGELOG.md; git commit -qam x", "no changes below"),
        ("9.8.7", "sed -i /^version/d CITATION.cff; git commit -qam x", "0 lines that begin with"),
        ("9.8.7", "echo exit 1 > .git/hooks/pre-commit; chmod +x .git/hooks/*", "git commit failed"),
    ],
)  # fmt: skip
def test_a_refused_version_changes_nothing(repository, version, before, reason):
    run("sh", "-c", before, cwd=repository)
    commands = (("status", "--porcelain"), ("log",), ("tag",), ("diff",))
    was = [git(repository, *command) for command in commands]
    assert reason in release(repository, version, code=1)
    assert [git(repository, *command) for command in commands] == was


def sdist(folder: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    code = f"import gridbuf_build; print(gridbuf_build.build_sdist({str(out)!r}))"
    search = os.pathsep.join([str(folder / "tools/pep517"), *sys.path])
    out.mkdir()
    name = run(sys.executable, "-c", code, cwd=folder, PYTHONPATH=search).stdout.strip()
    return out / name


def test_the_source_distribution_is_the_same_in_two_folders(repository, tmp_path):
    other = tmp_path / "another/folder"
    run("sh", "-c", f"umask 077; git clone -q . {other}", cwd=repository)
    (repository / "README.md").touch()
    (repository / "not-tracked").touch()
    first, second = sdist(repository, tmp_path / "1"), sdist(other, tmp_path / "2")
    (version,) = versions(ROOT)
    assert first.name == second.name == f"gridbuf-{version}.tar.gz"
    assert first.read_bytes() == second.read_bytes()
    epoch = int(git(repository, "log", "-1", "--format=%ct"))
    with tarfile.open(first) as archive:
        entries = {entry.name.partition("/")[2]: entry for entry in archive}
        about = archive.extractfile(entries["PKG-INFO"]).read().decode()
    assert set(entries) == {*COPIED, "CHANGELOG.md", ".gitignore", "PKG-INFO"}
    assert {(entry.uid, entry.gid, entry.uname, entry.mtime) for entry in entries.values()} == {
        (0, 0, "", epoch)
    }
    assert entries["tools/release"].mode == 0o755 and entries["README.md"].mode == 0o644
    assert entries["tools/gpu_check"].linkname == "gpu_check.py"
    assert f"\nVersion: {version}\n" in about and "\nLicense-File: LICENSE\n" in about
