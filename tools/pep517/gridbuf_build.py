"""A PEP 517 backend that lets Bazel build the wheels: `pip wheel . -w dist`, `pip wheel ./conformance -w dist`.

Which wheel is made follows from the folder that pip calls the backend in: its pyproject.toml names the Bazel target in
`[tool.gridbuf] wheel`. The wheel is for the Python that runs pip; bazelw sets everything else up.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _pyproject() -> dict:
    return tomllib.loads(pathlib.Path("pyproject.toml").read_text())


def _bazel(*arguments: str) -> str:
    # pip's build environment must not leak into the project's own: bazelw makes another one from the lock files.
    environ = {
        k: v
        for k, v in os.environ.items()
        if k not in ("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE")
    }
    environ.setdefault("GRIDBUF_PYTHON", sys.executable)
    result = subprocess.run(
        [str(ROOT / "bazelw"), *arguments],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if result.returncode:
        raise SystemExit(
            f"bazelw {' '.join(arguments)} failed with exit status {result.returncode}; see its messages above"
        )
    return result.stdout.strip()


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    """Nothing: the toolchain is bazelw's."""
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """Builds the wheel with Bazel and copies it to `wheel_directory`; returns its file name."""
    target = _pyproject()["tool"]["gridbuf"]["wheel"]
    _bazel("build", "--config=opt", "--noshow_progress", "--ui_event_filters=-info", target)
    output = pathlib.Path(_bazel("info", "--config=opt", "--ui_event_filters=-info", "bazel-bin"))
    package, _, name = target.removeprefix("//").partition(":")
    (wheel,) = (output / package / name).glob("*.whl")
    destination = pathlib.Path(wheel_directory) / wheel.name
    shutil.copyfile(wheel, destination)
    return wheel.name
