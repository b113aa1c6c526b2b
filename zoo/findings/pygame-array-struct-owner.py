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
# ///
"""The capsule of `__array_struct__` of `Surface.get_view` does not keep the surface's memory"""

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
sys.exit(f"defect: {before} became {array[0, 0]}" if array[0, 0] != before else 0)
