# /// script
# requires-python = "==3.12.*"
# dependencies = ["skia-python==144.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "skia-python"
# side = "consumer"
# target = "zoo/consumers.py:skia_data"
# rule = "PB-35"
# plan = '{"dtype":"uint8","export":"buffer"}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# pattern = "released-view"
# severity = "memory"
# expected = "The view is held as long as skia.Data uses its memory, so extend raises BufferError."
# impact = "skia.Data points to memory that the bytearray has given back."
# fix = "In skia.Data, keep the view in the release function of the data, or copy the bytes."
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: skia-python Image.fromarray byte order big-endian; skia.Data \
# buffer lifetime dangling bytearray"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "skia-python"
# python = "3.12"
# listed = 9
# shown = ["87.6", "144.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "every view was released, and the result points into the memory"
# expected = "the view is held as long as the result uses its memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."skia-python-144.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray moved under skia.Data"
# ///
"""skia.Data releases the view of a buffer, and still points into its memory"""

import sys

import skia

memory = bytearray(64)
data = skia.Data(memory)
before = bytes(data)
try:
    memory.extend(bytes(10**7))
except BufferError as error:
    print("held:", error)
    sys.exit(0)
memory[:64] = b"x" * 64
sys.exit("defect: the bytearray moved under skia.Data" if bytes(data) != bytes(memory[:64]) else 0)
