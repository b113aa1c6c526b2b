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
