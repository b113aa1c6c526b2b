# /// script
# requires-python = "==3.13.*"
# dependencies = ["cuda-core==1.2.2", "cuda-bindings==13.5.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "cuda.core"
# side = "consumer"
# target = "zoo/consumers.py:cuda_core_view"
# rule = "DL-22"
# plan = '{"export":"dlpack:major-2"}'
# also_affected = ["cuda-core-1.1.1"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "form"
# expected = """\
# A tensor of another major version is refused: its layout is unknown, and only the deleter may be \
# used."""
# impact = """\
# There is no version 2 yet. When there is one, StridedMemoryView reads fields at places where \
# they are not."""
# fix = """\
# In StridedMemoryView.from_dlpack, compare version.major with 1 before any other field is read. \
# Call the deleter and raise BufferError if it differs."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: cuda-python StridedMemoryView from_dlpack major version check \
# DLPack version 2"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.1.1", "0.3.2", "0.4.1", "0.4.2"]
# package = "cuda-core"
# python = "3.13"
# listed = 19
# shown = ["0.5.0", "0.5.1", "1.2.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "it was accepted"
# expected = "an error: it says version 2.0, and everything except its deleter is junk"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: BufferError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."cuda-core-1.1.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: version 2.0 was taken, with shape (4,)"
#
# [tool.gridbuf-finding.runs."cuda-core-1.2.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: version 2.0 was taken, with shape (4,)"
# ///
"""StridedMemoryView.from_dlpack of cuda.core reads a capsule of major version 2 as if it were version 1"""

import ctypes as c
import mmap
import struct
import sys

from cuda.core.utils import StridedMemoryView

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 0)
head = struct.pack(
    "<IIQQQ", 2, 0, data, c.cast(deleter, c.c_void_p).value, 0
)  # version, context, deleter, flags
managed = c.create_string_buffer(head + tensor, 80)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor_versioned", None)


try:
    view = StridedMemoryView.from_dlpack(Exporter(), stream_ptr=-1)
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: version 2.0 was taken, with shape {view.shape}")
