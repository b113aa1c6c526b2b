# /// script
# requires-python = "==3.12.*"
# dependencies = ["apache-tvm-ffi==0.1.15.post2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "TVM FFI"
# side = "consumer"
# target = "tvm_ffi.from_dlpack"
# rule = "DX-03"
# plan = '{"export":"exchange:major-2-table"}'
# severity = "memory"
# expected = """\
# A table of another major version is not used: its layout is unknown. Here __dlpack__ works."""
# impact = """\
# The process crashes. There is no version 2 yet, so this needs an exporter that is ahead of \
# DLPack."""
# fix = """\
# In tvm_ffi.from_dlpack, compare version.major of the table with 1, and use __dlpack__ if it \
# differs."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: tvm ffi __dlpack_c_exchange_api__ version check major \
# DLPackExchangeAPI"""
# picture = """
# DLPackExchangeAPI  | version 2.0 | prev_api = NULL | unknown layout … |
# may be read          ^             ^
# is called                                            ^ as managed_tensor_from_py_object_no_sync
# """
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# gone = ["0.1.0", "0.1.2", "0.1.3", "0.1.4"]
# listed = 21
# package = "apache-tvm-ffi"
# python = "3.12"
# series = 1
# shown = ["0.1.5", "0.1.8.post2", "0.1.15.post2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "its functions were called"
# expected = "a table of major version 2 is not used"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."apache-tvm-ffi-0.1.15.post2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""tvm_ffi.from_dlpack calls functions of an exchange table of major version 2, whose layout it cannot know"""

import ctypes as c
import subprocess
import sys

if len(sys.argv) == 1:
    child = subprocess.run([sys.executable, __file__, "child"], stderr=subprocess.DEVNULL)
    sys.exit(
        f"defect: the process died of signal {-child.returncode}" if child.returncode < 0 else 0
    )

import numpy as np
import tvm_ffi

# DLPackExchangeAPIHeader of dlpack.h: version 2.0, no older table. What follows is not version 1's: no functions.
table = (c.c_uint64 * 16)(2, 0, *[8] * 14)
c.pythonapi.PyCapsule_New.restype = c.py_object
c.pythonapi.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]


class Exporter:
    __dlpack_c_exchange_api__ = c.pythonapi.PyCapsule_New(
        c.addressof(table), b"dlpack_exchange_api", None
    )

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


tvm_ffi.from_dlpack(Exporter(np.zeros(3)))
