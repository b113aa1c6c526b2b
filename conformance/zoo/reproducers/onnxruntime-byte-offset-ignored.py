# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "zoo/consumers.py:onnxruntime_from_dlpack"
# rule = "DL-10"
# plan = '{"export":"dlpack:byte-offset"}'
# also_affected = ["onnxruntime-1.24.2"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# why = "dlpack.h: the first element is at data + byte_offset."
# seen = """\
# A capsule made with ctypes with byte_offset 64: OrtValue.numpy() shows the bytes before the \
# elements."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: onnxruntime OrtValue from_dlpack byte_offset ignored NULL \
# deleter crash"""
# ///
"""OrtValue.from_dlpack ignores byte_offset of a DLPack tensor, and reads other elements."""

import ctypes as c
import mmap
import struct
import sys

from onnxruntime.capi._pybind_state import OrtValue

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
capsule = new(c.addressof(managed), b"dltensor", None)
try:
    first = float(OrtValue.from_dlpack(capsule, False).numpy()[0])
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: the first element is {first}, not 16.0" if first != 16 else 0)
