# /// script
# requires-python = "==3.10.*"
# dependencies = ["quadrants==0.4.4", "numpy==2.2.6"]
#
# [tool.gridbuf-finding]
# library = "Quadrants"
# side = "producer"
# target = "zoo/producers.py:QuadrantsProducer"
# rule = "DP-06"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "leak"
# expected = "The destructor of the capsule frees a tensor that is not taken."
# impact = """\
# Each export that is not imported leaks its structs. 200,000 of them take more than 4 MiB."""
# fix = """\
# In to_dlpack of a quadrants.ndarray, give the capsule a destructor that calls the deleter. 0.8.0 \
# does it."""
# status = "fixed"
# fixed_in = "0.8.0"
# tracker = "https://github.com/Genesis-Embodied-AI/quadrants/pull/598"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# gone = ["0.8.0", "1.0.2", "1.1.1", "1.1.3", "1.2.0", "1.3.3"]
# listed = 17
# package = "quadrants"
# python = "3.10"
# series = 8
# shown = ["0.4.0", "0.4.4", "0.4.5", "0.5.2", "0.6.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "at least 176 bytes an export left when it is dropped unconsumed"
# expected = "the tensor freed with its capsule"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."quadrants-0.4.4"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 33664 KiB more after 200,000 dropped capsules"
#
# [tool.gridbuf-finding.runs."quadrants-1.4.0"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""A capsule of Quadrants' to_dlpack that is not consumed is never freed"""

import resource
import sys

import quadrants

quadrants.init(arch=quadrants.cpu)
array = quadrants.ndarray(quadrants.f32, (4,))


def grown(exports):
    """Growth of the process in KiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(exports):
        array.to_dlpack()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


grown(10_000)
kib = grown(200_000)
sys.exit(f"defect: {kib} KiB more after 200,000 dropped capsules" if kib > 4096 else 0)
