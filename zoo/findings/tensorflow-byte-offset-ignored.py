# /// script
# requires-python = "==3.10.*"
# dependencies = ["tensorflow-cpu==2.11.0", "numpy==1.23.5"]
#
# [tool.gridbuf-finding]
# library = "TensorFlow"
# side = "consumer"
# target = "tensorflow.from_dlpack"
# rule = "DL-10"
# plan = '{"export":"dlpack:byte-offset"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# pattern = "byte-offset"
# severity = "values"
# expected = """\
# The first element is 16.0: the data begins at data + byte_offset. A consumer that cannot use an \
# offset refuses the tensor."""
# impact = "The TensorFlow tensor has elements from another place, and no error says so."
# fix = "In from_dlpack, refuse a byte_offset other than 0, or add it to data. 2.14.1 refuses it."
# status = "fixed"
# fixed_in = "2.14.1"
# tracker = "https://github.com/tensorflow/tensorflow/pull/61184"
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
# actual = "-2.4983353906949635e-127"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."tensorflow-cpu-2.11.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the first element is 0.0, not 16.0"
#
# [tool.gridbuf-finding.runs."tensorflow-cpu-2.21.0"]
# date = "2026-11-25"
# exit = 0
# told = "refused: Unsupported byte_offset (64) from DLPack, must be zero"
# ///
"""TensorFlow's from_dlpack ignores byte_offset of a DLPack tensor, and reads other elements"""

import ctypes as c
import mmap
import struct
import sys

import tensorflow as tf

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
    first = float(tf.experimental.dlpack.from_dlpack(capsule)[0])
except tf.errors.InvalidArgumentError as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: the first element is {first}, not 16.0" if first != 16 else 0)
