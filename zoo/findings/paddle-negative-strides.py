# /// script
# requires-python = "==3.12.*"
# dependencies = ["paddlepaddle==3.3.1"]
#
# [tool.gridbuf-finding]
# library = "PaddlePaddle"
# side = "consumer"
# target = "paddle.from_dlpack"
# rule = "DL-14"
# also_rules = ["XA-15"]
# plan = '{"export":"dlpack-legacy","shape":[2],"views":[["reverse",0]]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "values"
# expected = "numpy() gives [2.0, 1.0], or from_dlpack refuses negative strides."
# impact = "numpy() has other values than the array, or fails with MemoryError."
# fix = "In paddle.from_dlpack, refuse negative strides, or copy such a tensor."
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: paddle from_dlpack negative strides numpy() tolist wrong values \
# MemoryError reversed array"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["2.6.2", "3.2.0", "3.2.2"]
# package = "paddlepaddle"
# python = "3.12"
# listed = 9
# shown = ["3.3.0", "3.3.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "4.64846950933657e-310, by x.tolist()"
# expected = "1.2303742345927276e-142 at element [0]"
# note = "called with copy=None"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."paddlepaddle-3.3.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: numpy() has other values than 2.0, 1.0"
# ///
"""paddle.Tensor.numpy of a reversed array that from_dlpack imported: other memory is read, or MemoryError"""

import sys

import numpy as np
import paddle

reversed_array = np.array([1.0, 2.0])[::-1]
tensor = paddle.from_dlpack(reversed_array)
try:
    values = tensor.numpy()
except MemoryError:
    sys.exit("defect: MemoryError for two elements")
except BufferError as error:
    sys.exit(print(f"refused: {error}"))
if not np.array_equal(values, reversed_array):
    sys.exit("defect: numpy() has other values than 2.0, 1.0")
