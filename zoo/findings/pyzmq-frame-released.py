# /// script
# requires-python = "==3.12.*"
# dependencies = ["pyzmq==27.3.0"]
#
# [tool.gridbuf-finding]
# library = "pyzmq"
# side = "consumer"
# target = "pyzmq.Frame"
# rule = "PB-35"
# plan = '{"export":"buffer"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.frombuffer"
# pattern = "released-view"
# severity = "memory"
# expected = "The view is held as long as the frame uses its memory, so clear raises BufferError."
# impact = "The frame points to freed memory while it waits to be sent."
# fix = "In zmq.Frame, keep the view of data, not only its address, until the message is sent."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyzmq Frame buffer readonly writable copy=False bytes mutated; \
# Frame releases buffer view"""
# picture = """
# frame = zmq.Frame(memory, copy=False)   frame ——> | memory: 1 MB |
# memory.clear()                          frame ——>   given back
# socket.send(frame)                      sends whatever is there now"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["2.0.7", "18.0.2", "24.0.0", "25.1.0"]
# listed = 91
# package = "pyzmq"
# python = "3.12"
# series = 10
# shown = ["25.1.1", "25.1.2", "26.0.0", "26.0.3", "26.1.1", "26.2.1", "26.3.0", "26.4.0", "27.0.2", "27.1.0", "27.2.0", "27.3.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "every view was released, and the result points into the memory"
# expected = "the view is held as long as the result uses its memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyzmq-27.3.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray of a frame of 1000000 bytes was freed"
# ///
"""zmq.Frame(copy=False) releases the view of its data, and sends from memory that may be gone"""

import sys

import zmq

memory = bytearray(10**6)
frame = zmq.Frame(memory, copy=False)
try:
    memory.clear()
except BufferError as error:
    print("held:", error)
    sys.exit(0)
sys.exit(f"defect: the bytearray of a frame of {len(frame)} bytes was freed")
