# /// script
# requires-python = "==3.12.*"
# dependencies = ["warp-lang==1.19.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Warp"
# side = "producer"
# target = "warp.struct"
# rule = "AI-11"
# plan = '{"dtype":"padded"}'
# severity = "form"
# expected = "descr is a list of tuples: the fields, and the padding as unnamed fields."
# impact = "A consumer that reads descr by the text refuses the array, or has no fields."
# fix = "In __array_interface__ of an array of structs, give numpy.dtype(…).descr."
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: NVIDIA warp struct array __array_interface__ descr dict list of \
# tuples"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.2.0", "0.15.0", "1.2.0"]
# listed = 54
# package = "warp-lang"
# python = "3.12"
# series = 18
# shown = ["1.2.1", "1.2.2", "1.3.0", "1.3.3", "1.4.0", "1.4.2", "1.5.1", "1.6.2", "1.7.2", "1.8.1", "1.9.1", "1.10.1", "1.11.1", "1.12.1", "1.13.0", "1.14.0", "1.15.0", "1.16.0", "1.17.0", "1.18.0", "1.19.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "descr must be a list of tuples, not dict"
# expected = "a list of (name, type[, repeat]) tuples"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."warp-lang-1.19.0"]
# date = "2026-11-30"
# exit = 1
# told = "defect: descr is of type dict"
# ///
"""An array of a Warp struct has a dict as descr in __array_interface__"""

import sys

import warp

warp.config.quiet = True


@warp.struct
class Record:
    a: warp.int8
    b: warp.float64


array = warp.empty(2, dtype=Record, device="cpu")
descr = array.__array_interface__["descr"]
sys.exit(f"defect: descr is of type {type(descr).__name__}" if not isinstance(descr, list) else 0)
