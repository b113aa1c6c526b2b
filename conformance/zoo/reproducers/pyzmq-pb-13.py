"""A zmq.Frame over bytes, sent without a copy, is exported as writable."""

import sys

import zmq

data = bytes([120] * 100)
view = memoryview(zmq.Frame(data, copy=False))
if not view.readonly:
    view[0] = 33
sys.exit(f"defect: a bytes object was written: {data[:3]}" if data[0] == 33 else 0)
