"""Packs one package with an extension into a wheel: metadata from pyproject.toml, platform tag from auditwheel.

Called by python_wheel. The same inputs give the same bytes: entries are sorted and carry one fixed time and mode. That time is not
the commit's: a commit that changes no input then gives the same wheel, too.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

from project_metadata import read_project
from sbom import bill_of_materials
from wheel.wheelfile import WheelFile

# Zip has no time before 1980. A fixed time makes builds reproducible.
os.environ["SOURCE_DATE_EPOCH"] = "315532800"


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pyproject", type=pathlib.Path, required=True)
    parser.add_argument(
        "--files", type=pathlib.Path, required=True, help="lines: path, tab, workspace path"
    )
    parser.add_argument("--strip", required=True, help="the folder above the package")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--python-tag", required=True, help="e.g. cp311")
    parser.add_argument(
        "--extension-suffix", required=True, help="e.g. .cpython-311-x86_64-linux-gnu.so"
    )
    parser.add_argument(
        "--component", type=pathlib.Path, action="append", default=[], help="of write_component"
    )
    return parser.parse_args()


def package_entries(options: argparse.Namespace) -> dict[str, pathlib.Path]:
    """Path in the wheel → file."""
    entries = {}
    for line in options.files.read_text().splitlines():
        path, _, workspace_path = line.partition("\t")
        prefix = options.strip.rstrip("/") + "/"
        if not workspace_path.startswith(prefix):
            sys.exit(f"{workspace_path} is not below {prefix}; give python_wheel another `strip`")
        name = workspace_path[len(prefix) :]
        if name.endswith(".so"):
            name = name[: -len(".so")] + options.extension_suffix
        entries[name] = pathlib.Path(path)
    return entries


def write_wheel(options: argparse.Namespace, folder: pathlib.Path) -> pathlib.Path:
    # Sources are read where they are in the workspace, which is the working directory.
    project = read_project(options.pyproject, pathlib.Path())
    entries = package_entries(options)
    if project.scripts or project.gui_scripts or project.entrypoints:
        sys.exit(
            f"{options.pyproject} has entry points, which this program does not write; remove them"
        )
    abouts = [path for path in options.component if path.name == "component.json"]
    licences = {path.name: options.pyproject.parent / path for path in project.license_files}
    licences |= {
        f"{path.parent.name}/{path.name}": path for path in {*options.component} - {*abouts}
    }
    project.license_files = [pathlib.Path(name) for name in licences]
    # .cpython-311-x86_64-linux-gnu.so
    machine = options.extension_suffix.split("-")[2]
    tag = f"{options.python_tag}-{options.python_tag}-linux_{machine}"
    stem = f"{project.name.replace('-', '_')}-{project.version}"
    path = folder / f"{stem}-{tag}.whl"
    info = f"{stem}.dist-info"
    about = (
        f"Wheel-Version: 1.0\nGenerator: gridbuf build_defs\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
    with WheelFile(path, "w") as wheel:
        for name, source in sorted(entries.items()):
            wheel.writestr(name, source.read_bytes())
        for name, source in sorted(licences.items()):
            wheel.writestr(f"{info}/licenses/{name}", source.read_bytes())
        sbom = bill_of_materials(project, abouts)
        wheel.writestr(f"{info}/sboms/{project.name}.cdx.json", sbom)
        wheel.writestr(f"{info}/METADATA", bytes(project.as_rfc822()))
        wheel.writestr(f"{info}/WHEEL", about)
    return path


def add_platform_tag(path: pathlib.Path) -> None:
    """Renames the wheel to the oldest manylinux that its symbols allow, as auditwheel judges them."""
    shown = run("auditwheel", "show", str(path))
    # The sentence is wrapped to the width of a terminal.
    found = re.search(
        r"consistent\s+with\s+the\s+following\s+platform\s+tag:\s+\"(manylinux_\w+)\"", shown
    )
    if not found:
        sys.exit(f"auditwheel finds no manylinux tag for {path.name}:\n{shown}")
    run("wheel", "tags", "--remove", "--platform-tag", found[1], str(path))


def run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{module} {' '.join(arguments)} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def main() -> None:
    options = read_options()
    options.out.mkdir(parents=True, exist_ok=True)
    add_platform_tag(write_wheel(options, options.out))


if __name__ == "__main__":
    main()
