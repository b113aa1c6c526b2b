# /// script
# requires-python = "==3.12.*"
# dependencies = ["xgboost-cpu==3.4.1", "scipy==1.18.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "XGBoost"
# side = "consumer"
# target = "zoo/consumers.py:xgboost_data"
# rule = "AI-34"
# also_rules = ["AS-05", "PB-20"]
# plan = '{"shape":[2,2],"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [[1.0, 2.0], [3.0, 4.0]], or the array is refused. The first character of typestr \
# is the byte order."""
# impact = "The DMatrix has other numbers than the caller gave, and no error says so."
# fix = """\
# Where DMatrix parses the array interface, read the first character of typestr, and refuse '>' on \
# a little-endian machine."""
# status = "fixed"
# fixed_in = "the trunk"
# tracker = "https://github.com/dmlc/xgboost/issues/12433"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "xgboost-cpu"
# python = "3.12"
# listed = 18
# shown = ["2.1.1", "3.4.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0, 0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."xgboost-cpu-3.4.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[1.0, 2.0], [3.0, 4.0]] became [[4.600602988224807e-41, 8.96831017167883e-44], [2.304855714121459e-41, 4.600743118071239e-41]]"
# ///
"""xgboost.DMatrix reads big-endian matrices as little-endian ones"""

import sys

import numpy as np
import xgboost

source = np.arange(1, 5, dtype=">f4").reshape(2, 2)
try:
    copy = xgboost.DMatrix(source).get_data().toarray()
except (TypeError, ValueError, xgboost.core.XGBoostError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
