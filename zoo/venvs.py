"""Virtual environments with one library each, and the suite's command run inside them.

The suite is not installed there: PYTHONPATH names the working tree. The packages that its command
needs (`TOOLS`) are installed at fixed versions, because the plans that Hypothesis draws are part of
the result.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from records import ROOT, Environment

SUITE = Path(os.environ.get("GRIDBUF_CONFORMANCE", ROOT / "conformance"))
"""The suite that judges: this tree, or another one that the variable names."""
TOOLS = (
    *("hypothesis==6.155.2", "jinja2==3.1.6", "packaging", "rich==14.1.0"),
    *("tomli==2.2.1", "tomlkit==0.13.3"),
)
"""The dependencies of the suite. `packaging` has no fixed version, because some libraries fix it.
"""
PIP = (sys.executable, "-m", "pip", "--python")
"""The pip of this Python, for another one, whose path comes next. Debian's Python has no pip."""
_STAMP = "zoo-requirements.txt"
_INSTALL_LIMIT_S = 1800
_RUN_LIMIT_S = 1800
SILENT = {"NO_COLOR": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}


_ADDRESS = re.compile(r"0x[0-9a-f]{6,}|\b\d{12,}\b")
_PATH = re.compile(r"(?:/[\w.+-]+){2,}/(?=[\w.+-]+)")


class CannotMake(Exception):
    """The environment cannot be made here; the text says why."""


def make(environment: Environment, folder: Path, tools: Sequence[str] = TOOLS) -> Path:
    """The environment's Python; installs the pinned packages, from wheels only, unless they are
    installed.

    If the environment is locked, these are its packages.

    Raises CannotMake without the interpreter, or if pip fails.
    """
    home = folder / environment.name
    python, stamp = home / "bin/python", home / _STAMP
    wanted = "\n".join((environment.python, *tools, *environment.requirements, environment.locked))
    if python.exists() and stamp.exists() and stamp.read_text("utf-8") == wanted:
        return python
    shutil.rmtree(home, ignore_errors=True)
    base = str(interpreter(environment.python))
    _run([base, "-m", "venv", "--without-pip", str(home)], environment.name)
    pip = [*PIP, str(python), "install", "--quiet", "--no-compile"]
    pip_sources = [f"--no-binary={name}" for name in environment.sources]
    requirements = [*tools, *environment.requirements]
    if environment.locked:
        packages = home / "packages.txt"
        packages.write_text(environment.locked, "utf-8")
        requirements = ["--no-deps", "--require-hashes", "-r", str(packages)]
    _run([*pip, "--only-binary=:all:", *pip_sources, *requirements], environment.name)
    if environment.extensions:
        _build_extensions(pip, environment.name)
    stamp.write_text(wanted, "utf-8")
    return python


def add_wheel(python: Path, package: str, wheel: Path | None) -> None:
    """Installs a package that is on no index; raises CannotMake without its file."""
    if wheel is None or not wheel.name.startswith(f"{package}-"):
        raise CannotMake(f"name the wheel of {package}: --wheel FILE")
    _run(
        [*PIP, str(python), "install", "--quiet", "--force-reinstall", "--no-deps", str(wheel)],
        package,
    )


def lock(environment: Environment, tools: Sequence[str] = TOOLS) -> str:
    """All packages with versions and hashes, a line each, as pip chooses them today. Raises
    CannotMake as `make`.

    Packages that are locked already keep their versions.
    """
    pip = [*PIP, str(interpreter(environment.python)), "install", "--quiet", "--dry-run"]
    options = ["--ignore-installed", "--only-binary=:all:", "--report", "-"]
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "constraints.txt")
        kept.write_text("".join(f"{line.split()[0]}\n" for line in environment.locked.splitlines()))
        command = [*pip, *options, "-c", str(kept), *tools, *environment.requirements]
        report = json.loads(_run(command, environment.name))
    lines = []
    for package in report["install"]:
        name, version = (package["metadata"][key] for key in ("name", "version"))
        sha256 = package["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name.lower()}=={version} --hash=sha256:{sha256}\n")
    return "".join(sorted(lines))


def discard(environment: Environment, folder: Path) -> None:
    """Removes the environment: some take gigabytes."""
    shutil.rmtree(folder / environment.name, ignore_errors=True)


def suite(python: Path, command: str, side: str, target: str, *arguments: str) -> dict[str, Any]:
    """The JSON report of one command (`check` or `replay`); empty if the target could not be
    loaded.
    """
    chosen = ("--consumer", target) if side == "consumer" else (target,)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        line = [str(python), "-m", "gridbuf_conformance", command, *chosen, *arguments]
        done = subprocess.run(
            [*line, "--report", str(report)],
            cwd=ROOT,  # to which targets that are files are relative
            env={**os.environ, **SILENT, "PYTHONPATH": str(SUITE)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_RUN_LIMIT_S,
        )
        if report.exists():
            return dict(json.loads(report.read_text("utf-8")))
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return {"error": lines[-1] if lines else f"exit code {done.returncode}"}


def without_paths(text: str) -> str:
    """A line without folders and addresses, which differ between two runs."""
    return _PATH.sub("…/", _ADDRESS.sub("…", text))


def _build_extensions(pip: Sequence[str], name: str) -> None:
    """Compiles the suite's extensions in a copy of their sources, which stay unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        sources = shutil.copytree(SUITE / "extensions", Path(folder, "extensions"))
        _run([*pip, "--no-deps", "--no-build-isolation", str(sources)], name)


def interpreter(version: str) -> Path:
    """CPython of a version ("3.13", "3.13.0"), from the path or from pyenv."""
    on_path = shutil.which(f"python{'.'.join(version.split('.')[:2])}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(pyenv.glob(f"{version}*/bin/python"), key=_version_of)
    candidates = [path for path in installed if _is(path, version)]
    if on_path and _is(Path(on_path), version):
        candidates.append(Path(on_path))
    if not candidates:
        raise CannotMake(f"CPython {version} is not here; install it, for example with pyenv")
    return candidates[0]


def _version_of(python: Path) -> list[int]:
    """Newest first."""
    return [-int(part) for part in python.parents[1].name.split(".") if part.isdigit()]


def _is(python: Path, version: str) -> bool:
    code = "import platform; print(platform.python_version())"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return f"{done.stdout.strip()}.".startswith(f"{version}.")


def _run(command: Sequence[str], name: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_LIMIT_S)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise CannotMake(f"{name}: {(lines or ['the command failed'])[-1]}")
    return done.stdout
