# /// script
# requires-python = "==3.10.*"
# dependencies = ["torch==1.12.1", "numpy==1.26.4"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "consumer"
# target = "torch.from_dlpack"
# rule = "DP-31"
# plan = '{"shape":[0]}'
# passes = "torch-2.13.0"
# severity = "leak"
# expected = "The deleter is called, also of a tensor without elements."
# impact = "The structs and the context of each empty tensor are never freed."
# fix = """\
# In torch.from_dlpack, call the deleter of a tensor without elements at once. 2.3.0 does it."""
# status = "fixed"
# fixed_in = "2.3.0"
# tracker = "https://github.com/pytorch/pytorch/issues/117273"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# gone = ["2.3.0", "2.3.1", "2.4.1", "2.5.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.14.1"]
# listed = 32
# package = "torch"
# python = "3.10"
# shown = ["1.11.0", "1.12.1", "1.13.0", "1.13.1", "2.0.1", "2.1.2", "2.2.0", "2.2.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the deleter was never called"
# expected = "memory that is freed after the result"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."torch-1.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the tensor is gone, and the deleter was not called"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""torch.from_dlpack never calls the deleter of a tensor without elements"""

import ctypes as c
import gc
import mmap
import struct
import sys

import torch

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(0), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
calls = []
deleter = c.CFUNCTYPE(None, c.c_void_p)(calls.append)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", 0, 1, 0, 1, 2, 32, 1, extents, steps, 0)
managed = c.create_string_buffer(
    tensor + struct.pack("<QQ", data, c.cast(deleter, c.c_void_p).value), 64
)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor", None)


tensor = torch.from_dlpack(Exporter())
del tensor
gc.collect()
sys.exit("defect: the tensor is gone, and the deleter was not called" if not calls else 0)
