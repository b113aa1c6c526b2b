# /// script
# requires-python = "==3.12.*"
# dependencies = ["nanoarrow==0.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanoarrow"
# side = "consumer"
# target = "zoo/buffer_consumers.py:nanoarrow_buffer"
# rule = "DL-08"
# also_rules = ["DP-30"]
# plan = '{"shape":[1,1],"export":"dlpack:null-strides"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "memory"
# expected = "A tensor of 2 x 4 float64 with NULL strides becomes a buffer of 64 bytes."
# impact = "The buffer is 8 times as long as the tensor. Reading it reads other memory of the process."
# fix = """\
# In CBuffer.from_dlpack, multiply the size of one element by the product of the extents, once. A \
# tensor without dimensions then has the size of one element, too."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: nanoarrow c_buffer dlpack strides lanes 0-d tensor size"""
# picture = """
# tensor              | 8 elements |
# buffer of nanoarrow | 8 elements | 56 elements of other memory |"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "64 bytes"
# expected = "8 bytes"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanoarrow-0.9.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: 512 bytes, not 64; element 8 is 7.0, of other memory"
# ///
"""nanoarrow.c_buffer of a two-dimensional DLPack tensor with NULL strides is longer than the tensor"""

import ctypes as c
import struct
import sys

import nanoarrow

memory = (c.c_double * 64)(*[1.0] * 8, *[7.0] * 56)  # the tensor has only the first 8
shape = (c.c_int64 * 2)(2, 4)
data, extents = map(c.addressof, (memory, shape))
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 2, 2, 64, 1, extents, 0, 0)
managed = c.create_string_buffer(tensor + struct.pack("<QQ", 0, 0), 64)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor", None)


try:
    buffer = nanoarrow.c_buffer(Exporter())
except (BufferError, NotImplementedError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
if buffer.size_bytes > 64:
    value = memoryview(buffer)[8]
    sys.exit(f"defect: {buffer.size_bytes} bytes, not 64; element 8 is {value}, of other memory")
