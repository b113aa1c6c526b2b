# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "onnxruntime.OrtValue.from_dlpack"
# rule = "DL-10"
# plan = '{"export":"dlpack:byte-offset"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# pattern = "byte-offset"
# severity = "values"
# expected = """\
# The first element is 16.0: the data begins at data + byte_offset. A consumer that cannot use an \
# offset refuses the tensor."""
# impact = "The OrtValue has elements from another place, and no error says so."
# fix = "In OrtValue.from_dlpack, add byte_offset to data. 1.32.0 does it."
# status = "fixed"
# fixed_in = "1.32.0"
# tracker = "https://github.com/microsoft/onnxruntime/releases/tag/v1.32.0"
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
# actual = "-2.4983353906949635e-127"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the first element is 0.0, not 16.0"
# ///
"""onnxruntime's OrtValue.from_dlpack ignores byte_offset of a DLPack tensor, and reads other elements"""

import ctypes as c
import mmap
import struct
import sys

import onnxruntime

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
    first = float(onnxruntime.OrtValue.from_dlpack(Exporter()).numpy()[0])
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: the first element is {first}, not 16.0" if first != 16 else 0)
