# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "zoo/consumers.py:onnxruntime_from_dlpack"
# rule = "DL-19"
# plan = '{"export":"dlpack:null-deleter"}'
# also_affected = ["onnxruntime-1.24.2"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# why = "dlpack.h: the deleter can be NULL if the caller has no reasonable destructor."
# seen = "A capsule made with ctypes with deleter NULL: SIGABRT when the OrtValue goes."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: onnxruntime OrtValue from_dlpack byte_offset ignored NULL \
# deleter crash"""
# picture = """
# DLManagedTensor  | dl_tensor | manager_ctx | deleter = NULL |
#                                              ^ allowed: nothing is to be done
# del value        calls it regardless: the process ends"""
# ///
"""OrtValue.from_dlpack of a DLPack tensor whose deleter is NULL: the process aborts when the result is dropped."""

import ctypes as c
import mmap
import struct
import subprocess
import sys

from onnxruntime.capi._pybind_state import OrtValue

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
capsule = new(c.addressof(managed), b"dltensor", None)
result = OrtValue.from_dlpack(capsule, False)
del result
