# /// script
# requires-python = "==3.12.*"
# dependencies = ["pygame-ce==2.5.8", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "pygame-ce"
# side = "consumer"
# target = "zoo/consumers.py:pygame_surfarray"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"shape":[2,2],"dtype":"uint32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [[1, 2], [3, 4]], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The Surface has other numbers than the caller gave, and no error says so."
# fix = "In surfarray.blit_array, look at the byte order of the array, and convert or refuse it."
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = "2026-11-24, threads on GitHub: pygame surfarray blit_array big-endian byte order"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2.1.3", "2.3.0"]
# package = "pygame-ce"
# python = "3.12"
# listed = 18
# shown = ["2.3.1", "2.3.2", "2.4.1", "2.5.8"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "38820867"
# expected = "56381442 at element [0, 0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pygame-ce-2.5.8"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[1, 2], [3, 4]] became [[0, 0], [0, 0]]"
# ///
"""pygame.surfarray.blit_array reads big-endian pixels as little-endian ones"""

import sys

import numpy as np
import pygame

source = np.arange(1, 5, dtype=">u4").reshape(2, 2)
try:
    surface = pygame.Surface(source.shape, depth=32)
    pygame.surfarray.blit_array(surface, source)
    copy = pygame.surfarray.array2d(surface) & 0xFFFFFF
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
