# /// script
# requires-python = "==3.12.*"
# dependencies = ["ctranslate2==4.8.5", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "CTranslate2"
# side = "consumer"
# target = "ctranslate2.StorageView.from_array"
# rule = "AI-23"
# plan = '{"dtype":"int32","export":"array-interface:explicit-strides"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "refusal"
# expected = "Strides of (4,) for three int32 in a row say the same as no strides."
# impact = "Exporters that always give strides cannot be imported without a copy."
# fix = """\
# In StorageView.from_array, compare the strides with those of a contiguous array, and refuse only \
# other ones."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: CTranslate2 StorageView from_array big-endian byte order, non \
# contiguous memory strides __array_interface__"""
# counter = """\
# No text says that a consumer must accept a description, and a clean refusal reads nothing."""
# counter_link = """\
# https://numpy.org/doc/2.2/reference/arrays.interface.html#object.__array_interface__"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "ctranslate2"
# python = "3.12"
# listed = 25
# shown = ["3.19.0", "4.8.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "ValueError: StorageView does not support arrays with non contiguous memory"
# expected = "the array, as from the plain export"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."ctranslate2-4.8.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: strides (4,) of three int32: StorageView does not support arrays with non contiguous memory"
# ///
"""ctranslate2.StorageView.from_array refuses a contiguous array that has explicit strides"""

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
