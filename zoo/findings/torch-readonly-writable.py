# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "producer"
# target = "torch.readonly"
# rule = "DL-04"
# plan = '{"readonly":true}'
# severity = "memory"
# expected = "The read-only flag is set, so that NumPy's array is not writable."
# impact = "A write that NumPy allows crashes the process."
# fix = """\
# In torch.frombuffer, remember that the memory is read-only, and set \
# DLPACK_FLAG_BITMASK_READ_ONLY in __dlpack__."""
# status = "acknowledged"
# tracker = "https://github.com/pytorch/pytorch/issues/5442"
# counter = """\
# PyTorch has no read-only tensors, warns when it takes such memory, and calls a write undefined \
# behaviour."""
# counter_link = "https://github.com/pytorch/pytorch/pull/33615"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["2.15.0"]
# gone = ["1.13.0", "2.4.1", "2.8.0"]
# package = "torch"
# python = "3.11"
# listed = 30
# shown = ["2.9.0", "2.10.0", "2.13.0", "2.14.0", "2.14.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "DLPack says writable"
# expected = "read-only, as the memory is mapped"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""A PyTorch tensor over read-only pages is exported as writable: NumPy's write ends the process"""

import mmap
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

if sys.argv[1:]:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryFile() as file:
        file.write(bytes(4096))
        file.flush()
        pages = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ)
    array = np.from_dlpack(torch.frombuffer(pages, dtype=torch.uint8))
    if array.flags.writeable:
        array[0] = 1
    sys.exit(0)
code = subprocess.run([sys.executable, __file__, "write"]).returncode
sys.exit(f"defect: the process died of signal {-code}" if code < 0 else code)
