# /// script
# requires-python = "==3.13.*"
# dependencies = ["nanobind==3.1.0", "setuptools==80.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanobind"
# side = "consumer"
# target = "nanobind.ndarray"
# also_targets = ["nanobind.readonly"]
# rule = "DP-05"
# also_rules = ["DL-19"]
# plan = '{"export":"dlpack:shared-capsule"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "memory"
# expected = "The import renames the capsule to used_dltensor, so the second import fails."
# impact = "One tensor is deleted two times."
# fix = """\
# Where nanobind::ndarray takes a capsule from __dlpack__, rename it with PyCapsule_SetName when \
# the tensor is taken."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: nanobind ndarray same capsule imported twice, not renamed \
# used_dltensor, deleter called twice"""
# counter = """\
# nanobind's source says that the import holds the only reference to such a capsule, and clears \
# its destructor instead. An exporter that returns a capsule again breaks the text as well: a \
# capsule is consumed once."""
# counter_link = "https://github.com/wjakob/nanobind/blob/v3.1.0/src/nb_ndarray.cpp#L1000-L1007"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["0.0.1", "1.6.0"]
# gone = ["2.7.0", "2.9.1", "2.9.2", "2.10.1", "2.10.2", "2.11.0", "2.12.0"]
# package = "nanobind"
# python = "3.13"
# listed = 50
# shown = ["2.13.0", "3.1.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "2 took it"
# expected = "one thread takes the capsule, the other gets an error"
# outcome = "FRAGILE"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: ValueError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanobind-3.1.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: one capsule was taken twice, and its tensor deleted 2 times"
# ///
"""nb::ndarray of nanobind does not rename the capsule that __dlpack__ returned: a second import uses its tensor again"""

import ctypes as c
import subprocess
import sys
import sysconfig

import nanobind

root = nanobind.source_dir() + "/.."
CODE = f'#include "{root}/src/nb_combined.cpp"\n#include <nanobind/ndarray.h>\n'
CODE += 'NB_MODULE(shown, m) { m.def("size", [](nanobind::ndarray<> a) { return a.size(); }); }\n'
folders = (nanobind.include_dir(), f"{root}/ext/robin_map/include", sysconfig.get_path("include"))
paths = [f"-I{path}" for path in folders]
compiler = ["c++", "-shared", "-fPIC", "-std=c++17", "-o", "shown.so", *paths, "-xc++", "-"]
subprocess.run(compiler, input=CODE, text=True, check=True)
sys.path.insert(0, ".")
import shown

deleter = c.CFUNCTYPE(None, c.c_void_p)((deleted := []).append)
shape, strides, data = (c.c_int64 * 1)(3), (c.c_int64 * 1)(1), (c.c_double * 3)()
start, *arrays = map(c.addressof, (data, shape, strides))  # of a DLManagedTensor of float64
words = [start, 1, 1 | 0x14002 << 32, *arrays, 0, 0, c.cast(deleter, c.c_void_p).value]
managed = (c.c_uint64 * 8)(*words)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)
capsule = new(c.addressof(managed), b"dltensor", None)


class Exporter:
    def __dlpack__(self, **keywords):
        return capsule


shown.size(Exporter())
try:
    shown.size(Exporter())
except TypeError:
    sys.exit(0)
sys.exit(f"defect: one capsule was taken twice, and its tensor deleted {len(deleted)} times")
