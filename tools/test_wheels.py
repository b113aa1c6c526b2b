"""The wheels that users install: an extension and a library that need only glibc, a pure suite that needs neither NumPy nor gridbuf."""

import email
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from fresh_environment import PYTEST_NEEDS, SUITE_NEEDS, install, only_wheel, run

HERE = pathlib.Path(__file__).parent
GRIDBUF = HERE.parent / "wheel"
CONFORMANCE = HERE.parent / "conformance/wheel"

# What a C and C++ program may ask of any Linux: the parts of glibc.
GLIBC = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux-x86-64\.so\.2)$")


# What the linker reads, and the component of the SBOM that it is a part of. None: gridbuf's own, or shared and not in the wheel.
READ_BY_THE_LINKER = {
    r"bazel-out/[^/]+/bin/(modules|build_defs)/": None,
    r".*\.so(\.\d+)*$": None,
    r"bazel-out/[^/]+/bin/external/com_google_absl/": "abseil-cpp",
    r"external/gridbuf_cuda/.*/libcudart_static\.a\(": "nvidia-cuda-runtime",
    r".*/gcc/[^/]+/(\d+)/(crt(begin|end)S\.o$|lib(gcc|gcc_eh|stdc\+\+)\.a\()": r"gcc-\1",
    r".*/debian/glibc/libgcc_eh\.a\(": "gcc-10",
    r".*/libc_nonshared\.a\(|.*/crt[in]\.o$": "glibc",
}
# Where the sources and headers are from. NumPy and CPython are not in the wheel: pip installs the first, and runs in the second.
READ_BY_THE_COMPILER = {
    "com_google_absl": "abseil-cpp",
    "gridbuf_cuda//:toolkit/": "nvidia-cuda-runtime",
    "gridbuf_cuda//:aarch64/": "nvidia-cuda-runtime",
    "gridbuf_python//:pybind11_include/": "pybind11",
    "gridbuf_python//:numpy_include/": None,
    "gridbuf_python//:include/": None,
}
TOOLS = ("bazel_tools", "local_config_cc", "platforms")
# Follows dlpack.h without including it.
COPIED = {"dlpack"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("gridbuf_wheel")
    with zipfile.ZipFile(only_wheel(GRIDBUF)) as archive:
        archive.extractall(folder)
    return folder


# The extension, and the library that it shares with programs in C.
EXTENSION = f"gridbuf/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
LIBRARY = "gridbuf/lib/libgridbuf.so.0"


@pytest.fixture(params=[EXTENSION, LIBRARY])
def binary(unpacked, request) -> pathlib.Path:
    return unpacked / request.param


def test_gridbuf_wheel_has_an_extension_and_a_library_that_need_only_glibc(unpacked):
    found = {path.relative_to(unpacked).as_posix(): path for path in unpacked.rglob("*.so*")}
    assert set(found) == {EXTENSION, LIBRARY}
    for name, path in found.items():
        dynamic = subprocess.run(
            ["readelf", "-d", path], capture_output=True, text=True, check=True
        ).stdout
        needed = [
            name for name in re.findall(r"NEEDED.*\[(.+)\]", dynamic) if not GLIBC.match(name)
        ]
        assert needed == (["libgridbuf.so.0"] if name == EXTENSION else [])
        assert re.findall(r"RUNPATH.*\[(.+)\]", dynamic) == ["$ORIGIN/lib"] * (name == EXTENSION)


def test_gridbuf_binaries_show_only_their_functions(binary):
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", binary], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in symbols.stdout.splitlines()]
    if binary.name.startswith("_core"):
        assert names == ["PyInit__core"]
    else:
        assert [name for name in names if not name.startswith("gridbuf_")] == []
        assert len(names) > 40


def test_gridbuf_binaries_have_no_path_of_their_build(binary):
    """Two builds in two folders would differ. nvcc names unnamed namespaces by a hash of the path."""
    if platform.freedesktop_os_release().get("VERSION_ID") != "12":
        # Assertions of pybind11's headers hold the names that the compiler was given.
        pytest.skip("NOT TESTED: releases are made on Debian 12; Bazel 7 gives absolute names")
    words = (
        rb"[\w./-]*(?:/execroot/|/sandbox/|/\.gridbuf/|tmpxft_|_GLOBAL__N__[0-9a-f]{8}_)[\w./-]*"
    )
    assert re.findall(words, binary.read_bytes()) == []


def test_gridbuf_binaries_ask_glibc_for_versions_only(binary):
    """A symbol without a version is one that the old glibc of the link does not have, and auditwheel does not see it."""
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", binary], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in symbols.stdout.splitlines()]
    assert any("@GLIBC" in name for _, name in rows)
    missing = [name for kind, name in rows if kind == "U" and "@" not in name]
    assert [name for name in missing if not name.lstrip("_").startswith("Py")] == [], (
        "add them to build_defs/glibc_symbols.c"
    )


@pytest.mark.skipif(
    os.environ["GRIDBUF_OLD_GLIBC"] == "0",
    reason="bazelw could not fetch Debian 11's C library; the wheel asks for this machine's own",
)
def test_gridbuf_wheel_installs_where_the_documents_say():
    """The first glibc of a page is that of the wheel for x86-64. Releases are optimised, on Debian 12."""
    wheel = only_wheel(GRIDBUF)
    tag = re.search(r"manylinux_2_(\d+)_", wheel.name)
    assert tag and int(tag[1]) <= 28
    is_release = "-opt/" in str(wheel.resolve())  # else it has functions that nothing calls
    if platform.freedesktop_os_release().get("VERSION_ID") != "12":
        pytest.skip("NOT TESTED: releases are made on Debian 12; newer headers need newer symbols")
    for page in ("limits.md", "get-started.md", "how-to/use-from-c.md"):
        text = (HERE.parent / "docs" / page).read_text(encoding="utf-8")
        found = int(re.search(r"glibc(?: is| ≥)? 2\.(\d+)", text)[1])
        assert found == int(tag[1]) if is_release else found <= int(tag[1]), page


def test_gridbuf_wheel_has_the_tag_that_auditwheel_gives():
    wheel = only_wheel(GRIDBUF)
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "manylinux" in wheel.name
    consistent = re.search(
        r"platform tag:\s*\"?(manylinux_\d+_\d+_x86_64)", shown.replace("\n", " ")
    )
    assert consistent, shown
    assert consistent[1] in wheel.name


def test_gridbuf_wheel_imports_without_cuda_and_carries_stubs(tmp_path, unpacked):
    python = install(only_wheel(GRIDBUF), tmp_path / "env", ("numpy", "numpy.libs"))
    code = "import gridbuf; a = gridbuf.zeros((3, 4)); print(a.shape, gridbuf.__version__)"
    result = run(python, "-c", code)
    assert result.returncode == 0, result.stderr
    version = only_wheel(GRIDBUF).name.split("-")[1]
    assert result.stdout.split() == ["(3,", "4)", version]
    assert (unpacked / "gridbuf/py.typed").exists()
    assert (
        "Layout map: entry i is the rank of dimension i."
        in (unpacked / "gridbuf/_core.pyi").read_text()
    )
    sources = [
        path for path in unpacked.rglob("gridbuf/**/*.py*") if path.suffix in (".py", ".pyi")
    ]
    assert len(sources) > 40
    assert [path for path in sources if " : as in `" in path.read_text("utf-8")] == []


def components(unpacked: pathlib.Path) -> dict[str, set[str]]:
    """The names in the SBOM, with their versions."""
    (path,) = unpacked.glob("*.dist-info/sboms/*.cdx.json")
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text())
    assert error is None, error
    found: dict[str, set[str]] = {}
    for component in json.loads(path.read_text()).get("components", []):
        assert component["licenses"] and component["version"] in component["purl"].replace(
            "%2B", "+"
        )
        found.setdefault(component["name"], set()).add(component["version"])
    return found


