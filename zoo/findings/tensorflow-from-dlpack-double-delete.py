# /// script
# requires-python = "==3.12.*"
# dependencies = ["tensorflow-cpu==2.21.0"]
#
# [tool.gridbuf-finding]
# library = "TensorFlow"
# side = "consumer"
# target = "tensorflow.from_dlpack"
# rule = "DP-08"
# plan = '{"export":"dlpack:cuda"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "memory"
# expected = "A tensor that is refused is not deleted, or its capsule is renamed first."
# impact = "The destructor of the capsule deletes the tensor a second time."
# fix = """\
# In from_dlpack, rename the capsule to used_dltensor before the deleter can be called, or leave a \
# refused tensor to its capsule."""
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
# actual = "the consumer deleted the tensor, and the capsule's destructor did so again"
# expected = "a capsule that is renamed or disarmed when its tensor is taken"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."tensorflow-cpu-2.21.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: deleted, and its capsule will delete it again"
# ///
"""TensorFlow's from_dlpack deletes a tensor that it refuses, and does not disarm the capsule"""

import ctypes as c
import mmap
import struct
import sys

import tensorflow as tf

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
calls = []
deleter = c.CFUNCTYPE(None, c.c_void_p)(calls.append)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 2, 0, 1, 2, 32, 1, extents, steps, 0)
managed = c.create_string_buffer(
    tensor + struct.pack("<QQ", data, c.cast(deleter, c.c_void_p).value), 64
)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)
capsule = new(c.addressof(managed), b"dltensor", None)
try:
    tf.experimental.dlpack.from_dlpack(capsule)
except BaseException as error:
    print("refused:", type(error).__name__)
armed = c.pythonapi.PyCapsule_IsValid(c.py_object(capsule), b"dltensor")
sys.exit("defect: deleted, and its capsule will delete it again" if calls and armed else 0)
