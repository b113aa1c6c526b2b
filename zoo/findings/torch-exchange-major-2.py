# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "producer"
# target = "torch"
# also_targets = ["torch.strided"]
# rule = "DX-13"
# plan = "{}"
# severity = "form"
# expected = """\
# A tensor of another major version is refused: its layout is unknown, and only the deleter may be \
# used."""
# impact = """\
# Version 2 does not exist yet. The import would read its fields at places where they are not."""
# fix = """\
# In the import function of torch's DLPackExchangeAPI, compare version.major with 1 before any other \
# field is read. Call the deleter, raise BufferError and return -1 if it differs."""
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: torch DLPack exchange API managed_tensor_to_py_object major version \
# check fromDLPackVersioned"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-12-01"
# "does not run" = ["1.13.0", "2.4.1", "2.8.0", "2.9.0", "2.9.1", "2.15.0"]
# listed = 30
# package = "torch"
# python = "3.11"
# series = 6
# shown = ["2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "an object"
# expected = "an error for a tensor of version 2.0"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-30"
# exit = 1
# told = "defect: a tensor of version 2.0 became tensor([1., 2., 3., 4.])"
# ///
"""The import of PyTorch's exchange table takes a tensor of major version 2, whose layout it cannot know"""

import ctypes as c
import struct
import sys

import torch

numbers, shape, strides = (c.c_float * 4)(1, 2, 3, 4), (c.c_int64 * 1)(4), (c.c_int64 * 1)(1)
data, extents, steps = map(c.addressof, (numbers, shape, strides))
deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
# DLManagedTensorVersioned of dlpack.h: version, manager_ctx, deleter, flags, dl_tensor
head = struct.pack("<IIQQQ", 2, 0, 0, c.cast(deleter, c.c_void_p).value, 0)
tensor = struct.pack("<QiiiBBHQQQ", data, 1, 0, 1, 2, 32, 1, extents, steps, 0)
managed = c.create_string_buffer(head + tensor, 80)
pointer = c.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = c.c_void_p, (c.py_object, c.c_char_p)
table = pointer(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
# DLPackExchangeAPI of dlpack.h: 2 words of header, then 5 functions; the third imports a tensor
take = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.py_object))(
    c.cast(table, c.POINTER(c.c_void_p))[4]
)
result = c.py_object()
try:
    failed = take(c.addressof(managed), c.byref(result))
except Exception as error:
    print("refused:", error)
    sys.exit(0)
if not failed:
    sys.exit(f"defect: a tensor of version 2.0 became {result.value}")
