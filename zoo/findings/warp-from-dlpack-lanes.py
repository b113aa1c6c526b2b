# /// script
# requires-python = "==3.12.*"
# dependencies = ["warp-lang==1.19.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Warp"
# side = "consumer"
# target = "warp.from_dlpack"
# rule = "DL-23"
# plan = '{"shape":[5,4],"dtype":"float32","export":"dlpack:lanes"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "values"
# expected = """\
# The rows do not overlap: an element has two lanes, and strides count elements. A consumer that \
# has no lanes refuses the tensor."""
# impact = "The second row begins inside the first, and no error says so."
# fix = "In warp.from_dlpack, multiply the strides by dtype.lanes, or refuse lanes other than 1."
# source = "dlpack.h (DLPack 1.3), DLDataType.lanes"
# source_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L213-L214"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: NVIDIA warp from_dlpack byte_offset lanes vector dtype strides \
# bfloat16 array interface"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.2.0", "0.6.2", "0.9.0", "0.11.0", "0.13.0"]
# package = "warp-lang"
# python = "3.12"
# listed = 54
# shown = ["0.15.0", "1.4.0", "1.9.0", "1.12.1", "1.13.0", "1.15.0", "1.19.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "2.9825357489999e-27"
# expected = "8.231955206231914e+29 at element [1, 0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: BufferError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."warp-lang-1.19.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[[0.0, 1.0], [1.0, 2.0]], [[2.0, 3.0], [3.0, 4.0]]], not [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]"
# ///
"""warp.from_dlpack makes a last axis of lanes and keeps the strides of the whole elements: rows overlap"""

import ctypes as c
import mmap
import struct
import sys

import warp

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 2)(2, 2), (c.c_int64 * 2)(2, 1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 2, 2, 32, 2, extents, steps, 0)
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


warp.config.quiet = True
warp.init()
try:
    rows = warp.from_dlpack(Exporter()).numpy().tolist()
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
wanted = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
sys.exit(f"defect: {rows}, not {wanted}" if rows != wanted else 0)
