"""nb::ndarray does not rename the capsule that __dlpack__ returned: a second import takes its tensor again."""

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
