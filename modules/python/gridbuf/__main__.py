"""`python -m gridbuf`: where libgridbuf, its headers and the files of CMake and pkg-config are."""

from __future__ import annotations

import argparse
import pathlib
import sys

from ._version import __version__

ROOT = pathlib.Path(__file__).parent
FOLDERS = {
    "cmakedir": ("lib/cmake/gridbuf", "for CMake: -Dgridbuf_DIR=$(python -m gridbuf --cmakedir)"),
    "includedir": ("include", "gridbuf.h for C, gridbuf.hpp for C++17"),
    "libdir": ("lib", "libgridbuf.so.0: the library that this package uses"),
    "fortrandir": (
        "share/gridbuf",
        "gridbuf.f90 and gridbuf_fortran.c, which your compilers build",
    ),
    "pkgconfigdir": ("lib/pkgconfig", "for PKG_CONFIG_PATH"),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m gridbuf",
        description="Print folders of this package for programs in C, C++17 and Fortran. They share memory, "
        "devices and settings with Python. An option prints one folder; several print one on each line.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    for name, (folder, text) in FOLDERS.items():
        parser.add_argument(
            "--" + name, dest="folders", action="append_const", const=folder, help=text
        )
    folders = parser.parse_args(arguments).folders
    if not folders:
        parser.print_help()
        return 2
    for folder in folders:
        print(ROOT / folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
