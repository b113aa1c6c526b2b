# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "producer"
# target = "torch.opaque"
# rule = "DX-06"
# plan = '{"dtype":"complex64"}'
# severity = "values"
# expected = """\
# The exchange table refuses a tensor with the conjugate bit, as __dlpack__ does with BufferError, \
# or exports the conjugate."""
# impact = "A consumer of the exchange table gets the tensor without the conjugation."
# fix = """\
# In the functions of torch's DLPackExchangeAPI, raise BufferError if the tensor has the conjugate \
# bit, as Tensor.__dlpack__ does."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: torch DLPack exchange api conjugate bit conj tensor \
# __dlpack_c_exchange_api"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "an export"
# expected = "a refusal, as __dlpack__"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: element [0] is read as (1+2j), not (1-2j)"
# ///
"""The DLPack exchange table of PyTorch exports a tensor with the conjugate bit as the tensor without it"""

import ctypes as c
import sys

import torch

tensor = torch.tensor([1 + 2j], dtype=torch.complex64).conj()  # 1 - 2j
try:
    tensor.__dlpack__()
except BufferError as error:
    print("__dlpack__ refuses it:", error)
pointer = c.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = c.c_void_p, (c.py_object, c.c_char_p)
table = pointer(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
words = c.cast(table, c.POINTER(c.c_void_p))
# DLPackExchangeAPI of dlpack.h: 2 words of header, then 5 functions; the fourth describes a tensor
describe = c.PYFUNCTYPE(c.c_int, c.py_object, c.c_void_p)(words[5])
described = (c.c_uint64 * 6)()  # a DLTensor, which begins with data and ends with byte_offset
try:
    failed = describe(tensor, c.addressof(described))
except BufferError as error:
    print("refused:", error)
    sys.exit(0)
real, imaginary = (c.c_float * 2).from_address(described[0] + described[5])
if not failed and imaginary != -2:
    sys.exit(f"defect: element [0] is read as {complex(real, imaginary)}, not (1-2j)")
