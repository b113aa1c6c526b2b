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
