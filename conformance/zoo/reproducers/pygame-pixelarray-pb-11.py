"""PixelArray grants plain bytes for memory in Fortran order."""

import sys
import zlib

import pygame

pixels = pygame.PixelArray(pygame.Surface((3, 2), 0, 32))
view = memoryview(pixels)
try:
    zlib.crc32(pixels)  # asks for PyBUF_SIMPLE
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: granted with strides {view.strides} for shape {view.shape}")
