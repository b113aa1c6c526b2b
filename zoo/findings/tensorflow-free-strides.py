# /// script
# requires-python = "==3.10.*"
# dependencies = ["tensorflow-cpu==2.11.0", "numpy==1.23.5"]
#
# [tool.gridbuf-finding]
# library = "TensorFlow"
# side = "consumer"
# target = "tensorflow.from_dlpack"
# rule = "DP-33"
# plan = '{"export":"dlpack:junk-strides"}'
# passes = "tensorflow-cpu-2.21.0"
# severity = "refusal"
# expected = "No index uses the stride of an axis of extent 1, so any value is taken."
# impact = "Tensors of one row or column from other libraries have to be copied first."
# fix = "In from_dlpack, do not compare the stride of an axis of extent 1. 2.14.1 does so."
# status = "fixed"
# fixed_in = "2.14.1"
# tracker = "https://github.com/tensorflow/tensorflow/pull/61184"
# counter = """\
# No text says that a consumer must accept a tensor. The strides of an axis that no index uses \
# have no meaning, but a clean refusal reads nothing."""
# counter_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L263-L275"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["2.8.0", "2.9.0", "2.9.3", "2.10.0", "2.10.1", "2.14.0"]
# gone = ["2.14.1", "2.15.0", "2.15.1", "2.16.2", "2.21.0"]
# listed = 32
# package = "tensorflow-cpu"
# python = "3.10"
# shown = ["2.11.0", "2.11.1", "2.12.1", "2.13.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "InvalidArgumentError: Invalid strides array from DLPack"
# expected = "the array, as from the plain export"
# outcome = "FRAGILE"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."tensorflow-cpu-2.11.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: one element with the stride 99: Invalid strides array from DLPack"
#
# [tool.gridbuf-finding.runs."tensorflow-cpu-2.21.0"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""TensorFlow's from_dlpack refuses one element because of the stride of its axis"""

import ctypes as c
import mmap
import struct
import sys

import tensorflow as tf

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(1), (c.c_int64 * 1)(99)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 0)
managed = c.create_string_buffer(
    tensor + struct.pack("<QQ", data, c.cast(deleter, c.c_void_p).value), 64
)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)
capsule = new(c.addressof(managed), b"dltensor", None)
try:
    tf.experimental.dlpack.from_dlpack(capsule)
except tf.errors.InvalidArgumentError as error:
    sys.exit(f"defect: one element with the stride 99: {error}")
