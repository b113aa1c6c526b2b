"""Exporting a TensorFlow tensor of strings to DLPack aborts the process."""

import subprocess
import sys

import tensorflow as tf

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

try:
    tf.constant(["a"]).__dlpack__()
except Exception as error:
    print("refused:", error)
