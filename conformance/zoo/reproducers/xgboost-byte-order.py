"""xgboost.DMatrix reads big-endian matrices as little-endian ones."""

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
