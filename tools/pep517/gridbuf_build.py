"""A PEP 517 backend that lets Bazel build gridbuf's wheel, for the Python that runs pip: `pip wheel . -w dist`.

It installs nothing on the machine. Where a package of the tool chain is missing, bazelw names it and the command that installs
it. (bazelw makes a separate environment below `.gridbuf/`, from the lock file.)
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _bazel(*arguments: str) -> str:
    # pip's build environment must not leak into the one that bazelw makes.
    environ = {
        k: v
        for k, v in os.environ.items()
        if k not in ("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE")
    }
    environ.setdefault("GRIDBUF_PYTHON", sys.executable)
    environ.setdefault("GRIDBUF_INSTALL", "no")
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
    _bazel("build", "--config=opt", "--noshow_progress", "--ui_event_filters=-info", "//:wheel")
    output = pathlib.Path(_bazel("info", "--config=opt", "--ui_event_filters=-info", "bazel-bin"))
    (wheel,) = (output / "wheel").glob("*.whl")
    shutil.copyfile(wheel, pathlib.Path(wheel_directory) / wheel.name)
    return wheel.name
