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
# severity = "form"
# expected = "A request without strides is refused if the memory is not C-contiguous."
# impact = """\
# A consumer of plain bytes gets them in column order. The script shows the grant, not a wrong \
# read."""
# fix = """\
# In the getbuffer function of BufferProxy, which get_view returns, raise BufferError if the flags \
# lack PyBUF_STRIDES and the strides are not C-contiguous."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pygame PixelArray BufferProxy buffer PyBUF_SIMPLE contiguous \
# get_view"""
# counter = """\
# PEP 3118 asks only for contiguous bytes of a SIMPLE request, and the memory of the proxy is \
# contiguous."""
# counter_link = "https://peps.python.org/pep-3118/#the-new-buffer-protocol"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2.1.3", "2.3.0"]
# package = "pygame-ce"
# python = "3.12"
# listed = 18
# shown = ["2.3.1", "2.3.2", "2.4.1", "2.5.8"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "SIMPLE, WRITABLE, FORMAT granted for Fortran-contiguous memory"
# expected = "a refusal, for strides (4, 8) of shape (2, 2) are not C-contiguous"
# outcome = "ADVISORY"
#
# [tool.gridbuf-finding.runs."pygame-ce-2.5.8"]
# date = "2026-11-25"
# exit = 1
# told = "defect: granted with strides (4, 12) for shape (3, 2)"
# ///
"""The proxy of pygame.Surface.get_view('2') grants plain bytes for memory in Fortran order"""

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
