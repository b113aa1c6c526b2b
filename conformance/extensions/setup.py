"""Builds the extensions against the environment's pybind11 and nanobind; one can be absent.

`pip install --no-build-isolation conformance/extensions`, in an environment that has setuptools and
one of the two.
`--no-build-isolation` is the point: the suite judges the version that is installed.
"""

from __future__ import annotations

from importlib import util
from pathlib import Path

from setuptools import Extension, setup

_FLAGS = ["-std=c++17", "-fvisibility=hidden", "-fno-strict-aliasing", "-O1"]


def _pybind11() -> list[Extension]:
    if util.find_spec("pybind11") is None:
        return []
    import pybind11

    return [
        Extension(
            "gridbuf_conformance_pybind11",
            ["pybind11_arrays.cc"],
            include_dirs=[pybind11.get_include()],
            extra_compile_args=_FLAGS,
        )
    ]


def _nanobind() -> list[Extension]:
    if util.find_spec("nanobind") is None:
        return []
    import nanobind

    # Its library comes as source; setuptools wants relative paths of sources: one line includes it.
    source = Path(nanobind.source_dir()) / "nb_combined.cpp"
    Path("build").mkdir(exist_ok=True)
    library = Path("build", "nanobind_library.cc")
    library.write_text(f'#include "{source}"\n')
    return [
        Extension(
            "gridbuf_conformance_nanobind",
            ["nanobind_arrays.cc", str(library)],
            include_dirs=[nanobind.include_dir(), str(source.parents[1] / "ext/robin_map/include")],
            extra_compile_args=_FLAGS,
        )
    ]


extensions = _pybind11() + _nanobind()
if not extensions:
    raise SystemExit("neither pybind11 nor nanobind is installed here; install one, or both, first")
setup(name="gridbuf-conformance-extensions", version="0.1.0", py_modules=[], ext_modules=extensions)