def test_sbom_of_gridbuf_has_what_is_linked_and_compiled_in(unpacked):
    linked = {
        next(
            (match.expand(part) if part else None)
            for pattern, part in {**READ_BY_THE_LINKER, ".*": f"unknown: {line}"}.items()
            if (match := re.match(pattern, line))
        )
        for line in (HERE / "extension.trace.txt").read_text().splitlines()
    }
    labels = (HERE / "extension.labels").read_text()
    # @gridbuf_python_aarch64 is @gridbuf_python for --config=aarch64.
    files = re.findall(r"^@(\w+?)(?:_aarch64)?//(?:.*:)?(\w*/?)", labels, re.MULTILINE)
    compiled = {
        READ_BY_THE_COMPILER[f"{name}//:{folder}" if name.startswith("gridbuf_") else name]
        for name, folder in files
        if name not in TOOLS and (folder.endswith("/") or not name.startswith("gridbuf_"))
    }
    expected = {*linked, *compiled, *COPIED} - {None}
    assert len(expected) > 5
    assert set(components(unpacked)) == expected


def test_sbom_of_gridbuf_has_the_versions_of_what_is_linked(unpacked):
    found = components(unpacked)
    extension = unpacked / EXTENSION
    # Abseil's symbols have its version.
    (version,) = set(re.findall(rb"lts_(\d{8})", extension.read_bytes()))
    assert {name.partition(".")[0] for name in found["abseil-cpp"]} == {version.decode()}
    assert len(found["glibc"]) == 1 + int(os.environ["GRIDBUF_OLD_GLIBC"])
    compiler = subprocess.run(["clang-19", "-v"], capture_output=True, text=True, check=True)
    gcc = re.search(r"Selected GCC installation: \S+/(\d+)$", compiler.stderr, re.MULTILINE)[1]
    assert all(version.startswith(f"{gcc}.") for version in found[f"gcc-{gcc}"])


