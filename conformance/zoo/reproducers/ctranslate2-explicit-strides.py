"""StorageView.from_array refuses the strides of a contiguous array if they are written out."""

import sys

import ctranslate2
import numpy as np


class Exporter:
    memory = np.arange(3, dtype="i4")
    __array_interface__ = dict(memory.__array_interface__, strides=(4,))


try:
    ctranslate2.StorageView.from_array(Exporter())
except ValueError as error:
    sys.exit(f"defect: strides (4,) of three int32: {error}")
