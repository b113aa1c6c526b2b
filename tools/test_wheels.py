"""The wheels that users install: one extension that needs only glibc, a pure suite that needs neither NumPy nor gridbuf."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from fresh_environment import PYTEST_NEEDS, SUITE_NEEDS, install, only_wheel, run

HERE = pathlib.Path(__file__).parent
GRIDBUF = HERE.parent / "wheel"
CONFORMANCE = HERE.parent / "conformance/wheel"

# What a C and C++ program may ask of any Linux: the parts of glibc.
GLIBC = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux-x86-64\.so\.2)$")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("gridbuf_wheel")
    with zipfile.ZipFile(only_wheel(GRIDBUF)) as archive:
        archive.extractall(folder)
    return folder


def test_gridbuf_wheel_has_one_extension_that_needs_only_glibc(unpacked):
    (extension,) = unpacked.rglob("*.so*")
    dynamic = subprocess.run(
        ["readelf", "-d", extension], capture_output=True, text=True, check=True
    ).stdout
    needed = re.findall(r"NEEDED.*\[(.+)\]", dynamic)
    assert needed
    assert [name for name in needed if not GLIBC.match(name)] == []


def test_gridbuf_extension_shows_only_its_init_function(unpacked):
    (extension,) = unpacked.rglob("*.so*")
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", extension], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in symbols.stdout.splitlines()]
    assert names == ["PyInit__core"]


def test_gridbuf_extension_asks_glibc_for_versions_only(unpacked):
    """A symbol without a version is one that the old glibc of the link does not have, and auditwheel does not see it."""
    (extension,) = unpacked.rglob("*.so*")
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", extension], capture_output=True, text=True, check=True
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
def test_gridbuf_wheel_installs_where_glibc_is_2_28():
    platform = re.search(r"manylinux_2_(\d+)_", only_wheel(GRIDBUF).name)
    assert platform and int(platform[1]) <= 28


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


# CUDA's static runtime and our few kernels: small compared with the rest.
MOST_EXTENSION_BYTES = 16 << 20


def test_gridbuf_wheel_carries_cuda_code_exactly_if_built_with_the_toolkit(tmp_path, unpacked):
    (extension,) = unpacked.rglob("*.so*")
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


def test_versions_agree():
    text = (HERE.parent / "pyproject.toml").read_text()
    assert tomllib.loads(text)["project"]["version"] == only_wheel(GRIDBUF).name.split("-")[1]


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
