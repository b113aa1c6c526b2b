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
# why = """\
# A view has to be held as long as its memory is used (buffer protocol, PyBuffer_Release; \
# PB-35). Frame(copy=False) keeps the object and the address."""
# seen = """\
# b = bytearray(64); f = zmq.Frame(b, copy=False); b.extend(b'x' * 10**6) raises no BufferError \
# while the frame lives."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyzmq Frame buffer readonly writable copy=False bytes mutated; \
# Frame releases buffer view"""
# ///
"""zmq.Frame(copy=False) releases the view of its data, and sends from memory that may be gone."""

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
