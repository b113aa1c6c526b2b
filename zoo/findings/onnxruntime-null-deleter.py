# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "onnxruntime.OrtValue.from_dlpack"
# rule = "DL-19"
# plan = '{"export":"dlpack:null-deleter"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# pattern = "null-deleter"
# severity = "memory"
# expected = "The deleter may be NULL. Then there is nothing to do when the value is dropped."
# impact = "The process aborts on a legal tensor, when its OrtValue is dropped."
# fix = "In from_dlpack, call the deleter only if it is not NULL. 1.32.0 does it."
# source = "dlpack.h (DLPack 1.3), DLManagedTensor.deleter"
# source_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L301-L307"
# status = "fixed"
# fixed_in = "1.32.0"
# tracker = "https://github.com/microsoft/onnxruntime/releases/tag/v1.32.0"
# picture = """
# DLManagedTensor  | dl_tensor | manager_ctx | deleter = NULL |
#                                              ^ allowed: nothing is to be done
# del value        calls it regardless: the process ends"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.17.0", "1.23.1", "1.25.1"]
# gone = ["1.32.0"]
# listed = 30
# package = "onnxruntime"
# python = "3.12"
# series = 7
# shown = ["1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGABRT at step consume:drop=result"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 6"
# ///
"""onnxruntime's OrtValue.from_dlpack of a DLPack tensor whose deleter is NULL: the process aborts when the result is dropped"""

import ctypes as c
import mmap
import struct
import subprocess
import sys

import onnxruntime

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


result = onnxruntime.OrtValue.from_dlpack(Exporter())
del result
