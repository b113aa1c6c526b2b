# /// script
# requires-python = "==3.12.*"
# dependencies = ["tensorflow-cpu==2.21.0"]
#
# [tool.gridbuf-finding]
# library = "TensorFlow"
# side = "producer"
# target = "tensorflow.string"
# rule = "DP-25"
# plan = '{"dtype":"bytes5","readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "memory"
# expected = "__dlpack__ raises an error for a tensor that DLPack cannot describe."
# impact = "The process aborts, and no exception can be caught."
# fix = """\
# In __dlpack__, refuse the type of tf.string tensors before the check on DataTypeCanUseMemcpy."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: tensorflow dlpack string tensor __dlpack__ Check failed abort; \
# lanes ignored; double delete capsule not renamed"""
# picture = """
# tf.constant(["a"])   | length | pointer |   no element type of DLPack
# __dlpack__()         a CHECK on the type fails: abort(), where BufferError is due"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# gone = ["2.16.1", "2.18.0", "2.19.0", "2.19.1"]
# package = "tensorflow-cpu"
# python = "3.12"
# listed = 10
# shown = ["2.20.0", "2.21.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGABRT at step dp:call=max_version=(1,3), in ops.py:391 __dlpack__"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."tensorflow-cpu-2.21.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
# ///
"""Exporting a TensorFlow tensor of strings to DLPack aborts the process"""

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
