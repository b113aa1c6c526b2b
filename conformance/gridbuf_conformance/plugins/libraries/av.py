"""PyAV's planes: the pixels of one plane of a video frame, rows padded to the decoder's liking.

The buffer exports the plane as bytes, padding included; DLPack exports the pixels. Pixels of one
byte are asked for, where both are the same elements.
"""

from __future__ import annotations

from typing import Any

import av
import numpy as np

from ...plan import Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import TOUCHED_BYTES, HostProducer
from .numpy import numpy_dtype


class PlaneProducer(HostProducer):
    """The plane of a grey `VideoFrame`: height x width by DLPack, raw bytes by the buffer."""

    name = "av"
    no_views = "a plane has no views"
    capabilities = Capabilities(
        dtypes=("uint8",),
        min_ndim=2,
        max_ndim=2,
        max_extent=2**12,
        max_nbytes=TOUCHED_BYTES,
        byteorders=("native",),
        readonly=(False,),
    )

    def make(self, plan: Plan) -> Any:
        if 0 in plan.shape:
            return Unsupported("av: a frame has at least one pixel")
        content = np.frombuffer(plan.content(), numpy_dtype(plan)).reshape(plan.shape)
        return av.VideoFrame.from_ndarray(content, format="gray").planes[0]
