# /// script
# requires-python = "==3.12.*"
# dependencies = ["tensorflow-cpu==2.21.0"]
#
# [tool.gridbuf-finding]
# library = "TensorFlow"
# side = "consumer"
# target = "tensorflow.from_dlpack"
# rule = "DL-23"
# plan = '{"shape":[1,4],"dtype":"float32","export":"dlpack:lanes"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "values"
# expected = """\
# 2 elements of 2 lanes are four numbers. A consumer that has no lanes refuses the tensor."""
# impact = "Half of the numbers are lost, and no error says so."
# fix = "In from_dlpack, refuse a tensor whose dtype.lanes is not 1, as other types are refused."
# source = "dlpack.h (DLPack 1.3), DLDataType.lanes"
# source_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L213-L214"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: tensorflow dlpack string tensor __dlpack__ Check failed abort; \
# lanes ignored; double delete capsule not renamed"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "tensorflow-cpu"
# python = "3.12"
# listed = 10
# shown = ["2.16.1", "2.18.0", "2.19.0", "2.19.1", "2.20.0", "2.21.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "shape [1]"
# expected = "shape [1, 4]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: BufferError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."tensorflow-cpu-2.21.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 2 elements of 2 lanes became [0.0, 1.0]"
# ///
"""TensorFlow's from_dlpack ignores lanes of a DLPack type: half of the numbers are lost"""

import ctypes as c
import mmap
import struct
import sys

import tensorflow as tf

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(2), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 2, extents, steps, 0)
managed = c.create_string_buffer(
    tensor + struct.pack("<QQ", data, c.cast(deleter, c.c_void_p).value), 64
)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)
capsule = new(c.addressof(managed), b"dltensor", None)
try:
    values = tf.experimental.dlpack.from_dlpack(capsule).numpy().ravel().tolist()
except tf.errors.InvalidArgumentError as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: 2 elements of 2 lanes became {values}" if len(values) != 4 else 0)
