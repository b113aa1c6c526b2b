# /// script
# requires-python = "==3.12.*"
# dependencies = ["paddlepaddle==3.3.1"]
#
# [tool.gridbuf-finding]
# library = "PaddlePaddle"
# side = "consumer"
# target = "paddle.from_dlpack"
# rule = "DL-28"
# plan = '{"export":"dlpack:null-context"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "leak"
# expected = """\
# The deleter is called when the tensor is gone. manager_ctx belongs to the producer and may be \
# NULL."""
# impact = "The memory of each imported tensor is never freed if its producer needs no context."
# fix = """\
# In paddle.from_dlpack, decide by deleter, not by manager_ctx, whether there is something to \
# call."""
# source = "dlpack.h (DLPack 1.3), DLManagedTensor.manager_ctx"
# source_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L297-L300"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: PaddlePaddle from_dlpack byte_offset ignored manager_ctx NULL \
# deleter not called leak"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2.6.2", "3.2.0", "3.2.2"]
# package = "paddlepaddle"
# python = "3.12"
# listed = 9
# shown = ["3.3.0", "3.3.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "it was not called"
# expected = "the deleter called in the end, whatever manager_ctx is"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."paddlepaddle-3.3.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the tensor is gone, and the deleter was not called"
# ///
"""paddle.from_dlpack never calls the deleter of a tensor whose manager_ctx is NULL"""

import ctypes as c
import gc
import mmap
import struct
import sys

import paddle

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
calls = []
deleter = c.CFUNCTYPE(None, c.c_void_p)(calls.append)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 0)
managed = c.create_string_buffer(
    tensor + struct.pack("<QQ", 0, c.cast(deleter, c.c_void_p).value), 64
)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor", None)


tensor = paddle.from_dlpack(Exporter())
del tensor
gc.collect()
sys.exit("defect: the tensor is gone, and the deleter was not called" if not calls else 0)
