# /// script
# requires-python = "==3.12.*"
# dependencies = ["pygame-ce==2.5.8", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "pygame-ce"
# side = "producer"
# target = "pygame.proxy"
# rule = "PB-02"
# plan = '{"shape":[2,3,4]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "memory"
# expected = "The proxy answers a PyBUF_SIMPLE request with the 24 bytes, or raises BufferError."
# impact = "The process crashes when hashlib reads the proxy."
# fix = """\
# In the getbuffer function of BufferProxy, do not use the format of the other object's view if the \
# flags lack PyBUF_FORMAT. Every request without that flag crashes, and each with it succeeds."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: pygame BufferProxy getbuffer PyBUF_SIMPLE segfault hashlib bytes \
# simple request multi-dimensional"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step pb:flags=SIMPLE"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# note = "ndim is 0 under FORMAT and 3 elsewhere; exporters differ on requests without a shape, and it is not judged"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pygame-ce-2.5.8"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 6"
# ///
"""A pygame.BufferProxy of a bytearray ends the process when a consumer does not ask for the format"""

import hashlib
import subprocess
import sys

import pygame

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

proxy = pygame.BufferProxy(bytearray(24))
try:
    print(hashlib.sha256(proxy).hexdigest())  # asks for PyBUF_SIMPLE
except BufferError as error:
    print("refused:", error)
