# /// script
# requires-python = "==3.12.*"
# dependencies = ["pyzmq==27.3.0"]
#
# [tool.gridbuf-finding]
# library = "pyzmq"
# side = "producer"
# target = "pyzmq"
# rule = "PB-13"
# plan = '{"dtype":"uint8","readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = "A frame over bytes is read-only, and says so in readonly."
# impact = """\
# A write through the memoryview changes a bytes object, which Python treats as immutable."""
# fix = """\
# In the getbuffer function of zmq.Frame, take readonly from the object that was given as data."""
# status = "acknowledged"
# tracker = "https://github.com/zeromq/pyzmq/pull/1569"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2.0.7", "18.0.2", "24.0.0", "25.1.0"]
# package = "pyzmq"
# python = "3.12"
# listed = 91
# shown = ["25.1.1", "26.0.0", "26.0.3", "27.3.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the buffer protocol says writable"
# expected = "read-only, as the memory is mapped"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "every request for writable memory is refused"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyzmq-27.3.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: a bytes object was written: b'!xx'"
# ///
"""A zmq.Frame over bytes, sent without a copy, is exported as writable"""

import sys

import zmq

data = bytes([120] * 100)
view = memoryview(zmq.Frame(data, copy=False))
if not view.readonly:
    view[0] = 33
sys.exit(f"defect: a bytes object was written: {data[:3]}" if data[0] == 33 else 0)
