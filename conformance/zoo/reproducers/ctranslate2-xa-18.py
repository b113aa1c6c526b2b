# /// script
# requires-python = "==3.12.*"
# dependencies = ["ctranslate2==4.8.5", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "CTranslate2"
# side = "producer"
# target = "ctranslate2"
# rule = "XA-18"
# plan = '{"dtype":"bfloat16"}'
# why = """\
# A property without an answer raises AttributeError: only that means "not supported" (AI-29); \
# hasattr must be True or False."""
# seen = "hasattr raises RuntimeError."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: CTranslate2 StorageView from_array big-endian byte order, non \
# contiguous memory strides __array_interface__"""
# counter = """\
# The array interface does not say what a getter raises for a type that it cannot describe."""
# counter_link = "https://numpy.org/doc/stable/reference/arrays.interface.html#object.__array_interface__"
# ///
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
