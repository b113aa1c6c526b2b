# /// script
# requires-python = "==3.12.*"
# dependencies = ["pygame-ce==2.5.8", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "pygame-ce"
# side = "producer"
# target = "pygame"
# rule = "PB-11"
# plan = '{"shape":[2,2],"dtype":"uint32"}'
# why = """\
# Without STRIDES the consumer reads row by row; memory that is not C-contiguous must be refused \
# (Python C API, Buffer Protocol, contiguity: requests without strides imply C)."""
# seen = "BufferProxy: SIMPLE granted, strides [4, 12] of shape [3, 2]."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pygame PixelArray BufferProxy buffer PyBUF_SIMPLE contiguous \
# get_view"""
# counter = """\
# PEP 3118 asks only for contiguous bytes of a SIMPLE request, and the memory of the proxy is \
# contiguous."""
# counter_link = "https://peps.python.org/pep-3118/#the-new-buffer-protocol"
# ///
"""The proxy of Surface.get_view('2') grants plain bytes for memory in Fortran order."""

import sys
import zlib

import pygame

proxy = pygame.Surface((3, 2), 0, 32).get_view("2")
view = memoryview(proxy)
try:
    zlib.crc32(proxy)  # asks for PyBUF_SIMPLE
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: granted with strides {view.strides} for shape {view.shape}")
