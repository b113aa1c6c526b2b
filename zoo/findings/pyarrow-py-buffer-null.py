# /// script
# requires-python = "==3.13.*"
# dependencies = ["pyarrow==26.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyArrow"
# side = "consumer"
# target = "pyarrow.py_buffer"
# rule = "PB-17"
# plan = '{"shape":[0],"export":"buffer:empty-null"}'
# also_affected = ["pyarrow-12.0.1", "pyarrow-20.0.0"]
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# severity = "memory"
# expected = "An empty buffer is taken, whatever its address is, or refused with an exception."
# impact = "The process aborts on an empty buffer whose address is NULL."
# fix = "In pyarrow.py_buffer, test for NULL only if the length is not 0, or raise an exception."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyarrow Tensor buffer protocol __getbuffer__ ignores flags \
# column-major Fortran PyBUF_SIMPLE"""
# counter = """\
# No text allows NULL for an empty buffer, and none forbids it; Arrow checks for it on purpose."""
# counter_link = "https://docs.python.org/3/c-api/buffer.html#c.Py_buffer.buf"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.9.0", "11.0.0", "14.0.2", "15.0.2", "16.1.0", "17.0.0"]
# package = "pyarrow"
# python = "3.13"
# listed = 53
# shown = ["18.0.0", "22.0.0", "24.0.0", "25.0.1", "26.0.0", "26.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "CRASH: the process died by SIGABRT at step consume"
# expected = "the process answers and lives on"
# outcome = "FRAGILE"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyarrow-12.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
#
# [tool.gridbuf-finding.runs."pyarrow-20.0.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
#
# [tool.gridbuf-finding.runs."pyarrow-26.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
# ///
"""pyarrow.py_buffer aborts the process for an empty buffer whose address is NULL"""

import ctypes as c
import subprocess
import sys

import pyarrow

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

empty = (c.c_char * 0).from_address(0)  # no elements: nothing may be read
print("a copy of it:", bytes(memoryview(empty)))
try:
    pyarrow.py_buffer(memoryview(empty))
except Exception as error:
    print("refused:", error)
