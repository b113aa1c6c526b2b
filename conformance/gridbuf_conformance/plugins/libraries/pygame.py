"""pygame's surfaces: `get_view` exports columns of pixels; so does `PixelArray`, also sliced.

Both pygame and pygame-ce are imported as `pygame`; the version says which it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

# Opens no window, and prints no greeting to the output stream.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")

import numpy as np  # noqa: E402 (after the settings)
import pygame  # noqa: E402

from ...plan import Plan  # noqa: E402
from ...producer import Capabilities, Unsupported  # noqa: E402
from ...producers.base import TOUCHED_BYTES, HostProducer, row_major  # noqa: E402
from .numpy import NumPyProducer, write_content  # noqa: E402

_DEPTHS = {"uint32": 32, "uint16": 16, "uint8": 8}


class _PygameProducer(HostProducer):
    def version(self) -> str:
        return f"{pygame.__version__}{'-ce' if getattr(pygame, 'IS_CE', False) else ''}"


class SurfaceProducer(_PygameProducer):
    """`Surface.get_view("2")`: a `BufferProxy` of width x height pixels, rows padded to 4 bytes."""

    name = "pygame"
    no_views = "a view of a surface has no views"
    capabilities = Capabilities(
        dtypes=tuple(_DEPTHS),
        min_ndim=2,
        max_ndim=2,
        max_extent=2**12,
        max_nbytes=TOUCHED_BYTES,
        byteorders=("native",),
        readonly=(False,),
    )

    def make(self, plan: Plan) -> Any:
        view = pygame.Surface(plan.shape, 0, _DEPTHS[plan.dtype]).get_view("2")
        write_content(np.asarray(view), plan)
        return view


class ProxyProducer(_PygameProducer):
    """`pygame.BufferProxy` over the memory of a NumPy array."""

    name = "pygame.proxy"
    no_views = "a proxy has no views"
    capabilities = replace(NumPyProducer.capabilities, max_ndim=8, max_nbytes=2**20)

    def make(self, plan: Plan) -> Any:
        return pygame.BufferProxy(NumPyProducer().make(plan))


class PixelArrayProducer(_PygameProducer):
    """`PixelArray(surface)`: the same memory, with slices of any step and `transpose`."""

    name = "pygame.pixelarray"
    capabilities = SurfaceProducer.capabilities

    def make(self, plan: Plan) -> Any:
        if 0 in plan.shape:
            return Unsupported("pygame: a PixelArray has at least one pixel")
        pixels = pygame.PixelArray(pygame.Surface(plan.shape, 0, _DEPTHS[plan.dtype]))
        write_content(np.asarray(pixels), plan)
        return pixels

    def apply_view(self, obj: Any, operation: Sequence[Any]) -> Any:
        name, *arguments = operation
        if name == "transpose" and tuple(arguments[0]) == (1, 0):
            return obj.transpose()
        if name in ("slice", "reverse") and len(obj.shape) == 2:
            along = slice(*arguments[1:]) if name == "slice" else slice(None, None, -1)
            if all(len(range(*along.indices(n))) for n in obj.shape):
                return obj[(along, slice(None)) if arguments[0] == 0 else (slice(None), along)]
        return Unsupported(f"pygame: a PixelArray has no {name} of {arguments}")


class SoundProducer(_PygameProducer):
    """`pygame.mixer.Sound` of one channel: samples that it exports writable."""

    name = "pygame.sound"
    no_views = "a sound has no views"
    capabilities = row_major(("int16",), min_ndim=1, max_ndim=1, max_nbytes=2**22)

    def make(self, plan: Plan) -> Any:
        if not plan.nbytes:
            return Unsupported("pygame: a sound has at least one sample")
        if not pygame.mixer.get_init():
            pygame.mixer.init(size=-16, channels=1)
        return pygame.mixer.Sound(buffer=plan.content())
