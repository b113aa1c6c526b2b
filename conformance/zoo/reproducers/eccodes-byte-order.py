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
# why = """\
# The first character of typestr is the byte order: a consumer uses it or refuses the array \
# (AI-34). The address of the array is cast to double* if its elements are numpy.float64, which \
# says nothing of the byte order."""
# seen = "[1.0, 2.0] as '>f8' comes back as other numbers, without an error."
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: eccodes-python codes_set_double_array numpy byte order \
# big-endian ctypes.data"""
# ///
"""eccodes.codes_set_double_array reads big-endian arrays as little-endian ones."""

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
