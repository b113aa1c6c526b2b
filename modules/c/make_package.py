"""Writes the archive of libgridbuf for C, C++ and Fortran: include, lib with CMake's and pkg-config's files, and share.

usage: make_package.py OUT VERSION_FILE FILE…
"""

import gzip
import io
import pathlib
import re
import sys
import tarfile

FOLDERS = {
    ".h": "include",
    ".hpp": "include",
    ".0": "lib",
    ".f90": "share/gridbuf",
    ".c": "share/gridbuf",
    ".cmake": "lib/cmake/gridbuf",
    ".pc": "lib/pkgconfig",
}


def main() -> None:
    out, version_file, *files = map(pathlib.Path, sys.argv[1:])
    version = re.search(r'__version__ = "(.+)"', version_file.read_text())[1]
    root = f"gridbuf-{version}"
    with (
        gzip.GzipFile(out, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):

        def add(name: str, data: bytes = b"", link: str = "", mode: int = 0o644) -> None:
            info = tarfile.TarInfo(f"{root}/{name}")
            info.size, info.mode, info.mtime = len(data), mode, 315532800
            if link:
                info.type, info.linkname = tarfile.SYMTYPE, link
            archive.addfile(info, io.BytesIO(data))

        for path in sorted(files, key=lambda path: path.name):
            name, data = path.name.removesuffix(".in"), path.read_bytes()
            if path.suffix == ".in":
                data = data.replace(b"@VERSION@", version.encode())
            add(
                f"{FOLDERS[pathlib.Path(name).suffix]}/{name}",
                data,
                mode=0o755 if name.endswith(".0") else 0o644,
            )
        add("lib/libgridbuf.so", link="libgridbuf.so.0")


if __name__ == "__main__":
    main()
