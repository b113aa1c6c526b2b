# /// script
# requires-python = "==3.12.*"
# dependencies = ["av==19.0.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyAV"
# side = "consumer"
# target = "zoo/buffer_consumers.py:av_from_dlpack"
# rule = "DL-19"
# plan = '{"dtype":"uint8","shape":[2,2],"export":"dlpack:null-deleter"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# pattern = "null-deleter"
# severity = "memory"
# expected = "The deleter may be NULL. Then there is nothing to do when the frame is dropped."
# impact = "The process crashes on a legal tensor."
# fix = """\
# In VideoFrame.from_dlpack, call the deleter of the tensor only if it is not NULL."""
# source = "dlpack.h (DLPack 1.3), DLManagedTensor.deleter"
# source_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L301-L307"
# status = "new"
# searched = "2026-11-26, threads on GitHub: PyAV VideoFrame from_dlpack deleter NULL segfault"
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume:drop=result"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."av-19.0.2"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""av.VideoFrame.from_dlpack of a tensor whose deleter is NULL: the process crashes when the frame is dropped"""

import ctypes as c
import mmap
import struct
import subprocess
import sys

import av

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))
pixels = (c.c_uint8 * 4096).from_buffer(mmap.mmap(-1, 4096))
shape, strides = (c.c_int64 * 2)(16, 16), (c.c_int64 * 2)(16, 1)
data, extents, steps = map(c.addressof, (pixels, shape, strides))
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 2, 1, 8, 1, extents, steps, 0)
managed = c.create_string_buffer(tensor + struct.pack("<QQ", data, 0), 64)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor", None)


frame = av.VideoFrame.from_dlpack((Exporter(),), format="gray")
print(frame.to_ndarray().shape, flush=True)
del frame
