"""Every command that README.md, CONTRIBUTING.md and `tools/dev help` print is run as printed: here in a clean clone, or by .ci/run.

Here are those that need no build. `.ci/run --all --list` says what CI runs.
"""

import os
import pathlib
import re
import shutil
import subprocess
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
STARTS = (
    "./bazelw ",
    "tools/",
    ".ci/",
    "python ",
    "pip ",
    "gridbuf-conformance ",
    "GRIDBUF_PYTHON=",
)
# A printed command, and whether it leaves the files of the repository unchanged.
RUN_HERE = {
    "tools/dev": True,
    "tools/dev setup": True,
    "tools/dev fmt": True,
    "tools/attack --help": True,
    "tools/release --help": True,
    "python docs/images/make.py": True,
    "pip install ./conformance": True,
    "gridbuf-conformance survey": True,
}
CI = {".ci/run", ".ci/run --all"}


def printed() -> set[str]:
    """The commands of the two documents and of the help."""
    usage = subprocess.run(["tools/dev", "help"], cwd=ROOT, capture_output=True, text=True)
    found = set(re.findall(r"^  (tools/dev [\w-]+(?: [A-Z]+\b)?)", usage.stdout, re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text("utf-8")
        found |= set(re.findall(r"^\$ (.+?)(?:  +#.*)?$", text, re.MULTILINE))
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
        found |= {span for span in spans if span.startswith(STARTS) and is_command(span)}
    return found


def is_command(span: str) -> bool:
    return not (ROOT / span).exists() or os.access(ROOT / span, os.X_OK)


def words(command: str) -> set[str]:
    """Its words, without those that stand for the user's own: RELEASE, NAME, a path that only shows its form."""
    return {
        re.sub("^python3$", "python", word)
        for word in command.split()
        if not word.isupper() and "/path/to/" not in word
    }


def is_part(command: str, whole: str) -> bool:
    return words(command) <= words(whole)


def test_every_printed_command_is_run():
    listed = subprocess.run(
        [".ci/run", "--all", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    commands = printed()
    assert len(commands) > 30
    unknown = {
        command
        for command in commands - {*RUN_HERE, *CI}
        if not any(is_part(command, step) for step in listed)
    }
    assert not unknown, "run them in .ci/run, or add them to RUN_HERE"
    assert {*RUN_HERE, *CI} <= commands, "a command that no document prints"


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> pathlib.Path:
    """The files that git knows, committed, with the set-up of this checkout, and a virtual environment."""
    if not (ROOT / ".git").exists():
        pytest.skip(f"{ROOT} is not a Git checkout")
    folder = tmp_path_factory.mktemp("clone")
    git("clone", "--quiet", "--no-checkout", ROOT, folder, cwd=ROOT)
    for name in (
        git("ls-files", "-z", "-co", "--exclude-standard", cwd=ROOT).strip("\0").split("\0")
    ):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    (folder / ".gridbuf").mkdir()
    for entry in (
        ROOT / ".gridbuf"
    ).iterdir():  # the set-up writes the folder of the clone into files
        if entry.is_dir():
            (folder / ".gridbuf" / entry.name).symlink_to(entry)
        else:
            shutil.copy2(entry, folder / ".gridbuf" / entry.name)
    (folder / ".git/info/exclude").write_text("/.gridbuf\n/venv\n")
    git("add", "-A", cwd=folder)
    git(
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "commit",
        "--allow-empty",
        "-qm",
        "clone",
        cwd=folder,
    )
    venv.create(folder / "venv", with_pip=True)
    return folder


def git(*arguments: object, cwd: pathlib.Path) -> str:
    command = ["git", "-c", "safe.directory=*", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=True).stdout


def run(clone: pathlib.Path, command: str, keeps_files: bool) -> None:
    environ = {**os.environ, "PATH": f"{clone}/venv/bin:{os.environ['PATH']}"}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        command.replace("NAME", "sample"), shell=True, cwd=clone, env=environ,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    if keeps_files:
        assert not git("status", "--porcelain", cwd=clone), f"{command} changed files"
    git("reset", "-q", "--hard", cwd=clone)
    git("clean", "-qfd", cwd=clone)


# In one test, because a command uses what those before it installed.
def test_commands_run_as_printed(clone):
    for command, keeps_files in RUN_HERE.items():
        run(clone, command, keeps_files)
