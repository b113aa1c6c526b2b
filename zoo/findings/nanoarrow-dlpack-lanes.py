# /// script
# requires-python = "==3.12.*"
# dependencies = ["nanoarrow==0.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanoarrow"
# side = "consumer"
# target = "zoo/buffer_consumers.py:nanoarrow_buffer"
# rule = "DL-23"
# plan = '{"shape":[1,4],"dtype":"float32","export":"dlpack:lanes"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "values"
# expected = """\
# A tensor of 2 vectors of 4 float32 becomes a buffer of 32 bytes, or an error says that vector \
# types are not supported."""
# impact = "Three quarters of the numbers are lost, and element 1 is a number of vector 0."
# fix = "In dlpack_data_type_to_arrow, raise an error if the lanes of the data type are not 1."
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: nanoarrow c_buffer dlpack strides lanes 0-d tensor size"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "4 bytes"
# expected = "16 bytes"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: BufferError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanoarrow-0.9.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the buffer has [0.0, 1.0]; element [1] is read as 1.0, not as (4, 5, 6, 7)"
# ///
"""nanoarrow.c_buffer ignores the lanes of a DLPack tensor"""

import ctypes as c
import struct
import sys

import nanoarrow

memory = (c.c_float * 8)(*range(8))  # two vectors: 0 to 3, 4 to 7
shape, strides = (c.c_int64 * 1)(2), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (memory, shape, strides))
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 4, extents, steps, 0)
managed = c.create_string_buffer(tensor + struct.pack("<QQ", 0, 0), 64)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor", None)


try:
    values = memoryview(nanoarrow.c_buffer(Exporter())).tolist()
except (BufferError, NotImplementedError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
if values[1] == 1:
    sys.exit(f"defect: the buffer has {values}; element [1] is read as 1.0, not as (4, 5, 6, 7)")
