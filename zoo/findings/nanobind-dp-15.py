# /// script
# requires-python = "==3.13.*"
# dependencies = ["nanobind==3.1.0", "setuptools==80.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanobind"
# side = "producer"
# target = "zoo/producers.py:NanobindProducer"
# also_targets = ["zoo/producers.py:UnownedNanobindProducer"]
# rule = "DP-15"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "On the CPU only stream None is accepted, so stream=1 is an error."
# impact = """\
# A caller that passes a CUDA stream to an array of the CPU by mistake does not notice it. The \
# capsule of the array is not wrong in itself."""
# fix = """\
# In __dlpack__ of nanobind.nb_ndarray, raise BufferError if stream is not None and the array is on \
# the CPU."""
# status = "acknowledged"
# tracker = "https://github.com/wjakob/nanobind/pull/1383"
# counter = "nanobind ignores the argument on purpose, and its documentation gives the reason."
# counter_link = "https://github.com/wjakob/nanobind/pull/1383"
#
# [tool.gridbuf-finding.replays.affected]
# actual = "accepted"
# expected = "an error for stream=1 on the CPU"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanobind-3.1.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: stream=1 gives <capsule object \"dltensor\" at …> on device (1, 0)"
# ///
"""__dlpack__ of an ndarray of nanobind takes stream=1, a CUDA stream, for memory of the CPU"""

import subprocess
import sys
import sysconfig

import nanobind

root = nanobind.source_dir() + "/.."
CODE = f'#include "{root}/src/nb_combined.cpp"\n#include <nanobind/ndarray.h>\n'
CODE += "namespace nb = nanobind; double data[] = {0, 1, 2, 3, 4, 5};\n"
CODE += "auto made() { return nb::ndarray<nb::array_api, double>(data, {2, 3}, nb::handle()); }\n"
CODE += 'NB_MODULE(shown, m) { m.def("made", made, nb::rv_policy::reference); }\n'
folders = (nanobind.include_dir(), f"{root}/ext/robin_map/include", sysconfig.get_path("include"))
paths = [f"-I{path}" for path in folders]
compiler = ["c++", "-shared", "-fPIC", "-std=c++17", "-o", "shown.so", *paths, "-xc++", "-"]
subprocess.run(compiler, input=CODE, text=True, check=True)
sys.path.insert(0, ".")
import shown

exporter = shown.made()
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
