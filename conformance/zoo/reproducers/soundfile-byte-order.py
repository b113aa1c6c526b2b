# /// script
# requires-python = "==3.12.*"
# dependencies = ["soundfile==0.14.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "python-soundfile"
# side = "consumer"
# target = "zoo/consumers.py:soundfile_written"
# rule = "AI-34"
# also_rules = ["AS-05", "PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# why = """\
# The first character of typestr is the byte order: a consumer uses it or refuses the array \
# (AI-34). The library looks at the kind and the size of a NumPy array's type, and does not \
# convert the bytes."""
# seen = "[0.0, 1.0] as '>f4' becomes [0.0, 4.6e-41], without an error."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: python-soundfile write big-endian numpy array byte order wrong \
# data"""
# ///
"""soundfile.write reads big-endian samples as little-endian ones."""

import io
import sys

import numpy as np
import soundfile

source = np.arange(4, dtype=">i2")
file = io.BytesIO()
try:
    soundfile.write(file, source, 8000, format="WAV", subtype="PCM_16")
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
file.seek(0)
written = soundfile.read(file, dtype="int16")[0]
sys.exit(f"defect: {source.tolist()} became {written.tolist()}" if (written != source).any() else 0)
