# /// script
# requires-python = "==3.12.*"
# dependencies = ["pygame-ce==2.5.8", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "pygame-ce"
# side = "producer"
# target = "pygame"
# rule = "AS-07"
# plan = '{"shape":[1,1],"dtype":"uint32"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# also_targets = ["pygame.pixelarray", "pygame.sound"]
# severity = "memory"
# expected = "The array keeps its values: the capsule, which NumPy holds, keeps the surface."
# impact = """\
# A consumer that keeps only the capsule reads memory that was freed, or that another surface has by \
# then. PixelArray and mixer.Sound give such capsules, too."""
# fix = """\
# In the function that makes the capsule of __array_struct__ from a Py_buffer, put a new reference to \
# the exporter into the capsule's context, and drop it in the destructor."""
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: pygame array struct capsule does not keep owner surface freed \
# get_view __array_struct__"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["2.1.3", "2.3.0"]
# listed = 18
# package = "pygame-ce"
# python = "3.12"
# series = 3
# shown = ["2.3.1", "2.3.2", "2.4.1", "2.5.8"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "another value in place of 56381442 at element [0, 0] after the object's end"
# expected = "memory that the capsule keeps alive"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pygame-ce-2.5.8"]
# date = "2026-11-30"
# exit = 1
# told = "defect: the memory was freed: 66051 became 16777215"
# ///
"""pygame.Surface.get_view gives an array struct whose capsule does not keep the memory"""

import sys

import numpy as np
import pygame


class Struct:
    """An object with only the array struct of another one."""

    def __init__(self, other):
        self.__array_struct__ = other.__array_struct__


def surface(color):
    made = pygame.Surface((64, 64), 0, 32)
    made.fill(color)
    return made


first = surface((1, 2, 3))
array = np.asarray(Struct(first.get_view("2")))
before = array[0, 0]
del first
others = [surface((255, 255, 255)) for _ in range(4)]
after = array[0, 0]
sys.exit(f"defect: the memory was freed: {before} became {after}" if after != before else 0)
