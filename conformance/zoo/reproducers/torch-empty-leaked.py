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
# ///
"""torch.from_dlpack never calls the deleter of a tensor without elements."""

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
