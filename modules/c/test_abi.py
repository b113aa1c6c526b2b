"""The ABI of libgridbuf against the one on record, by abidiff.

The types are those of a library that gcc makes of the header: each function of libgridbuf has its
header's type, or clang refuses it. The functions are those that libgridbuf itself exports.

To put an addition on record: `python modules/c/test_abi.py modules/c/gridbuf.h modules/c/libgridbuf.abi`.
What exists changes only with another GRIDBUF_ABI.
"""

import pathlib
import platform
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
RECORD = HERE / "libgridbuf.abi"
HEADER = (HERE / "gridbuf.h").read_text()

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the record is of x86-64")


def declarations(header: str) -> list[str]:
    bare = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.findall(r"^(\w[\w ]*[ *]+gridbuf_\w+\([^;]*\));", bare, flags=re.MULTILINE)
    return [text for text in found if not text.startswith("typedef")]


def described(header: str, folder: pathlib.Path) -> pathlib.Path:
    """The description of a library with the functions of a header."""
    (folder / "gridbuf.h").write_text(header)
    bodies = "".join(f"{text} {{ return 0; }}\n" for text in declarations(header))
    (folder / "bodies.c").write_text(f'#include "gridbuf.h"\n{bodies}')
    flags = ["-g", "-w", "-shared", "-fPIC", "-Wl,-soname,libgridbuf.so.0"]
    for command in (
        ["gcc", *flags, "bodies.c", "-o", "library.so"],
        [
            *("abidw", "--no-corpus-path", "--no-show-locs", "--no-comp-dir-path"),
            *("library.so", "--out-file", "library.abi"),
        ],
    ):
        subprocess.run(command, cwd=folder, check=True)
    return folder / "library.abi"


def differences(header: str, folder: pathlib.Path) -> str:
    done = subprocess.run(
        ["abidiff", RECORD, described(header, folder)], check=False, capture_output=True, text=True
    )
    assert (done.returncode & 3) == 0, done.stderr  # 1 and 2 are errors of abidiff itself
    return done.stdout if done.returncode else ""


def test_the_abi_is_the_one_on_record(tmp_path: pathlib.Path) -> None:
    found = differences(HEADER, tmp_path)
    assert not found, f"{found}\n{__doc__}"


def test_the_library_exports_the_functions_on_record() -> None:
    printed = subprocess.run(
        ["nm", "-D", "--defined-only", HERE / "libgridbuf.so.0"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    exported = {line.split()[-1] for line in printed.splitlines()} - {"gridbuf_private_object"}
    on_record = set(re.findall(r"elf-symbol name='(\w+)'", RECORD.read_text()))
    assert exported == on_record
    assert len(on_record) == len(declarations(HEADER))


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("int32_t gridbuf_thread_count(void);", "", "1 Removed"),
        ("gridbuf_set_thread_count(int32_t count)", "gridbuf_set_thread_count(int64_t count)", "type size changed"),
        ("int32_t memory;      /* of an array", "int64_t memory;      /* of an array", "gridbuf_options"),
        ("#define GRIDBUF_MAX_NDIM 64", "#define GRIDBUF_MAX_NDIM 32", "gridbuf_info"),
    ],
)  # fmt: skip
def test_a_change_is_found(tmp_path: pathlib.Path, old: str, new: str, reported: str) -> None:
    assert HEADER.count(old) == 1
    assert reported in differences(HEADER.replace(old, new), tmp_path)


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
@pytest.mark.parametrize("language", [["c", "-std=c11"], ["c++", "-std=c++17"]])
def test_structs_have_no_padding_that_other_languages_miss(
    processor: str, language: list[str], tmp_path: pathlib.Path
) -> None:
    sizes = {"options": 120, "info": 2944, "item": 32, "memory_info": 80}
    (tmp_path / "sizes.h").write_text(
        '#include "gridbuf.h"\n'
        + "".join(
            f"char {n}[sizeof(gridbuf_{n}) == {size} ? 1 : -1];\n" for n, size in sizes.items()
        )
    )
    command = [
        *("clang-19", f"--target={processor}-linux-gnu", "-ffreestanding", "-fsyntax-only"),
        *("-Wpadded", "-Werror", f"-I{HERE}", "-x", *language, tmp_path / "sizes.h"),
    ]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    import tempfile

    header_path, record_path = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as made:
        record_path.write_text(described(header_path.read_text(), pathlib.Path(made)).read_text())
