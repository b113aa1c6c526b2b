"""Programs in C, C++17 and Fortran, from the archive of libgridbuf, by gcc: as a user's project builds them."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).parent
ARCHIVE = HERE / "gridbuf.tar.gz"
EXAMPLE = ROOT / "examples/c_interface"
PROGRAMS = pathlib.Path(sys.prefix) / "bin"
ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])}

# A program that is not sanitized links a sanitized library; the test's environment preloads the runtime.
LINK_SANITIZED = "-Wl,--allow-shlib-undefined"

PRINTED = {
    "c": "sum of the Laplacian: 120.0\n",
    "cpp": "sum of the Laplacian: 120\nhalo[0] is (5, 5)",
    "fortran": """\
bounds  0  0  7  6
device is current: F
device is current: T
sum of the Laplacian: 120.0
wrapped -2 10  3 12 7.0
2 the pointer's type is float32, but must be float64
 85.0
""",
}


def run(*command: object, **options: object) -> str:
    done = subprocess.run(
        list(map(str, command)), check=False, capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def prefix(tmp_path: pathlib.Path) -> pathlib.Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "installed")
    (root,) = (tmp_path / "installed").iterdir()
    return root


def test_gcc_alone(prefix: pathlib.Path, tmp_path: pathlib.Path) -> None:
    flags = ["-std=c11", "-Wpedantic", "-g", "-Wall", "-Wextra", f"-I{prefix}/include"]
    run("gcc", *flags, EXAMPLE / "laplacian.c", *link(prefix), "-o", "c", cwd=tmp_path)
    assert run(tmp_path / "c") == PRINTED["c"]


def link(prefix: pathlib.Path) -> list[str]:
    return [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lgridbuf", LINK_SANITIZED]


@pytest.fixture(
    params=[
        pytest.param(("gcc", "gfortran", "-Wall", "-fopenmp"), id="gfortran"),
        pytest.param(
            ("clang-19", "flang-new-19"),
            id="flang",
            marks=pytest.mark.skipif(
                shutil.which("flang-new-19") is None, reason="Debian's flang-19 is not installed"
            ),
        ),
    ]
)
def build_fortran(request: pytest.FixtureRequest, prefix: pathlib.Path, tmp_path: pathlib.Path):
    """Builds a program of files in C and one in Fortran."""
    c, fortran, *flags = request.param

    def build(source: pathlib.Path, *more: pathlib.Path) -> pathlib.Path:
        shared = prefix / "share/gridbuf"
        c_files = [shared / "gridbuf_fortran.c", *more]
        for file in c_files:
            flags_of_c = ["-std=c11", "-Wall", "-Wextra", "-g", f"-I{prefix}/include"]
            run(c, *flags_of_c, "-c", file, cwd=tmp_path)
        objects = [f"{file.stem}.o" for file in c_files]
        run(
            *(fortran, "-std=f2018", *flags, "-g", shared / "gridbuf.f90", source, *objects),
            *(*link(prefix), "-o", "program"),
            cwd=tmp_path,
        )
        return tmp_path / "program"

    return build


def test_the_example_in_fortran(build_fortran) -> None:
    assert run(build_fortran(EXAMPLE / "laplacian.f90")) == PRINTED["fortran"]


def code_in_the_comment(file: pathlib.Path, mark: str) -> str:
    """The code in the first comment of a header: its lines with three spaces."""
    comment = file.read_text().partition("\n\n")[0].splitlines()
    lines = [line for line in comment if line.startswith(f"{mark}   ")]
    assert len(lines) > 4
    return "\n".join(line.removeprefix(mark) for line in lines)


EMULATED = {**os.environ, "GRIDBUF_DEVICE": "emulated"}


def test_the_code_in_the_comment_of_the_fortran_module(
    build_fortran, prefix: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    code = code_in_the_comment(prefix / "share/gridbuf/gridbuf.f90", "!")
    (bounds,) = re.findall(r"! t\((.*)\)", code)
    source = tmp_path / "comment.f90"
    source.write_text(
        "program comment\nuse, intrinsic :: iso_fortran_env, only: real64\nuse gridbuf\nimplicit none\n"
        f"{code}\nprint '(*(i0, :, \" \"))', lbound(t), ubound(t)\nend program\n"
    )
    lower, upper = zip(*(pair.split(":") for pair in bounds.split(", ")), strict=True)
    assert run(build_fortran(source), env=EMULATED).split() == [*lower, *upper]


@pytest.mark.parametrize(
    "header, mark, suffix, compiler",
    [
        ("gridbuf.h", " *", ".c", ["gcc", "-std=c11"]),
        ("gridbuf.hpp", "//", ".cc", [shutil.which("g++") or "clang++-19", "-std=c++17"]),
    ],
)
def test_the_code_in_the_comment_of_a_header(
    header: str,
    mark: str,
    suffix: str,
    compiler: list[str],
    prefix: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    code = code_in_the_comment(prefix / "include" / header, mark)
    source = tmp_path / f"comment{suffix}"
    source.write_text(f"#include <stdio.h>\n#include <{header}>\nint main() {{\n{code}\n}}\n")
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{prefix}/include"]
    run(*compiler, *flags, source, *link(prefix), "-o", "comment", cwd=tmp_path)
    assert run(tmp_path / "comment", env=EMULATED) == ""


def test_the_scenarios_of_fields(build_fortran) -> None:
    """What programs do with the fields of ECMWF's FIELD_API."""
    program = build_fortran(HERE / "fields_test.f90", HERE / "fields_test_device.c")
    printed = run(program)
    assert "0 failed" in printed
    assert int(printed.split()[0]) > 50


