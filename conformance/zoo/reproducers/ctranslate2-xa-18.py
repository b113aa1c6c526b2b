"""hasattr(storage, '__array_interface__') raises RuntimeError for bfloat16."""

import sys

import ctranslate2
import numpy as np

storage = ctranslate2.StorageView.from_array(np.ones(3, "f4"))
storage = storage.to(ctranslate2.DataType.bfloat16)
try:
    print(hasattr(storage, "__array_interface__"))
except RuntimeError as error:
    sys.exit(f"defect: RuntimeError: {error}")
