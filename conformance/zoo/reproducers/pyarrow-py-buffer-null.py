"""pyarrow.py_buffer aborts the process for an empty buffer whose address is NULL."""

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
