# /// script
# requires-python = "==3.12.*"
# dependencies = ["warp-lang==1.19.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Warp"
# side = "consumer"
# target = "warp.from_dlpack"
# rule = "DL-10"
# plan = '{"export":"dlpack:byte-offset"}'
# also_affected = ["warp-lang-1.13.0"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# pattern = "byte-offset"
# severity = "values"
# expected = """\
# The first element is 16.0: the data begins at data + byte_offset. A consumer that cannot use an \
# offset refuses the tensor."""
# impact = "The Warp array has elements from another place, and no error says so."
# fix = "In warp.from_dlpack, add byte_offset to data."
# status = "reported"
# tracker = "https://github.com/NVIDIA/warp/pull/1573"
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
# actual = "-2.4983353906949635e-127"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."warp-lang-1.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the first element is 0.0, not 16.0"
#
# [tool.gridbuf-finding.runs."warp-lang-1.19.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the first element is 0.0, not 16.0"
# ///
"""warp.from_dlpack ignores byte_offset of a DLPack tensor, and reads other elements"""

import ctypes as c
import mmap
import struct
import sys

import warp

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


warp.config.quiet = True
warp.init()

try:
    first = float(warp.from_dlpack(Exporter()).numpy()[0])
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: the first element is {first}, not 16.0" if first != 16 else 0)
