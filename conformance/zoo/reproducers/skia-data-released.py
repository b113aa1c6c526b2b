"""skia.Data releases the view of a buffer, and still points into its memory."""

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
