# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "producer"
# target = "torch"
# also_targets = ["torch.strided"]
# rule = "DL-05"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "The flag IS_COPIED (2) is set when a copy was made."
# impact = "A consumer that has to own the data alone cannot tell that it does, and copies again."
# fix = "In torch.Tensor.__dlpack__, set the flag IS_COPIED if copy=True made a copy."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pytorch __dlpack__ copy=True DLPACK_FLAG_BITMASK_IS_COPIED not \
# set"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["1.13.0", "2.4.1", "2.8.0", "2.15.0"]
# package = "torch"
# python = "3.11"
# listed = 30
# shown = ["2.9.0", "2.10.0", "2.13.0", "2.14.0", "2.14.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "clear in what copy=True returned"
# expected = "is-copied set on a copy"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: flags are 0x0, without 0x2"
# ///
"""torch.Tensor.__dlpack__(copy=True) copies and leaves the flag IS_COPIED clear"""

import ctypes as c
import sys

import torch

capsule = torch.zeros(2).__dlpack__(max_version=(1, 0), copy=True)
pointer = c.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = c.c_void_p, (c.py_object, c.c_char_p)
flags = c.c_uint64.from_address(pointer(capsule, b"dltensor_versioned") + 24).value
sys.exit(f"defect: flags are {flags:#x}, without 0x2" if not flags & 2 else 0)
