# /// script
# requires-python = "==3.12.*"
# dependencies = ["mpi4py==4.1.2", "mpich==5.0.2", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "mpi4py"
# side = "consumer"
# target = "mpi4py.MPI.memory"
# rule = "DL-22"
# plan = '{"export":"dlpack:major-2"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "form"
# expected = """\
# A tensor of another major version is refused: its layout is unknown, and only the deleter may be \
# used."""
# impact = """\
# There is no version 2 yet. When there is one, MPI.memory reads fields at places where they are \
# not."""
# fix = """\
# In MPI.memory, compare version.major with 1 before any other field of the capsule is read. Call \
# the deleter and raise BufferError if it differs."""
# status = "new"
# searched = "2026-11-24, threads on GitHub: mpi4py dlpack versioned capsule major version check"
# picture = """
# DLManagedTensorVersioned  | version 2.0 | manager_ctx | deleter | unknown layout … |
# may be used                 ^                           ^
# is used                     ^                           ^         ^ read as shape, strides, data"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.4.0", "3.1.2", "4.0.0", "4.0.3"]
# package = "mpi4py"
# python = "3.12"
# listed = 23
# shown = ["4.1.0", "4.1.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: BufferError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."mpi4py-4.1.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: version 2.0 was taken, with 16 bytes"
# ///
"""mpi4py.MPI.memory reads a capsule of major version 2 as if it were version 1"""

import ctypes as c
import mmap
import struct
import sys

from mpi4py import MPI

numbers = (c.c_float * 1024).from_buffer(mmap.mmap(-1, 4096))
numbers[:] = range(1024)
shape, strides = (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
# DLTensor of dlpack.h: data, device, ndim, dtype, shape, strides, byte_offset
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 0)
head = struct.pack(
    "<IIQQQ", 2, 0, data, c.cast(deleter, c.c_void_p).value, 0
)  # version, context, deleter, flags
managed = c.create_string_buffer(head + tensor, 80)
new = c.pythonapi.PyCapsule_New
new.restype, new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exporter:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return new(c.addressof(managed), b"dltensor_versioned", None)


try:
    size = MPI.memory(Exporter()).nbytes
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: version 2.0 was taken, with {size} bytes")
