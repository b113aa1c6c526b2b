# /// script
# requires-python = "==3.12.*"
# dependencies = ["pygame-ce==2.5.8", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "pygame-ce"
# side = "consumer"
# target = "zoo/consumers.py:pygame_image"
# rule = "PB-35"
# plan = '{"dtype":"uint8","export":"buffer"}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# pattern = "released-view"
# severity = "memory"
# expected = """\
# The view is held as long as the surface uses its memory, so extend raises BufferError."""
# impact = """\
# The surface points to memory that the bytearray has given back. Drawing reads and writes \
# whatever is there now."""
# fix = """\
# In image.frombuffer, keep the view in the surface, and release it when the surface is freed."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pygame image.frombuffer bytearray resized surface dangling \
# pixels buffer released"""
# picture = """
# surface = image.frombuffer(memory, …)   surface ——> | memory: 64 bytes |
# memory.extend(bytes(10**7))             surface ——>   given back          | memory: 10 MB |
# surface.fill(…)                         writes to whatever is there now"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["2.1.3", "2.3.0"]
# listed = 18
# package = "pygame-ce"
# python = "3.12"
# series = 3
# shown = ["2.3.1", "2.3.2", "2.4.1", "2.5.8"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "every view was released, and the result points into the memory"
# expected = "the view is held as long as the result uses its memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pygame-ce-2.5.8"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray moved under the surface"
# ///
"""pygame.image.frombuffer releases the view, and the surface still points into its memory"""

import sys

import numpy as np
import pygame

memory = bytearray(64)
surface = pygame.image.frombuffer(memory, (64, 1), "P")
try:
    memory.extend(bytes(10**7))
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = (
    np.frombuffer(memory, "u1").ctypes.data != surface.get_view("0").__array_interface__["data"][0]
)
sys.exit("defect: the bytearray moved under the surface" if moved else 0)
