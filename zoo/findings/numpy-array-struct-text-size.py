# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "consumer"
# target = "numpy.asarray"
# rule = "XA-15"
# plan = '{"dtype":"str3","export":"array-struct"}'
# also_affected = ["numpy-1.22.0", "numpy-2.2.6"]
# severity = "memory"
# expected = "The text of 64 MiB comes back with 64 MiB: itemsize is a size in bytes."
# impact = """\
# The array is four times as long as its memory. Copying it reads behind the end, and the process \
# crashes."""
# fix = "Where numpy.asarray reads __array_struct__, divide itemsize by 4 for kind 'U'."
# source = "NumPy array interface, object.__array_struct__"
# source_link = "https://numpy.org/doc/2.2/reference/arrays.interface.html#object.__array_struct__"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: numpy __array_struct__ unicode itemsize wrong dtype U12 four \
# times asarray"""
# picture = """
# the owner's memory   | a b c |                    12 bytes, <U3
# the imported array   | a b c ? ? ? ? ? ? ? ? ? |  48 bytes, <U12"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.3.0", "1.19.2", "1.26.4", "2.0.1", "2.0.2"]
# package = "numpy"
# python = "3.13"
# listed = 127
# shown = ["2.1.0", "2.2.0", "2.3.1", "2.5.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "elements: little-endian text of 48 bytes"
# expected = "elements: little-endian text of 12 bytes"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."numpy-2.2.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""numpy.asarray makes text of __array_struct__ four times as long, and reads past its memory"""

import subprocess
import sys

import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))


class Exporter:
    memory = np.zeros(1, "U%d" % 2**24)  # one text of 64 MiB
    __array_struct__ = memory.__array_struct__


array = np.asarray(Exporter())
print(Exporter.memory.nbytes, "bytes come back as", array.nbytes, flush=True)
array.copy()
