# /// script
# requires-python = "==3.13.*"
# dependencies = ["pybind11==3.1.0", "setuptools==80.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "pybind11"
# side = "consumer"
# target = "pybind11.buffer"
# rule = "PB-07"
# also_rules = ["PB-24"]
# plan = '{"dtype":"uint8","export":"buffer:null-format"}'
# also_affected = ["pybind11-2.13.6"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "refusal"
# expected = "A NULL format means unsigned bytes, so request() takes the buffer."
# impact = "A buffer that memoryview takes cannot be used from C++."
# fix = """\
# In buffer_info, which request() makes, use "B" if format is NULL, and release the view if an \
# exception is thrown."""
# status = "new"
# searched = "2026-11-23, threads on GitHub: pybind11 buffer request NULL format std::string"
# counter = """\
# format is NULL only where it was not asked for, says the same page, and request() asks for it. \
# (That the view leaks is not contested.)"""
# counter_link = "https://docs.python.org/3/c-api/buffer.html#c.PyBUF_FORMAT"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["1.0", "2.7.1", "2.9.0", "2.9.1"]
# package = "pybind11"
# python = "3.13"
# listed = 55
# shown = ["2.9.2", "2.10.0", "2.12.0", "3.1.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "RuntimeError: basic_string: construction from null is not valid"
# expected = "the array, as from the plain export"
# outcome = "ADVISORY"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pybind11-2.13.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: RuntimeError: basic_string: construction from null is not valid"
#
# [tool.gridbuf-finding.runs."pybind11-3.1.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: RuntimeError: basic_string: construction from null is not valid"
# ///
"""py::buffer::request of pybind11 fails for a buffer whose format is NULL"""

import subprocess
import sys
import sysconfig

import pybind11

CODE = """#include <pybind11/pybind11.h>
namespace py = pybind11;
static char byte;
static int get(PyObject* self, Py_buffer* view, int flags) {
  int code = PyBuffer_FillInfo(view, self, &byte, 1, 0, flags);
  view->format = nullptr;  // NULL means "B"
  return code;
}
static PyType_Slot slots[] = {{Py_bf_getbuffer, (void*)get}, {0, nullptr}};
static PyType_Spec spec = {"shown.Byte", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
PYBIND11_MODULE(shown, m) {
  m.attr("Byte") = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  m.def("request", [](py::buffer buffer) { return buffer.request().size; });
}"""
paths = [f"-I{path}" for path in (pybind11.get_include(), sysconfig.get_path("include"))]
compiler = ["c++", "-shared", "-fPIC", "-std=c++17", "-o", "shown.so", *paths, "-xc++", "-"]
subprocess.run(compiler, input=CODE, text=True, check=True)
sys.path.insert(0, ".")
import shown

print("memoryview:", memoryview(shown.Byte()).format)
try:
    shown.request(shown.Byte())
except RuntimeError as error:
    sys.exit(f"defect: RuntimeError: {error}")
