# /// script
# requires-python = "==3.12.*"
# dependencies = ["cramjam==2.14.0"]
#
# [tool.gridbuf-finding]
# library = "cramjam"
# side = "consumer"
# target = "cramjam.zlib"
# rule = "PB-17"
# plan = '{"shape":[0],"export":"buffer:empty-null"}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# severity = "memory"
# expected = "Nothing is read of a buffer whose extent is 0, whatever its address is."
# impact = "The process crashes on an empty buffer whose address is NULL."
# fix = "Where cramjam makes a Rust slice of a buffer, use an empty slice if its length is 0."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: OpenUSD Vt array python buffer protocol ValueError BufferError; \
# cramjam empty buffer NULL"""
# counter = "No text allows NULL for an empty buffer, and none forbids it."
# counter_link = "https://docs.python.org/3/c-api/buffer.html#c.Py_buffer.buf"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.3.0", "2.6.2"]
# gone = ["2.7.0", "2.8.1", "2.8.4", "2.9.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1"]
# listed = 29
# package = "cramjam"
# python = "3.12"
# series = 8
# shown = ["2.13.0", "2.14.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "CRASH: the process died by SIGSEGV at step consume"
# expected = "the process answers and lives on"
# outcome = "FRAGILE"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."cramjam-2.14.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""cramjam crashes for an empty buffer whose address is NULL"""

import ctypes as c
import subprocess
import sys

import cramjam

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

empty = (c.c_char * 0).from_address(0)  # no elements: nothing may be read
print("a copy of it:", bytes(memoryview(empty)))
try:
    cramjam.zlib.compress(memoryview(empty))
except Exception as error:
    print("refused:", error)
