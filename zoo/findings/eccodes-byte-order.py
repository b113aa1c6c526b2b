# /// script
# requires-python = "==3.12.*"
# dependencies = ["eccodes==2.50.0", "eccodeslib==2.50.0.33", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "ecCodes"
# side = "consumer"
# target = "zoo/consumers.py:eccodes_values"
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
# impact = "The GRIB message has other numbers than the caller gave, and no error says so."
# fix = """\
# In codes_set_double_array, convert with `numpy.ascontiguousarray(inarray, dtype=float)` before \
# the address is cast to `double*`; `inarray` is the argument."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: eccodes-python codes_set_double_array numpy byte order \
# big-endian ctypes.data"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.9.5", "1.7.0"]
# package = "eccodes"
# python = "3.12"
# listed = 41
# shown = ["1.7.1", "2.37.0", "2.38.3", "2.40.1", "2.50.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5634076072010716e-297"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."eccodes-2.50.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [3.03865e-319, 3.16e-322, 1.0435e-320, 2.0553e-320]"
# ///
"""eccodes.codes_set_double_array reads big-endian arrays as little-endian ones"""

import sys

import eccodes
import numpy as np

source = np.arange(1, 5, dtype=">f8")
try:
    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    for key, value in {"Ni": 4, "Nj": 1, "packingType": "grid_ieee", "precision": 2}.items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_double_array(message, "values", source)
    copy = eccodes.codes_get_double_array(message, "values")
except (TypeError, ValueError, eccodes.CodesInternalError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