def test_arrays_of_storages(build_fortran) -> None:
    """Arrays, components, results: the memory ends with them. Arguments of every wrong shape."""
    printed = run(build_fortran(HERE / "arrays_test.f90"))
    assert "0 failed" in printed
    assert int(printed.split()[0]) > 300


def folder_of(option: str) -> pathlib.Path:
    return pathlib.Path(run(sys.executable, "-m", "gridbuf", option, env=ENVIRON).strip())


def test_the_python_package_has_every_file_of_the_archive() -> None:
    package = folder_of("--libdir").parent
    with tarfile.open(ARCHIVE) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    missing = [name for name in names if not (package / name).exists()]
    assert missing == ["lib/libgridbuf.so"]  # a link, which a wheel cannot have


def test_python_and_fortran_share_storages(tmp_path: pathlib.Path) -> None:
    """With the library of the Python package."""
    shared = folder_of("--fortrandir")
    for name in ("model.py", "model_gt4py.py", "relax.f90"):
        shutil.copy(ROOT / "examples/python_and_fortran" / name, tmp_path)
    run(
        "gcc",
        "-fPIC",
        f"-I{folder_of('--includedir')}",
        "-c",
        shared / "gridbuf_fortran.c",
        cwd=tmp_path,
    )
    run(
        "gfortran",
        "-std=f2018",
        "-O2",
        "-shared",
        "-fPIC",
        shared / "gridbuf.f90",
        "relax.f90",
        "gridbuf_fortran.o",
        f"-L{folder_of('--libdir')}",
        "-l:libgridbuf.so.0",
        LINK_SANITIZED,
        "-o",
        "librelax.so",
        cwd=tmp_path,
    )
    assert "1000" not in run(sys.executable, tmp_path / "model.py", env=ENVIRON)
    check = """
import importlib.util, numpy as np, model, gridbuf.testing
with gridbuf.testing.emulated_device():
    for options in ({}, {"device": "gpu"}):
        mixed = model.run(20, **options).to_numpy().copy()
        relax, model.relax = model.relax, model.step
        plain = model.run(20, **options).to_numpy()
        model.relax = relax
        np.testing.assert_allclose(mixed, plain, rtol=1e-13)
        assert 0 < plain.sum() < 1001
if importlib.util.find_spec("gt4py"):
    import model_gt4py
    np.testing.assert_allclose(model_gt4py.field.to_numpy(), plain, rtol=1e-13)
"""
    run(sys.executable, "-c", check, env=ENVIRON, cwd=tmp_path)


@pytest.mark.thorough
def test_cmake_and_pkg_config(prefix: pathlib.Path, tmp_path: pathlib.Path) -> None:
    if not (PROGRAMS / "cmake").exists():
        pytest.skip(f"NOT run: {PROGRAMS} has no CMake; ./bazelw --peers")
    environ = {
        **os.environ,
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "CC": "gcc",
        "CXX": shutil.which("g++") or "clang++-19",
        "LDFLAGS": LINK_SANITIZED,
    }
    run(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        EXAMPLE,
        "-B",
        tmp_path,
        f"-DCMAKE_PREFIX_PATH={prefix}",
        env=environ,
    )
    run("cmake", "--build", tmp_path, env=environ)
    for language, printed in PRINTED.items():
        assert run(tmp_path / f"laplacian_{language}").startswith(printed)


# A block of commands, what they print, and the folder that they run in a copy of.
COMMANDS = re.compile(r"<!-- run in: (\S+) -->\n```console\n(.*?)```", re.DOTALL)
PAGES = [
    page
    for page in sorted((ROOT / "docs/how-to").glob("*.md"))
    if COMMANDS.search(page.read_text())
]


@pytest.mark.parametrize(
    "page",
    [
        # nanobind is compiled, too.
        pytest.param(
            page, id=page.stem, marks=[pytest.mark.thorough] * (page.stem == "extend-python")
        )
        for page in PAGES
    ],
)
def test_the_commands_of_a_page_print_what_it_shows(
    page: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    environ = {**ENVIRON, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    missing = {
        name for name in ("cmake", "pkg-config") if not shutil.which(name, path=environ["PATH"])
    }
    if missing:
        pytest.skip(f"NOT run: {', '.join(missing)} not installed")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("NOT run: the library is sanitized, which needs other commands")
    if page.stem == "extend-python":
        pytest.importorskip("nanobind", reason="NOT run: no nanobind; ./bazelw --peers")
    for number, (example, block) in enumerate(COMMANDS.findall(page.read_text())):
        folder = shutil.copytree(ROOT / example, tmp_path / str(number))
        script, printed = ["set -e"], ""
        for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = entry.partition("\n")
            script.append(command if shown else f"{{ {command}\n}} > /dev/null")
            printed += shown
        assert run("bash", "-c", "\n".join(script), cwd=folder, env=environ) == printed


def test_there_are_pages_with_commands() -> None:
    assert len(PAGES) == 5
