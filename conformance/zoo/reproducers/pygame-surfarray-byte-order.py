"""surfarray.blit_array reads big-endian pixels as little-endian ones."""

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
