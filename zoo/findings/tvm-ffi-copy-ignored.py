# /// script
# requires-python = "==3.12.*"
# dependencies = ["apache-tvm-ffi==0.1.15.post2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "TVM FFI"
# side = "producer"
# target = "tvm_ffi"
# rule = "DP-20"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = """\
# copy=True copies, or raises BufferError, as it does where max_version is given."""
# impact = """\
# A consumer that asked for a copy writes into the memory of the tensor, or sees later writes to it."""
# fix = """\
# In __dlpack__ of tvm_ffi.Tensor, check copy and dl_device before max_version, so that both \
# branches refuse what they cannot do."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: tvm-ffi __dlpack__ copy=True max_version None shares memory"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the memory of the array for dl_device=(1,0), copy=True"
# expected = "separate memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."apache-tvm-ffi-0.1.15.post2"]
# date = "2026-11-26"
# exit = 1
# told = "defect: a write to the tensor made element 0 of the copy 7.0"
# ///
"""__dlpack__ of tvm_ffi.Tensor ignores copy=True if max_version is not given, and shares its memory"""

import sys

import numpy as np
import tvm_ffi

memory = np.zeros(4, np.float32)
tensor = tvm_ffi.from_dlpack(memory)


class Copied:
    """Hands out the capsule of tensor.__dlpack__(copy=True)."""

    def __dlpack__(self, **_):
        return tensor.__dlpack__(copy=True)

    def __dlpack_device__(self):
        return tensor.__dlpack_device__()


try:
    copied = np.from_dlpack(Copied())
except BufferError as error:
    print("refused:", error)
    sys.exit(0)
memory[0] = 7
value = float(copied[0])
sys.exit(f"defect: a write to the tensor made element 0 of the copy {value}" if value else 0)
