# /// script
# requires-python = "==3.12.*"
# dependencies = ["gt4py==1.2.3", "dace==2.0.0a10", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "GT4Py"
# side = "producer"
# target = "gt4py"
# also_targets = ["gt4py.next", "gt4py.buffer"]
# rule = "AI-22"
# replayed_as = "GT-24"
# plan = '{"shape":[32769,16384],"fill":null}'
# also_affected = ["gt4py-1.1.12"]
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "memory"
# expected = "The block has as many bytes as the array or field over it."
# impact = "Reading the last element of a large array or field crashes the process."
# fix = """\
# In the allocation that gt4py.storage.empty and gtx.empty share, multiply the extents as Python \
# integers, not as numpy.int32."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: gt4py storage allocation int32 overflow large array size out of \
# bounds"""
# picture = """
# shape (32769, 16384) of float64: 4,295,098,368 bytes
# computed at 32 bits:                   131,072 bytes
# memory         | 128 KiB |  not the array's … up to 4 GiB"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the array reaches bytes 0 … 4295098368 from its first element, which are not all mapped"
# expected = "4295098368 bytes of mapped memory"
# note = "2^31 or 2^32 bytes and more are asked for on purpose"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."gt4py-1.1.12"]
# date = "2026-11-25"
# exit = 1
# told = "defect: array: the process died of signal 11, field: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."gt4py-1.2.3"]
# date = "2026-11-25"
# exit = 1
# told = "defect: array: the process died of signal 11, field: the process died of signal 11"
# ///
"""GT4Py multiplies extents at 32 bits: arrays and fields of 4 GiB have a few bytes of memory"""

import subprocess
import sys

import gt4py.storage
import numpy as np
from gt4py import next as gtx


def array():
    return gt4py.storage.empty((32769, 16384), np.float64, backend="numpy")


def field():
    return gtx.empty({gtx.Dimension("Cell"): 32769, gtx.Dimension("C2E"): 16384}).ndarray


if len(sys.argv) < 2:
    ends = {
        f.__name__: subprocess.run([sys.executable, __file__, f.__name__]).returncode
        for f in (array, field)
    }
    died = [f"{name}: the process died of signal {-end}" for name, end in ends.items() if end < 0]
    sys.exit("defect: " + ", ".join(died) if died else 2 * any(ends.values()))

made = {"array": array, "field": field}[sys.argv[1]]()
print("it has", made.nbytes, "bytes; reading its last element", flush=True)
print(made[-1, -1])
