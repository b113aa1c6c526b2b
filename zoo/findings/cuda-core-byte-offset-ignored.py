# /// script
# requires-python = "==3.13.*"
# dependencies = ["cuda-core==1.1.1", "cuda-bindings==13.3.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "cuda.core"
# side = "consumer"
# target = "zoo/consumers.py:cuda_core_view"
# rule = "DL-10"
# plan = '{"export":"dlpack:byte-offset"}'
# passes = "cuda-core-1.2.2"
# pattern = "byte-offset"
# severity = "values"
# expected = """\
# The first element is 16.0: the data begins at data + byte_offset. A consumer that cannot use an \
# offset refuses the tensor."""
# impact = "The view has elements from another place, and no error says so."
# fix = "In StridedMemoryView.from_dlpack, add byte_offset to data."
# status = "fixed"
# fixed_in = "1.2.0"
# tracker = "https://github.com/NVIDIA/cuda-python/issues/2592"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.1.1", "0.4.2"]
# gone = ["1.2.0", "1.2.1", "1.2.2"]
# listed = 19
# package = "cuda-core"
# python = "3.13"
# series = 6
# shown = ["0.5.0", "0.5.1", "0.6.0", "0.7.0", "1.0.1", "1.1.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "-2.4983353906949635e-127"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."cuda-core-1.1.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the first element is 0.0, not 16.0"
#
# [tool.gridbuf-finding.runs."cuda-core-1.2.2"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""StridedMemoryView.from_dlpack of cuda.core ignores byte_offset of a DLPack tensor, and reads other elements"""

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
    first = c.c_float.from_address(
        StridedMemoryView.from_dlpack(Exporter(), stream_ptr=-1).ptr
    ).value
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: the first element is {first}, not 16.0" if first != 16 else 0)
