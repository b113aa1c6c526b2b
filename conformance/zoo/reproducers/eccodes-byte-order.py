"""codes_set_double_array reads big-endian arrays as little-endian ones."""

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
