# /// script
# requires-python = "==3.12.*"
# dependencies = ["apache-tvm-ffi==0.1.15.post2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "TVM FFI"
# side = "consumer"
# target = "zoo/consumers.py:tvm_ffi_stream"
# rule = "CS-01"
# plan = '{"dtype":"float32","export":"cuda-stream:version-1"}'
# severity = "form"
# expected = """\
# A stream of another version of the protocol is refused: only version 0 says that the second value \
# is an address."""
# impact = """\
# Version 1 does not exist yet. A function would work on an address that may not be that of a \
# stream."""
# fix = """\
# Where an argument has __cuda_stream__, compare the first value of the tuple with 0, and raise an \
# error if it differs."""
# status = "new"
# searched = "2026-11-30, threads on GitHub: tvm ffi __cuda_stream__ protocol version"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# listed = 21
# package = "apache-tvm-ffi"
# python = "3.12"
# series = 1
# shown = ["0.1.0", "0.1.15.post2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "it was accepted"
# expected = "an error: the protocol has version 1"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."apache-tvm-ffi-0.1.15.post2"]
# date = "2026-11-30"
# exit = 1
# told = "defect: a stream of version 1 is taken as c_void_p(4096)"
# ///
"""A function of TVM FFI takes a stream without a look at the version of __cuda_stream__"""

import sys

import tvm_ffi


class Stream:
    def __cuda_stream__(self):
        return 1, 4096


try:
    taken = tvm_ffi.convert(lambda stream: stream)(Stream())
except Exception as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: a stream of version 1 is taken as {taken}")
