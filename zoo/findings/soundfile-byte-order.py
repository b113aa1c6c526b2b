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
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [0, 1, 2, 3], or the array is refused. Code that reads the data of a NumPy array \
# has to respect its byte order."""
# impact = "The WAV file has other numbers than the caller gave, and no error says so."
# fix = """\
# In soundfile.write, convert data to native byte order \
# (`data.astype(data.dtype.newbyteorder('='))`) before it is passed to libsndfile."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: python-soundfile write big-endian numpy array byte order wrong \
# data"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.8.0", "0.10.3.post1", "0.11.0"]
# package = "soundfile"
# python = "3.12"
# listed = 13
# shown = ["0.12.0", "0.12.1", "0.14.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."soundfile-0.14.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [0, 1, 2, 3] became [0, 256, 512, 768]"
# ///
"""soundfile.write reads big-endian samples as little-endian ones"""

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
