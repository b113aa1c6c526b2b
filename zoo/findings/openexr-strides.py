# /// script
# requires-python = "==3.12.*"
# dependencies = ["OpenEXR==3.5.3", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "OpenEXR"
# side = "consumer"
# target = "zoo/consumers.py:openexr_channel"
# rule = "AI-22"
# also_rules = ["PB-32"]
# plan = '{"shape":[2,3],"dtype":"float32","layout":[1,0],"export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "values"
# expected = """\
# The values that come back are [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]], or the array is refused."""
# impact = "The file has the pixels at other places, and no error says so."
# fix = """\
# In OpenEXR.File, make the array of a channel C-contiguous (`py::array::c_style | \
# py::array::forcecast`) before it is written."""
# source = "NumPy reference, ndarray.strides"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.ndarray.strides.html"
# status = "acknowledged"
# tracker = "https://github.com/AcademySoftwareFoundation/openexr/issues/1929"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.0.2", "3.2.7", "3.2.10", "3.2.12", "3.3.0"]
# package = "OpenEXR"
# python = "3.12"
# listed = 57
# shown = ["3.3.1", "3.3.8", "3.5.3"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "3.3611044896826437e-18"
# expected = "2.9825357489999e-27 at element [0, 1]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."openexr-3.5.3"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]] became [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"
# ///
"""OpenEXR.File writes the memory of a channel without regard to its strides"""

import sys

import numpy as np
import OpenEXR

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    OpenEXR.File(header, {"Y": source}).write("x.exr")
    copy = OpenEXR.File("x.exr", separate_channels=True).channels()["Y"].pixels
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
