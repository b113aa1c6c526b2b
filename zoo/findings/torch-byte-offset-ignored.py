# /// script
# requires-python = "==3.10.*"
# dependencies = ["torch==1.12.1", "numpy==1.26.4"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "consumer"
# target = "torch.from_dlpack"
# rule = "DL-10"
# plan = '{"export":"dlpack:byte-offset"}'
# passes = "torch-2.13.0"
# pattern = "byte-offset"
# severity = "values"
# expected = """\
# The first element is 16.0: the data begins at data + byte_offset. A consumer that cannot use an \
# offset refuses the tensor."""
# impact = "The tensor has elements from another place, and no error says so."
# fix = "In torch.from_dlpack, add byte_offset to data. 2.10.0 does it."
# status = "fixed"
# fixed_in = "2.10.0"
# tracker = "https://github.com/pytorch/pytorch/issues/168177"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# gone = ["2.10.0", "2.11.0", "2.12.1", "2.14.1"]
# listed = 32
# package = "torch"
# python = "3.10"
# shown = ["1.11.0", "1.12.1", "1.13.0", "1.13.1", "2.0.1", "2.1.2", "2.2.0", "2.2.2", "2.3.0", "2.3.1", "2.4.1", "2.5.0", "2.9.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "-2.4983353906949635e-127"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."torch-1.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the first element is 0.0, not 16.0"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""torch.from_dlpack ignores byte_offset of a DLPack tensor, and reads other elements"""

import ctypes as c
import mmap
import struct
import sys

import torch

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 64)
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


try:
    first = float(torch.from_dlpack(Exporter())[0])
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: the first element is {first}, not 16.0" if first != 16 else 0)
