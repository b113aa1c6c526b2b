# /// script
# requires-python = "==3.13.*"
# dependencies = ["cuda-core==0.3.2", "cuda-bindings==13.0.3", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "cuda.core"
# side = "consumer"
# target = "zoo/consumers.py:cuda_core_view"
# rule = "DP-31"
# plan = '{}'
# passes = "cuda-core-1.2.2"
# severity = "leak"
# expected = "The deleter is called when the view is gone."
# impact = "The memory of each tensor that a StridedMemoryView was made of is never freed."
# fix = """\
# In StridedMemoryView, keep the capsule's tensor and call its deleter in __dealloc__. 0.4.0 does \
# it."""
# status = "fixed"
# fixed_in = "0.4.0"
# tracker = "https://github.com/NVIDIA/cuda-python/issues/1043"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.1.1"]
# gone = ["0.4.0", "0.4.1", "0.4.2", "0.5.0", "0.5.1", "0.6.0", "0.7.0", "1.0.1", "1.1.1", "1.2.2"]
# listed = 19
# package = "cuda-core"
# python = "3.13"
# series = 9
# shown = ["0.2.0", "0.3.0", "0.3.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the deleter was never called"
# expected = "memory that is freed after the result"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."cuda-core-0.3.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the view is gone, and the deleter was not called"
#
# [tool.gridbuf-finding.runs."cuda-core-1.2.2"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""A StridedMemoryView of cuda.core never calls the deleter of a DLPack tensor"""

import ctypes as c
import gc
import mmap
import struct
import sys

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
calls = []
deleter = c.CFUNCTYPE(None, c.c_void_p)(calls.append)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 0)
managed = c.create_string_buffer(
    tensor + struct.pack("<QQ", data, c.cast(deleter, c.c_void_p).value), 64
)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)

capsule = new(c.addressof(managed), b"dltensor", None)
methods = {"__dlpack_device__": lambda s: (1, 0), "__dlpack__": lambda s, **keywords: capsule}
exporter = type("Exporter", (), methods)()

try:
    from cuda.core.experimental.utils import StridedMemoryView

    view = StridedMemoryView(exporter, stream_ptr=-1)
except ImportError:
    from cuda.core.utils import StridedMemoryView

    view = StridedMemoryView.from_dlpack(exporter, stream_ptr=-1)
del view
gc.collect()
sys.exit("defect: the view is gone, and the deleter was not called" if not calls else 0)