def test_wheels_have_the_licences_of_all_that_is_in_them(tmp_path, unpacked):
    with zipfile.ZipFile(only_wheel(CONFORMANCE)) as archive:
        archive.extractall(tmp_path)
    assert components(tmp_path) == {}
    for folder in (unpacked, tmp_path):
        (info,) = folder.glob("*.dist-info")
        named = email.message_from_string((info / "METADATA").read_text()).get_all("License-File")
        files = [path for path in info.glob("licenses/**/*") if path.is_file()]
        texts = {str(path.relative_to(info / "licenses")) for path in files}
        assert set(named) == texts
        for name, versions in components(folder).items():
            of_it = [text for text in texts if text.startswith(f"{name}-")]
            assert len(of_it) >= len(versions), f"no text of the licence of {name}"
            assert all((info / "licenses" / text).stat().st_size > 1000 for text in of_it)


# CUDA's static runtime and our few kernels: small compared with the rest.
MOST_EXTENSION_BYTES = 16 << 20


def test_gridbuf_wheel_carries_cuda_code_exactly_if_built_with_the_toolkit(tmp_path, unpacked):
    extension = unpacked / EXTENSION
    assert extension.stat().st_size < MOST_EXTENSION_BYTES
    built = os.environ["GRIDBUF_BUILT_WITH_CUDA"] == "1"
    # nvcc puts the code of GPUs into a section of this name.
    sections = subprocess.run(
        ["readelf", "-S", "-W", extension], capture_output=True, text=True, check=True
    ).stdout
    assert (".nv_fatbin" in sections) == built
    python = install(only_wheel(GRIDBUF), tmp_path / "env", ("numpy", "numpy.libs"))
    code = "import gridbuf; print(gridbuf.show_config('dict')['devices']['cuda'])"
    result = run(python, "-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("built in, runtime" if built else "not built in"), result.stdout


C_PROGRAM = """
#include <gridbuf.h>
#include <stdio.h>
int main(void) {
  const int64_t shape[1] = {3};
  gridbuf_options options = GRIDBUF_OPTIONS_INIT;
  options.ndim = 1, options.shape = shape;
  gridbuf_storage* field;
  if (gridbuf_storage_create(&options, &field) != GRIDBUF_OK) return 1;
  puts(gridbuf_version());
  return gridbuf_storage_release(field);
}
"""


def test_c_programs_build_from_the_wheel(tmp_path, unpacked):
    """By gcc with the folders that `python -m gridbuf` prints; Python then shares the library."""
    python = install(only_wheel(GRIDBUF), tmp_path / "env", ("numpy", "numpy.libs"))
    options = ["--includedir", "--libdir", "--cmakedir", "--pkgconfigdir", "--fortrandir"]
    result = run(python, "-m", "gridbuf", *options)
    assert result.returncode == 0, result.stderr
    include, library, cmake, pkgconfig, fortran = map(pathlib.Path, result.stdout.splitlines())
    assert (include / "gridbuf.hpp").exists() and (fortran / "gridbuf.f90").exists()
    assert (cmake / "gridbuf-config.cmake").exists() and (pkgconfig / "gridbuf.pc").exists()
    (tmp_path / "main.c").write_text(C_PROGRAM)
    command = ["gcc", "-Wall", "-Werror", "main.c", f"-I{include}", f"-L{library}"]
    command += ["-l:libgridbuf.so.0", f"-Wl,-rpath,{library}", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    assert program.stdout.strip() == only_wheel(GRIDBUF).name.split("-")[1]
    refused = run(python, "-m", "gridbuf")
    assert refused.returncode == 2 and "--cmakedir" in refused.stdout


def test_the_two_wheels_have_one_version():
    assert only_wheel(GRIDBUF).name.split("-")[1] == only_wheel(CONFORMANCE).name.split("-")[1]


def test_conformance_wheel_is_pure_and_checks_array_without_numpy_and_gridbuf(tmp_path):
    wheel = only_wheel(CONFORMANCE)
    assert wheel.name.endswith("-py3-none-any.whl")
    python = install(wheel, tmp_path / "env", SUITE_NEEDS)
    for absent in ("numpy", "gridbuf"):
        assert run(python, "-c", f"import {absent}").returncode != 0
    result = run(
        python, "-m", "gridbuf_conformance", "check", "array", "--profile", "smoke", cwd=tmp_path
    )
    assert result.returncode == 0, result.stdout + result.stderr
    # A conformant verdict must come from rules that ran, and NumPy's absence must be said, not skipped.
    absent = run(
        python, "-m", "gridbuf_conformance", "check", "numpy", "--profile", "smoke", cwd=tmp_path
    )
    assert absent.returncode == 4
    assert "pip install numpy" in absent.stdout + absent.stderr
    shutil.rmtree(tmp_path / "env")


def test_conformance_wheel_has_the_command_and_the_plugin(tmp_path):
    """Installed by pip, so that the command is a script; NumPy is absent here as well."""
    wheel = only_wheel(CONFORMANCE)
    python = install(wheel, tmp_path / "env", SUITE_NEEDS + PYTEST_NEEDS, with_pip=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    shutil.rmtree(site / "gridbuf_conformance")
    shutil.rmtree(next(site.glob("gridbuf_conformance-*.dist-info")))
    installed = run(python, "-m", "pip", "install", "--no-index", "--no-deps", str(wheel))
    assert installed.returncode == 0, installed.stderr
    command = subprocess.run(
        [tmp_path / "env/bin/gridbuf-conformance", "check", "bytes", "--profile", "smoke"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert command.returncode == 0, command.stdout + command.stderr
    selection = ("--gridbuf-producer=bytes", "--gridbuf-rules=PB-*")
    tested = run(python, "-m", "pytest", *selection, cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout
    assert "plugins: gridbuf-conformance-" in tested.stdout
    assert "bytes conforms" in tested.stdout
