"""QByteArray of PySide6 frees its memory while a buffer is exported."""

import subprocess
import sys

from PySide6.QtCore import QByteArray

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

array = QByteArray(b"x" * 2**22)
view = memoryview(array)
try:
    array.clear()
    array.squeeze()
except BufferError as error:
    print("refused:", error)
print(view[0])
