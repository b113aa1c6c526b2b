# /// script
# requires-python = "==3.13.*"
# dependencies = ["nanobind==3.1.0", "setuptools==80.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanobind"
# side = "consumer"
# target = "nanobind.readonly"
# also_targets = ["nanobind.ndarray"]
# rule = "DL-22"
# plan = '{"readonly":true,"export":"dlpack:major-2"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "form"
# expected = """\
# A tensor of another major version is refused: its layout is unknown, and only the deleter may be \
# used."""
# impact = """\
# There is no version 2 yet. When there is one, nb::ndarray reads fields at places where they are \
# not."""
# fix = """\
# Where nanobind::ndarray takes a capsule dltensor_versioned, compare version.major with 1 first. \
# Call the deleter and refuse the argument if it differs."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: nanobind ndarray dlpack_versioned major version check refuse \
# newer major"""
# picture = """
# DLManagedTensorVersioned  | version 2.0 | manager_ctx | deleter | unknown layout … |
# may be used                 ^                           ^
# is used                     ^                           ^         ^ read as shape, strides, data"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["0.0.1", "1.6.0"]
# gone = ["2.7.0", "2.9.1", "2.9.2"]
# package = "nanobind"
# python = "3.13"
# listed = 50
# shown = ["2.10.1", "2.10.2", "2.11.0", "2.12.0", "2.13.0", "3.1.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: BufferError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanobind-3.1.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: version 2.0 was taken, with 1 elements"
# ///
"""nb::ndarray<nb::ro> of nanobind reads a DLPack capsule of major version 2 as if it were version 1"""

import ctypes as c
import subprocess
import sys
import sysconfig

import nanobind

root = nanobind.source_dir() + "/.."
CODE = (
    f'#include "{root}/src/nb_combined.cpp"\n#include <nanobind/ndarray.h>\n'
    + """
NB_MODULE(shown, m) { m.def("size", [](nanobind::ndarray<nanobind::ro> a) { return a.size(); }); }
"""
)
folders = (nanobind.include_dir(), f"{root}/ext/robin_map/include", sysconfig.get_path("include"))
paths = [f"-I{path}" for path in folders]
compiler = ["c++", "-shared", "-fPIC", "-std=c++17", "-o", "shown.so", *paths, "-xc++", "-"]
subprocess.run(compiler, input=CODE, text=True, check=True)
sys.path.insert(0, ".")
import shown

# DLManagedTensorVersioned of dlpack.h, version 2.0: behind the deleter nothing is known.
managed = c.create_string_buffer(bytes([2] + [0] * 79), 80)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)
capsule = new(c.addressof(managed), b"dltensor_versioned", None)
try:
    size = shown.size(capsule)
except (TypeError, BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: version 2.0 was taken, with {size} elements")
