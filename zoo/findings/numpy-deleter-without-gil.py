# /// script
# requires-python = "==3.10.*"
# dependencies = ["numpy==1.23.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "producer"
# target = "numpy"
# rule = "DL-20"
# plan = "{}"
# passes = "numpy-2.5.5"
# also_affected = ["numpy-1.22.0"]
# severity = "memory"
# expected = "The deleter acquires the GIL itself: a consumer may call it from any thread."
# impact = """\
# A library that releases the array outside Python changes reference counts without the GIL. TensorFlow \
# does it: the process dies when it drops the tensor of a numpy.memmap."""
# fix = "In the deleter of __dlpack__, call PyGILState_Ensure before Py_DECREF, as 1.24.0 does."
# status = "fixed"
# fixed_in = "1.24.0"
# tracker = "https://github.com/numpy/numpy/issues/22507"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.3.0", "1.16.2", "1.19.5", "1.21.6"]
# gone = ["1.24.0", "1.24.1", "1.24.3", "1.24.4", "1.25.1", "1.25.2", "1.26.4", "2.0.0", "2.0.2", "2.1.3", "2.2.6"]
# listed = 116
# package = "numpy"
# python = "3.10"
# series = 8
# shown = ["1.22.0", "1.22.1", "1.22.4", "1.23.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "its references changed by -1 while another thread held the GIL"
# expected = "a deleter that acquires the GIL before it uses a Python object"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "the deleter ran on a thread that Python did not know"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-30"
# exit = 1
# told = "defect: deleted without the GIL: PyThreadState_Get: the function must be called with the GIL held"
#
# [tool.gridbuf-finding.runs."numpy-1.23.5"]
# date = "2026-11-30"
# exit = 1
# told = "defect: deleted without the GIL: PyThreadState_Get: the function must be called with the GIL held"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-30"
# exit = 0
# told = ""
# ///
"""The deleter of NumPy's DLPack tensors changes reference counts without the GIL"""

import ctypes
import subprocess
import sys

import numpy as np


class Labelled(np.ndarray):
    """An ndarray that owns Python objects, as numpy.memmap does."""


def delete():
    array = np.arange(3.0).view(Labelled)
    array.label = ["x"]
    capsule = array.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = get(capsule, b"dltensor")
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor")
    address = ctypes.c_void_p.from_address(tensor + 56).value  # DLManagedTensor.deleter
    del array
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(tensor)  # ctypes releases the GIL


if sys.argv[1:] == ["delete"]:
    delete()
    sys.exit()
np.ndarray.__dlpack__  # of 1.22 and later
child = subprocess.run([sys.executable, __file__, "delete"], capture_output=True, text=True)
text = child.stderr.partition("Fatal Python error: ")[2].partition(",")[0]
sys.exit(f"defect: deleted without the GIL: {text}" if child.returncode < 0 else 0)
