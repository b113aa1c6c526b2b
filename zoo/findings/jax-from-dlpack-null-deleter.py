# /// script
# requires-python = "==3.13.*"
# dependencies = ["jax==0.12.0.1", "jaxlib==0.12.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "JAX"
# side = "consumer"
# target = "jax.dlpack.from_dlpack"
# also_targets = ["zoo/consumers.py:jax_computed"]
# rule = "DL-19"
# plan = '{"export":"dlpack:null-deleter"}'
# also_affected = ["jax-0.10.2"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# pattern = "null-deleter"
# severity = "memory"
# expected = "The deleter may be NULL. Then there is nothing to do when the array is dropped."
# impact = "The process aborts on a legal tensor, when its array is dropped."
# fix = "In jax.dlpack.from_dlpack, call the deleter only if it is not NULL."
# source = "dlpack.h (DLPack 1.3), DLManagedTensor.deleter"
# source_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L301-L307"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: jax dlpack from_dlpack NULL deleter bad_function_call crash"""
# picture = """
# DLManagedTensor  | dl_tensor | manager_ctx | deleter = NULL |
#                                              ^ allowed: nothing is to be done
# del array        calls it regardless: the process ends"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.0", "0.2.18", "0.4.14", "0.4.27", "0.4.30", "0.4.31", "0.4.33"]
# package = "jax"
# python = "3.13"
# listed = 193
# shown = ["0.4.34", "0.5.1", "0.12.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGABRT at step consume:drop=result"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."jax-0.10.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
#
# [tool.gridbuf-finding.runs."jax-0.12.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
# ///
"""jax.dlpack.from_dlpack of a DLPack tensor whose deleter is NULL: the process aborts when the result is dropped"""

import ctypes as c
import mmap
import struct
import subprocess
import sys

import jax

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))
numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 0)
managed = c.create_string_buffer(tensor + struct.pack("<QQ", data, 0), 64)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor", None)


result = jax.dlpack.from_dlpack(Exporter())
del result
