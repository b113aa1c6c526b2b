"""The example's extensions, built with g++, and judged by the suite."""

import functools
import gc
import importlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile

import nanobind
import numpy as np
import pybind11
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = pathlib.Path(__file__).parent / "gridbuf.tar.gz"
EXAMPLE = ROOT / "examples/python_extension"
INCLUDES = {
    "pybind11": [pybind11.get_include()],
    "nanobind": [
        nanobind.include_dir(),
        str(pathlib.Path(nanobind.source_dir()).parent / "ext/robin_map/include"),
    ],
}
SOURCES = {
    "pybind11": [],
    "nanobind": [str(pathlib.Path(nanobind.source_dir()) / "nb_combined.cpp")],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("extensions")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(made / "installed")
    sys.path.insert(0, str(made))
    return made


@functools.cache
def built(folder: pathlib.Path, library: str) -> pathlib.Path:
    (prefix,) = (folder / "installed").iterdir()
    includes = [f"-isystem{path}" for path in [sysconfig.get_path("include"), *INCLUDES[library]]]
    command = [
        *("g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror"),
        *("-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"),
        *(f"-I{prefix}/include", *includes, EXAMPLE / f"arrays_{library}.cc", *SOURCES[library]),
        *(f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lgridbuf"),
        *("-o", folder / f"arrays_{library}.so"),
    ]
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(params=["pybind11", "nanobind"])
def library(request: pytest.FixtureRequest, folder: pathlib.Path) -> str:
    built(folder, request.param)
    return request.param


@pytest.fixture
def arrays(library: str):
    return importlib.import_module(f"arrays_{library}")


def test_memory_is_shared_and_owned(arrays) -> None:
    a = np.ones((4, 6))
    arrays.twice(a[::2, 1:])
    assert a.sum() == 24 + 10
    readonly = np.arange(3.0)
    readonly.flags.writeable = False
    assert arrays.sum(readonly) == 3.0
    filled = np.from_dlpack(arrays.filled(2, 3, 1.5))
    gc.collect()
    assert filled.dtype == np.float32
    assert (filled == 1.5).all()
    assert filled.shape == (2, 3)


def test_an_array_lives_as_long_as_its_user(arrays) -> None:
    x = np.arange(5)
    before = sys.getrefcount(x)
    view = np.from_dlpack(arrays.same(x))
    assert np.shares_memory(x, view)
    assert sys.getrefcount(x) > before
    del view
    assert sys.getrefcount(x) == before


def test_a_copy_and_an_old_consumer(arrays) -> None:
    x = np.arange(5)
    made = arrays.same(x)
    assert not np.shares_memory(np.from_dlpack(made, copy=True), x)
    assert '"dltensor"' in repr(made.__dlpack__())
    assert made.__dlpack_device__() == (1, 0)
    x.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        arrays.same(x).__dlpack__()
    with pytest.raises(TypeError, match="max_version is 3"):
        made.__dlpack__(max_version=3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 2), np.float32), "element type is float32, but must be float64"),
        (np.ones(3), "number of dimensions is 1, but must be 2"),
        (np.broadcast_to(1.0, (2, 2)), "memory is read-only, but must be writable"),
        (5, "incompatible function arguments"),
    ],
)
def test_refused(arrays, value: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        arrays.twice(value)


class OnDevice:
    """An array of a device that is not there."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: object) -> object:
        import ctypes

        capsule = np.ones((2, 2)).__dlpack__(max_version=(1, 0))
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # version, context, deleter, flags, data: 40 bytes
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor_versioned") + 40).value = 2
        return capsule


class Fails:
    def __dlpack__(self, **_: object) -> object:
        raise KeyError("reason")


class NoCapsule:
    def __dlpack__(self, **_: object) -> object:
        return 3


def test_other_exporters(arrays) -> None:
    with pytest.raises(TypeError, match="memory is a CUDA device's, but must be the host's"):
        arrays.twice(OnDevice())
    with pytest.raises(KeyError, match="reason"):
        arrays.twice(Fails())
    with pytest.raises(BufferError, match="returned 3, but must return a capsule"):
        arrays.twice(NoCapsule())


@pytest.mark.thorough
def test_the_suite_finds_no_failure(folder: pathlib.Path, library: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gridbuf_conformance", "check", "--consumer"),
            *("--profile", "smoke", f"arrays_{library}:same"),
        ],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conforms" in done.stdout
    assert "ADVISORY" not in done.stdout
