# /// script
# requires-python = "==3.13.*"
# dependencies = ["nanobind==3.1.0", "setuptools==80.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanobind"
# side = "producer"
# target = "zoo/producers.py:NanobindProducer"
# also_targets = ["zoo/producers.py:UnownedNanobindProducer"]
# rule = "PB-15"
# plan = '{"shape":[]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "For an array without dimensions, shape and strides are NULL."
# impact = "A consumer that tests shape for NULL does not see that the array has no dimensions."
# fix = """\
# In the getbuffer function of nanobind.nb_ndarray, set shape and strides to NULL if ndim is 0."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: nanobind ndarray buffer protocol nb_ndarray_getbuffer F_CONTIGUOUS \
# flags shape 0-d"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "not NULL for ND"
# expected = "shape NULL for ndim 0"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanobind-3.1.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: ndim is 0, and these are not NULL: ['shape', 'strides']"
# ///
"""The buffer of an ndarray of nanobind without dimensions has a shape and strides"""

import ctypes as c
import subprocess
import sys
import sysconfig

import nanobind

root = nanobind.source_dir() + "/.."
CODE = f'#include "{root}/src/nb_combined.cpp"\n#include <nanobind/ndarray.h>\n'
CODE += "namespace nb = nanobind; double data[] = {0, 1, 2, 3, 4, 5};\n"
CODE += "auto made() { return nb::ndarray<nb::array_api, double>(data, {}, nb::handle()); }\n"
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
c.pythonapi.PyObject_GetBuffer(c.py_object(shown.made()), c.byref(view), 0x18)  # PyBUF_STRIDES
there = [name for name in ("shape", "strides") if getattr(view, name)]
if there:
    sys.exit(f"defect: ndim is {view.ndim}, and these are not NULL: {there}")
