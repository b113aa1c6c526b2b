"""torch.Tensor.__dlpack__(copy=True) copies and leaves the flag IS_COPIED clear."""

import ctypes as c
import sys

import torch

capsule = torch.zeros(2).__dlpack__(max_version=(1, 0), copy=True)
pointer = c.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = c.c_void_p, (c.py_object, c.c_char_p)
flags = c.c_uint64.from_address(pointer(capsule, b"dltensor_versioned") + 24).value
sys.exit(f"defect: flags are {flags:#x}, without 0x2" if not flags & 2 else 0)
