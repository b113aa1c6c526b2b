"""The proxy of Surface.get_view('2') grants plain bytes for memory in Fortran order."""

import sys
import zlib

import pygame

proxy = pygame.Surface((3, 2), 0, 32).get_view("2")
view = memoryview(proxy)
try:
    zlib.crc32(proxy)  # asks for PyBUF_SIMPLE
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: granted with strides {view.strides} for shape {view.shape}")
