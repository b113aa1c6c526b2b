# /// script
# requires-python = "==3.12.*"
# dependencies = ["arro3-core==0.9.1", "pyarrow==26.0.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "arro3"
# side = "consumer"
# target = "zoo/consumers.py:arro3_array"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"dtype":"float64","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The Arrow array has other numbers than the caller gave, and no error says so."
# fix = """\
# In Array.from_numpy, convert an array whose dtype is not in native byte order \
# (`astype(dtype.newbyteorder('='))`), or raise ValueError."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = "2026-11-24, threads on GitHub: arro3 Array.from_numpy big-endian byte order"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.1.0"]
# gone = ["0.2.1", "0.3.0", "0.3.1"]
# package = "arro3-core"
# python = "3.12"
# listed = 24
# shown = ["0.4.0", "0.5.0", "0.9.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5634076072010716e-297"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."arro3-core-0.9.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [3.03865e-319, 3.16e-322, 1.0435e-320, 2.0553e-320]"
# ///
"""arro3's Array.from_numpy reads big-endian arrays as little-endian ones"""

import sys

import arro3.core
import numpy as np

source = np.arange(1, 5, dtype=">f8")
try:
    copy = arro3.core.Array.from_numpy(source).to_numpy()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
