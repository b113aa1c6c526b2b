# /// script
# requires-python = "==3.12.*"
# dependencies = ["ml_dtypes==0.6.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ml_dtypes"
# side = "producer"
# target = "ml_dtypes"
# rule = "AI-07"
# also_rules = ["AS-03"]
# plan = '{"dtype":"float8_e5m2"}'
# severity = "form"
# expected = "The number in typestr is a size that the kind f can have."
# impact = """\
# numpy.dtype refuses the typestr, so a consumer of __array_interface__ cannot take the array."""
# fix = "Give float8_e5m2 the kind V, as the other types of ml_dtypes have."
# status = "reported"
# tracker = "https://github.com/jax-ml/ml_dtypes/issues/216"
# counter = "No text limits the sizes of kind f, and the type has one byte."
# counter_link = "https://github.com/jax-ml/ml_dtypes/issues/216"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.0.1", "0.3.1", "0.3.2"]
# package = "ml_dtypes"
# python = "3.12"
# listed = 16
# shown = ["0.4.0", "0.5.0", "0.6.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "'<f1'"
# expected = "kind 'f' with a size that every reader knows"
# outcome = "ADVISORY"
#
# [tool.gridbuf-finding.runs."ml-dtypes-0.6.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: typestr '<f1': data type '<f1' not understood"
# ///
"""An ml_dtypes array of float8_e5m2 has the typestr '<f1', which NumPy does not read"""

import sys

import ml_dtypes
import numpy as np

typestr = np.zeros(2, ml_dtypes.float8_e5m2).__array_interface__["typestr"]
try:
    np.dtype(typestr)
except TypeError as error:
    sys.exit(f"defect: typestr {typestr!r}: {error}")
