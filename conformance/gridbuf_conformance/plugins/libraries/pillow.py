"""Pillow's images: two dimensions, one band; `__array_interface__` exports a copy as bytes."""

from __future__ import annotations

from PIL import Image

from ...plan import Plan
from ...producers.base import HostProducer, row_major

_MODES = {"uint8": "L", "int32": "I", "float32": "F", "uint16": "I;16"}


class PillowProducer(HostProducer):
    """`Image.frombytes`; an image's pixels are reached through methods only, so it is read-only."""

    name = "pillow"
    capabilities = row_major(_MODES, min_ndim=2, max_ndim=2, readonly=(True,))

    def make(self, plan: Plan) -> Image.Image:
        height, width = plan.shape
        if 0 in plan.shape:
            return Image.new(_MODES[plan.dtype], (width, height))
        return Image.frombytes(_MODES[plan.dtype], (width, height), plan.content())
