"""skia-python's `Bitmap` of grey pixels. Its array interface has its buffer, and no address."""

from __future__ import annotations

from typing import Any

import numpy as np
import skia

from ...plan import Plan
from ...producer import Unsupported
from ...producers.base import HostProducer, row_major
from .numpy import numpy_dtype


class BitmapProducer(HostProducer):
    """`skia.Bitmap` of height x width bytes."""

    name = "skia"
    no_views = "a bitmap has no views"
    capabilities = row_major(("uint8",), min_ndim=2, max_ndim=2, max_extent=2**12)

    def make(self, plan: Plan) -> Any:
        if 0 in plan.shape:
            return Unsupported("skia: a bitmap has at least one pixel")
        height, width = plan.shape
        bitmap = skia.Bitmap()
        bitmap.allocPixels(
            skia.ImageInfo.Make(width, height, skia.kGray_8_ColorType, skia.kOpaque_AlphaType)
        )
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        np.asarray(memoryview(bitmap))[...] = content
        return bitmap
