# /// script
# requires-python = "==3.13.*"
# dependencies = ["nanobind==3.1.0", "setuptools==80.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanobind"
# side = "producer"
# target = "zoo/producers.py:NanobindProducer"
# also_targets = ["zoo/producers.py:UnownedNanobindProducer"]
# rule = "PB-12"
# plan = '{"shape":[2,2]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = """\
# Memory in C order refuses PyBUF_F_CONTIGUOUS with BufferError. A consumer that is granted the \
# request may read element [1, 0] at the second place."""
# impact = "A consumer that asked for Fortran order reads another element."
# fix = """\
# In the getbuffer function of nanobind.nb_ndarray, test the contiguity that the flags ask for, and \
# raise BufferError."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: nanobind ndarray buffer protocol nb_ndarray_getbuffer F_CONTIGUOUS \
# flags shape 0-d"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "granted with strides (16, 8) for shape (2, 2)"
# expected = "F_CONTIGUOUS refused, or F-contiguous memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanobind-3.1.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: element [1, 0] is read as 1.0, not 3.0"
# ///
"""An ndarray of nanobind grants a request for Fortran order, with memory in C order"""

import ctypes as c
import subprocess
import sys
import sysconfig

import nanobind

root = nanobind.source_dir() + "/.."
CODE = f'#include "{root}/src/nb_combined.cpp"\n#include <nanobind/ndarray.h>\n'
CODE += "namespace nb = nanobind; double data[] = {0, 1, 2, 3, 4, 5};\n"
CODE += "auto made() { return nb::ndarray<nb::array_api, double>(data, {2, 3}, nb::handle()); }\n"
CODE += 'NB_MODULE(shown, m) { m.def("made", made, nb::rv_policy::reference); }\n'
folders = (nanobind.include_dir(), f"{root}/ext/robin_map/include", sysconfig.get_path("include"))
paths = [f"-I{path}" for path in folders]
compiler = ["c++", "-shared", "-fPIC", "-std=c++17", "-o", "shown.so", *paths, "-xc++", "-"]
subprocess.run(compiler, input=CODE, text=True, check=True)
sys.path.insert(0, ".")
import shown


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


view = View()
try:
    c.pythonapi.PyObject_GetBuffer(c.py_object(shown.made()), c.byref(view), 0x58)  # F_CONTIGUOUS
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
second = (c.c_double * 6).from_address(view.buf)[1]  # in Fortran order this is element [1, 0]
sys.exit(f"defect: element [1, 0] is read as {second}, not 3.0" if second != 3 else 0)
