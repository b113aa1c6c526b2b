"""A PEP 517 backend that lets Bazel build gridbuf's wheel, for the Python that runs pip: `pip wheel . -w dist`.

`python -m build --sdist .` packs the files that Git tracks; the same commit gives the same bytes.

It installs nothing on the machine. Where a package of the tool chain is missing, bazelw names it and the command that installs
it. (bazelw makes a separate environment below `.gridbuf/`, from the lock file.)
"""

import gzip
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

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


def get_requires_for_build_sdist(config_settings=None) -> list[str]:
    """What writes PKG-INFO."""
    return ["packaging", "pyproject-metadata>=0.10"]


def build_sdist(sdist_directory, config_settings=None) -> str:
    """Packs the tracked files, as they are in the working tree; returns the archive's name."""
    sys.path.insert(0, str(ROOT / "build_defs"))
    from project_metadata import read_project

    project = read_project(ROOT / "pyproject.toml", ROOT)
    stem = f"{project.name}-{project.version}"
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))
    path = pathlib.Path(sdist_directory, f"{stem}.tar.gz")

    def entry_of(name: str, mode: str) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(f"{stem}/{name}")
        entry.mtime, entry.mode = epoch, 0o755 if mode == "100755" else 0o644
        if mode == "120000":
            entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(ROOT / name)
        return entry

    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        metadata = bytes(project.as_rfc822())
        entry = entry_of("PKG-INFO", "100644")
        entry.size = len(metadata)
        archive.addfile(entry, io.BytesIO(metadata))
        for line in _git("ls-files", "--stage", "-z").strip("\0").split("\0"):
            about, _, name = line.partition("\t")
            entry = entry_of(name, about.partition(" ")[0])
            if entry.issym():
                archive.addfile(entry)
                continue
            entry.size = (ROOT / name).stat().st_size
            with (ROOT / name).open("rb") as content:
                archive.addfile(entry, content)
    return path.name


def _git(*arguments: str) -> str:
    """Asks Git, which knows what is a source."""
    command = ["git", *arguments]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        raise SystemExit("a source distribution is made in a Git checkout of gridbuf")
    return result.stdout.strip()
