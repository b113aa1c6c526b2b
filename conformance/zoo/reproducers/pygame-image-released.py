"""pygame.image.frombuffer releases the view, and the surface still points into its memory."""

import sys

import numpy as np
import pygame

memory = bytearray(64)
surface = pygame.image.frombuffer(memory, (64, 1), "P")
try:
    memory.extend(bytes(10**7))
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = (
    np.frombuffer(memory, "u1").ctypes.data != surface.get_view("0").__array_interface__["data"][0]
)
sys.exit("defect: the bytearray moved under the surface" if moved else 0)
