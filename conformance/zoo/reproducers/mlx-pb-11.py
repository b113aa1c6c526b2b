"""An MLX array that is reversed grants a request without strides: zlib reads past its memory."""

import subprocess
import sys
import zlib

import mlx.core as mx

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

exporter = mx.zeros((1024, 65536))[::-1]
mx.eval(exporter)
try:
    zlib.crc32(exporter)  # asks for PyBUF_SIMPLE: bytes in C order
except (BufferError, ValueError) as error:
    print("refused:", error)
