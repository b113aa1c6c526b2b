# /// script
# requires-python = "==3.10.*"
# dependencies = ["torch==1.12.1", "numpy==1.26.4"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "consumer"
# target = "torch.from_dlpack"
# rule = "DL-19"
# plan = '{"export":"dlpack:null-deleter"}'
# passes = "torch-2.13.0"
# pattern = "null-deleter"
# severity = "memory"
# expected = "The deleter may be NULL. Then there is nothing to do when the tensor is dropped."
# impact = "The process crashes on a legal tensor, when the result is dropped."
# fix = "In torch.from_dlpack, call the deleter only if it is not NULL. 1.13.0 does it."
# source = "dlpack.h (DLPack 1.3), DLManagedTensor.deleter"
# source_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L301-L307"
# status = "fixed"
# fixed_in = "1.13.0"
# tracker = "https://github.com/pytorch/pytorch/issues/43166"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# gone = ["1.13.0", "1.13.1", "2.0.1", "2.1.2", "2.2.0", "2.2.2", "2.3.0", "2.3.1", "2.4.1", "2.5.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.14.1"]
# listed = 32
# package = "torch"
# python = "3.10"
# shown = ["1.11.0", "1.12.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume:drop=result"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."torch-1.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""torch.from_dlpack of a DLPack tensor whose deleter is NULL: the process crashes when the result is dropped"""

import ctypes as c
import mmap
import struct
import subprocess
import sys

import torch

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


result = torch.from_dlpack(Exporter())
del result
